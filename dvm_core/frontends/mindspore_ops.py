"""MindSpore's ops in our instructions: a table from the name MindSpore dispatches to a lowering.

A lowering gets the capture and the op's arguments, with defaults filled in, and returns a value id, a tuple of them, or a tensor that
already exists. Unlowerable sends the op to MindSpore itself. Ops of neural networks are in mindspore_nn.
"""
from __future__ import annotations

import math
from typing import Any

from . import mindspore_compat as compat
from .emit import BOOL, CODE, F32, FLOATS, I32, I64
from .lowering import LOWER, Lowering, Unlowerable, given_dtype, is_whole, lowers, normal_axes, normal_axis, unify

# ---- elementwise ---------------------------------------------------------------------------------------------------------------------

def _binary(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, b: Any) -> int:
        a, b = unify(c, c.operand(a), c.operand(b), weak=opcode == CODE["MUL"])
        return c.binary(opcode, a, b)
    return lower


def _scaled(opcode: int) -> Lowering:  # a + alpha * b
    def lower(c: Any, a: Any, b: Any, alpha: Any = 1) -> int:
        a, b = unify(c, c.operand(a), c.operand(b))
        if alpha != 1:
            b = b * alpha if isinstance(b, float) else c.mul(b, float(alpha))
        if opcode == CODE["SUB"] and any(x.__class__ is int and c.dtype(x) == BOOL for x in (a, b)):
            raise Unlowerable
        return c.binary(opcode, a, b)
    return lower


def _unary(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, *_: Any) -> int:
        return c.op(opcode, (c.value(a),))
    return lower


def _float_unary(opcode: int) -> Lowering:  # integers become float32 first
    def lower(c: Any, a: Any) -> int:
        return c.op(opcode, (c.floating(c.value(a)),))
    return lower


LOWER.update({name: _binary(CODE[code]) for name, code in {
    "Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Muls": "MUL", "Equal": "EQUAL",
    "NotEqual": "NOT_EQUAL", "Less": "LESS", "LessEqual": "LESS_EQUAL", "Greater": "GREATER", "GreaterEqual": "GREATER_EQUAL",
    "EqScalar": "EQUAL", "NeScalar": "NOT_EQUAL", "LessScalar": "LESS",
    "GreaterEqualScalar": "GREATER_EQUAL"}.items()})
LOWER.update({name: _scaled(CODE[code]) for name, code in {
    "AddExt": "ADD", "SubExt": "SUB", "AddScalar": "ADD", "SubScalar": "SUB"}.items()})
LOWER.update({name: _unary(CODE[code]) for name, code in {
    "Neg": "NEG", "Abs": "ABS", "IsFinite": "IS_FINITE", "IsNan": "IS_NAN", "IsInf": "IS_INF"}.items()})
LOWER.update({name: _float_unary(CODE[code]) for name, code in {
    "Exp": "EXP", "Expm1": "EXPM1", "Log": "LOG", "Log1p": "LOG1P", "Sqrt": "SQRT", "Rsqrt": "RSQRT", "Reciprocal": "RECIPROCAL",
    "Tanh": "TANH", "Erf": "ERF", "Sin": "SIN", "Cos": "COS", "Tan": "TAN", "Atan": "ATAN", "AtanExt": "ATAN", "Sigmoid": "SIGMOID",
    "Floor": "FLOOR", "Ceil": "CEIL", "Trunc": "TRUNC"}.items()})


def extremum(c: Any, name: str, a: Any, b: Any) -> int:
    """The larger (MAXIMUM) or smaller (MINIMUM) of two operands; a gradient is shared where they are equal."""
    if not c.gradients:
        return c.binary(CODE[name], *unify(c, a, b))
    a, b = unify(c, *unify(c, a, b), both=True)
    return c.group("larger" if name == "MAXIMUM" else "smaller", c.binary(CODE[name], a, b), (a, b))


@lowers("Maximum")
def _maximum(c: Any, a: Any, b: Any) -> int:
    return extremum(c, "MAXIMUM", c.operand(a), c.operand(b))


@lowers("Minimum")
def _minimum(c: Any, a: Any, b: Any) -> int:
    return extremum(c, "MINIMUM", c.operand(a), c.operand(b))


@lowers("Div", "Divs", "RealDiv")
def _div(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.operand(a), c.operand(b), weak=True)
    return c.div(*(x if isinstance(x, float) else c.floating(x) for x in (a, b)))


@lowers("FloorDiv", "FloorDivScalar", once=True)
def _floor_div(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.operand(a), c.operand(b))
    if any(x.__class__ is int and c.dtype(x) == BOOL for x in (a, b)):
        raise Unlowerable
    quotient = c.div(a, b)  # integers: already rounded down
    return c.floor(quotient) if c.dtype(quotient) in FLOATS else quotient


LOWER.update(dict.fromkeys(("FloorMod", "RemainderTensorTensor", "RemainderTensorScalar", "RemainderScalarTensor"),
                           _binary(CODE["REMAINDER"])))
LOWER.update(dict.fromkeys(("FmodTensor", "FmodScalar"), _binary(CODE["FMOD"])))


@lowers("DivMod")
def _div_mod(c: Any, a: Any, b: Any, mode: Any = 0) -> int:
    """a / b, rounded towards zero (mode 1) or down (mode 2)."""
    if mode not in (1, 2):
        return _div(c, a, b)
    a, b = unify(c, c.operand(a), c.operand(b))
    quotient = c.div(a, b)
    if c.dtype(quotient) in FLOATS:
        return c.trunc(quotient) if mode == 1 else c.floor(quotient)
    if mode == 1:
        raise Unlowerable  # integers are rounded down here
    return quotient


@lowers("Pow", "PowTensorScalar", "PowScalarTensor")
def _pow(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.operand(a), c.operand(b))
    return c.mul(a, a) if b.__class__ is not int and b == 2.0 and a.__class__ is int else c.pow(a, b)


@lowers("Square")
def _square(c: Any, a: Any) -> int:
    a = c.value(a)
    return c.mul(a, a)


@lowers("Round")
def _round(c: Any, a: Any, decimals: int = 0) -> int:
    if decimals:
        raise Unlowerable
    return c.op(CODE["ROUND"], (c.floating(c.value(a)),))


@lowers("Sign")
def _sign(c: Any, a: Any) -> int:
    a = c.value(a)
    return c.sign(a) if c.dtype(a) != BOOL else c.copy(a)


@lowers("LogicalNot")
def _not(c: Any, a: Any) -> int:
    return c.op(CODE["LOGICAL_NOT"], (c.cast(c.value(a), BOOL),))


def _logical(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, b: Any) -> int:
        return c.op(opcode, (c.cast(c.value(a), BOOL), c.cast(c.value(b), BOOL)))
    return lower


def _bits(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, b: Any) -> int:
        a, b = unify(c, c.operand(a), c.operand(b))
        if any(x.__class__ is int and c.dtype(x) in FLOATS for x in (a, b)):
            raise Unlowerable
        return c.binary(opcode, a, b)
    return lower


LOWER["LogicalAnd"], LOWER["LogicalOr"] = _logical(CODE["LOGICAL_AND"]), _logical(CODE["LOGICAL_OR"])
LOWER["LogicalXor"] = _logical(CODE["BIT_XOR"])
for _code, _names in {
        "BIT_AND": ("BitwiseAnd", "BitwiseAndTensor", "BitwiseAndScalar"), "BIT_OR": ("BitwiseOr", "BitwiseOrTensor", "BitwiseOrScalar"),
        "BIT_XOR": ("BitwiseXor", "BitwiseXorTensor", "BitwiseXorScalar"), "SHIFT_LEFT": ("LeftShift",),
        "SHIFT_RIGHT": ("RightShift",)}.items():
    LOWER.update(dict.fromkeys(_names, _bits(CODE[_code])))


@lowers("BitwiseNot", "Invert")
def _bit_not(c: Any, a: Any) -> int:
    value = c.value(a)
    if c.dtype(value) in FLOATS:
        raise Unlowerable
    return c.op(CODE["BIT_NOT"], (value,))


@lowers("Cast")
def _cast(c: Any, a: Any, dtype: Any) -> Any:
    wanted = given_dtype(dtype)
    value = c.value(a)
    return a if c.dtype(value) == wanted else c.cast(value, wanted)


@lowers("StopGradient")
def _stop_gradient(c: Any, a: Any) -> int:
    value = c.value(a)
    return c.group("detached", c.copy(value), (value,))


@lowers("Clone")
def _clone(c: Any, a: Any) -> int:
    return c.copy(c.value(a))


@lowers("Select")
def _select(c: Any, condition: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.operand(a), c.operand(b), both=True)
    return c.select(c.cast(c.value(condition), BOOL), a, b)


@lowers("MaskedFill", "MaskedFillScalar")
def _masked_fill(c: Any, a: Any, mask: Any, fill: Any) -> int:
    a, fill = unify(c, c.value(a), c.operand(fill), both=True, keep_first=True)
    return c.select(c.cast(c.value(mask), BOOL), fill, a)


@lowers("ClampScalar", "ClampTensor")
def _clamp(c: Any, a: Any, low: Any, high: Any) -> int:
    value = c.value(a)
    for bound, opcode in ((low, CODE["MAXIMUM"]), (high, CODE["MINIMUM"])):
        if bound is not None:
            value = c.binary(opcode, *unify(c, value, c.operand(bound)))
    return value if value != c.value(a) else c.copy(value)


# ---- reductions ----------------------------------------------------------------------------------------------------------------------

def _reduce(opcode: int, integers: int, bools: int) -> Lowering:
    # integers, bools: the dtype they become first, 0 = they stay
    def lower(c: Any, a: Any, axes: Any = None, keepdims: bool = False, dtype: Any = None) -> int:
        value = c.value(a)
        if dtype is not None:
            value = c.cast(value, given_dtype(dtype))
        elif c.dtype(value) not in FLOATS and (wanted := bools if c.dtype(value) == BOOL else integers):
            value = c.cast(value, wanted)
        return c.reduce(opcode, value, normal_axes(axes, len(c.shape(value))), bool(keepdims))
    return lower


LOWER["SumExt"] = _reduce(CODE["SUM"], I64, I64)
_reduce_sum = _reduce(CODE["SUM"], 0, I64)


@lowers("ReduceSum")
def _sum_or_skip(c: Any, a: Any, axes: Any = None, keepdims: bool = False, skip: bool = False) -> int:
    return c.copy(c.value(a)) if skip and isinstance(axes, (tuple, list)) and not axes else _reduce_sum(c, a, axes, keepdims)


LOWER.update(dict.fromkeys(("MeanExt", "ReduceMean"), _reduce(CODE["MEAN"], F32, F32)))
LOWER["ProdExt"], LOWER["ReduceProd"] = _reduce(CODE["PROD"], I64, I64), _reduce(CODE["PROD"], 0, I64)
LOWER.update(dict.fromkeys(("ReduceMax", "Max"), _reduce(CODE["MAX"], 0, 0)))
LOWER.update(dict.fromkeys(("ReduceMin", "Min"), _reduce(CODE["MIN"], 0, 0)))


def _any_all(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, axes: Any = None, keepdims: bool = False) -> int:
        value = c.cast(c.not_equal(c.value(a), 0.0) if c.dtype(c.value(a)) != BOOL else c.value(a), I32)
        return c.cast(c.reduce(opcode, value, normal_axes(axes, len(c.shape(value))), bool(keepdims)), BOOL)
    return lower


LOWER.update(dict.fromkeys(("ReduceAny", "Any", "AnyExt"), _any_all(CODE["MAX"])))
LOWER["ReduceAll"] = _any_all(CODE["MIN"])


def extreme(c: Any, value: int, largest: bool, axis: int, keepdims: bool) -> tuple[int, int]:
    """(values, positions) of the largest or smallest elements along an axis; the first one counts where several tie."""
    index = (c.argmax if largest else c.argmin)(value, axis, True)
    best = c.gather_elements(value, index, axis)
    if keepdims:
        return best, index
    flat = c.shape(best)[:axis] + c.shape(best)[axis + 1:]
    return c.reshape(best, flat), c.reshape(index, flat)


def _with_index(largest: bool, index_first: bool) -> Lowering:
    def lower(c: Any, a: Any, axis: int = 0, keepdims: bool = False) -> tuple[int, int]:
        value = c.value(a)
        if not c.shape(value):
            raise Unlowerable
        best, index = extreme(c, value, largest, normal_axis(axis, len(c.shape(value))), bool(keepdims))
        return (index, best) if index_first else (best, index)
    return lower


LOWER.update({"ArgMaxWithValue": _with_index(True, True), "ArgMinWithValue": _with_index(False, True),
              "MaxDim": _with_index(True, False), "MinDim": _with_index(False, False)})


def _arg(opcode: int) -> Lowering:
    def lower(c: Any, a: Any, axis: Any = None, dtype: Any = None) -> int:
        keepdims = dtype if isinstance(dtype, bool) else False  # ArgMaxExt(a, dim, keepdim); Argmax(a, axis, output type)
        index_dtype = I64 if dtype is None or isinstance(dtype, bool) else given_dtype(dtype)
        value = c.value(a)
        if axis is None or not c.shape(value):
            value, axis = c.reshape(value, (math.prod(c.shape(value)),)), 0
        return c.op(opcode, (value,), (int(keepdims), normal_axis(axis, len(c.shape(value)))), dtype=index_dtype)
    return lower


LOWER.update({"Argmax": _arg(CODE["ARGMAX"]), "ArgMaxExt": _arg(CODE["ARGMAX"]), "Argmin": _arg(CODE["ARGMIN"]),
              "ArgMinExt": _arg(CODE["ARGMIN"])})


# ---- constants -----------------------------------------------------------------------------------------------------------------------

def _like(fill: float | None) -> Lowering:
    def lower(c: Any, a: Any, *rest: Any) -> int:  # FullLike(a, fill, dtype), OnesLike(a), ZerosLikeExt(a, dtype)
        value = c.value(a)
        number, dtype = (float(rest[0]), rest[1]) if fill is None else (fill, rest[0] if rest else None)
        return c.full(number, c.shape(value), c.dtype(value) if dtype is None else given_dtype(dtype))
    return lower


LOWER.update({"OnesLike": _like(1.0), "ZerosLike": _like(0.0), "OnesLikeExt": _like(1.0), "ZerosLikeExt": _like(0.0),
              "FullLike": _like(None)})


@lowers("Range")
def _range(c: Any, start: Any, end: Any, step: Any, *_: Any) -> int:
    bounds = [c.operand(x) for x in (start, end, step)]
    if not all(map(is_whole, bounds)) or not bounds[2]:
        raise Unlowerable
    first, last, by = map(int, bounds)
    dtype = compat.DTYPE_OF.get(start.dtype, 0) if hasattr(start, "dtype") else I64
    if dtype not in (I32, I64):
        raise Unlowerable
    line = c.iota((max(0, -(-(last - first) // by)),), 0, dtype)
    line = line if by == 1 else c.mul(line, float(by))
    return line if first == 0 else c.add(line, float(first))


@lowers("OneHot", "OneHotExt")
def _one_hot(c: Any, index: Any, depth: int, on: Any, off: Any, axis: int = -1) -> int:
    value = c.value(index)
    rank = len(c.shape(value))
    if not isinstance(depth, int) or depth < 0:
        raise Unlowerable
    dtype = compat.DTYPE_OF.get(on.dtype, 0)
    if not dtype:
        raise Unlowerable
    result = c.one_hot(value, depth, dtype, float(c.operand(on)), float(c.operand(off)))
    if axis in (-1, rank):
        return result
    axis = normal_axis(axis, rank + 1)
    return c.transpose(result, (*range(axis), rank, *range(axis, rank)))

