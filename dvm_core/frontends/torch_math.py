"""The table of PyTorch, continued: functions that are formulas, clamping, truths and whole numbers, variances, and constants.

Operands of functions are float32 or float64 (halves come as float32, see torch_halves), of truths bool, int32 or int64 too, of bits whole
numbers of any size; two operands have one dtype. Results have the operands' dtype, truths bool. `Unlowerable` is raised of other dtypes, of
whole numbers divided by a tensor, of whole numbers from 2**31 on beside bits, of axes of values without axes, and of empty results.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import functions
from .emit import BOOL, CODE, F32, F64, FLOATS, I8, I32, I64, U8, Emitter
from .torch_ops import NAMED, TABLE, Parts, Value, floats, lowers, need

_WHOLE = frozenset((BOOL, I8, U8, I32, I64))

# ---- functions -------------------------------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[[Emitter, int], int]] = {
    "tan": lambda e, a: e.tan(a), "atan": lambda e, a: e.atan(a), "trunc": lambda e, a: e.trunc(a),
    "round": lambda e, a: e.unary(CODE["ROUND"], a), "exp2": lambda e, a: e.pow(2.0, a),
    "log2": lambda e, a: e.mul(e.log(a), 1 / math.log(2)), "log10": lambda e, a: e.mul(e.log(a), 1 / math.log(10)),
    "sinh": functions.sinh, "cosh": functions.cosh, "asinh": functions.asinh, "acosh": functions.acosh, "atanh": functions.atanh,
    "asin": functions.asin, "acos": functions.acos, "erfc": functions.erfc,
    "hardsigmoid": lambda e, a: e.mul(clamped(e, e.add(a, 3.0), 0.0, 6.0), 1 / 6),
    "hardswish": lambda e, a: e.mul(e.mul(a, clamped(e, e.add(a, 3.0), 0.0, 6.0)), 1 / 6),
}


def _function(formula: Callable[[Emitter, int], int]) -> Callable[..., int]:
    def lower(e: Emitter, a: Value) -> int:
        floats(e, a)
        return formula(e, a)
    return lower


TABLE.update({f"aten.{name}.default": _function(formula) for name, formula in _FUNCTIONS.items()})


@lowers("div.Tensor_mode")
def div(e: Emitter, a: Value, b: Any, rounding_mode: str | None = None) -> int:
    """a / b, also rounded towards zero ("trunc") or down ("floor"); of whole numbers by a number."""
    if rounding_mode and isinstance(a, Value) and e.dtype(a) in (I32, I64):
        need(type(b) is int and 0 < abs(b) < 2**31)  # of 0 torch raises an error
        return e.div(a if rounding_mode == "floor" else e.sub(a, e.binary(CODE["FMOD"], a, float(b))), float(b))
    if rounding_mode == "floor":
        return _floor_quotient(e, *(Value(v) if isinstance(v, Value) else float(v) for v in (a, b)))
    result = TABLE["aten.div.Tensor"](e, a, b)
    return e.trunc(result) if rounding_mode == "trunc" else result


def _floor_quotient(e: Emitter, a: Any, b: Any) -> int:
    """The floor of a / b as PyTorch has it, by the exact remainder: the floor of the rounded quotient may be one too much."""
    floats(e, *(v for v in (a, b) if isinstance(v, Value)))
    quotient = e.div(a, b)
    shape, dtype = e.shape(quotient), e.dtype(quotient)
    rest = e.binary(CODE["FMOD"], a, b)
    whole = e.div(e.sub(a, rest), b)
    whole = e.select(_other_sign(e, rest, b), e.sub(whole, 1.0), whole)
    down = e.floor(whole)
    down = e.select(e.greater(e.sub(whole, down), 0.5), e.add(down, 1.0), down)
    down = e.select(e.equal(whole, 0.0), e.mul(quotient, 0.0), down)  # a zero with the quotient's sign
    zero = e.broadcast(e.equal(b, 0.0), shape) if isinstance(b, Value) else e.full(float(b == 0), shape, BOOL)
    return e.select(zero, quotient, e.cast(down, dtype))


def _other_sign(e: Emitter, rest: int, b: Any) -> int:
    """Whether a remainder of a division rounded towards zero has not the sign of what was divided by."""
    shape = e.shape(rest)
    negative = e.broadcast(e.less(b, 0.0), shape) if isinstance(b, Value) else e.full(float(b < 0), shape, BOOL)
    return e.logical_and(e.not_equal(rest, 0.0), e.not_equal(e.less(rest, 0.0), negative))


_whole_remainder = TABLE["aten.remainder.Tensor"]


@lowers("remainder.Tensor")
@lowers("remainder.Scalar")
def remainder(e: Emitter, a: Any, b: Any) -> int:
    """What is left of a divided by b, rounded down; a zero has a's sign."""
    if not any(isinstance(v, Value) and e.dtype(v) in (F32, F64) for v in (a, b)):
        return _whole_remainder(e, a, b)
    rest = TABLE["aten.fmod.Tensor"](e, a, b)
    divisor = Value(e.cast(b, e.dtype(rest))) if isinstance(b, Value) else float(b)
    return e.select(_other_sign(e, rest, divisor), e.add(rest, divisor), rest)


NAMED["aten.div.Tensor_mode"], NAMED["aten.addcmul.default"] = frozenset({"rounding_mode"}), frozenset({"value"})


@lowers("addcmul.default")
def addcmul(e: Emitter, a: Value, b: Value, c: Value, value: float = 1) -> int:
    """a + value * b * c."""
    floats(e, a, b, c)
    return e.add(a, e.mul(b if value == 1 else e.mul(b, float(value)), c))


@lowers("log_sigmoid_forward.default")
def log_sigmoid(e: Emitter, a: Value) -> Parts:
    """ln sigmoid a; and what PyTorch's gradient on a CPU reads, e ** -|a|."""
    floats(e, a)
    buffer = e.exp(e.neg(e.abs(a)))
    return Parts((e.sub(e.minimum(a, 0.0), e.log1p(buffer)), buffer))


@lowers("log_sigmoid_backward.default")
def log_sigmoid_backward(e: Emitter, g: Value, a: Value, buffer: Value) -> int:
    """g * sigmoid -a."""
    floats(e, g, a)
    return e.mul(g, e.sigmoid(e.neg(a)))


# ---- kinks -----------------------------------------------------------------------------------------------------------------------------

def clamped(e: Emitter, a: int, low: Any, high: Any) -> int:
    """a between two numbers or values, either of which may be None."""
    a = a if low is None else e.maximum(a, low)
    return a if high is None else e.minimum(a, high)


@lowers("clamp.default")
@lowers("clamp.Tensor")
@lowers("clamp_min.default")
@lowers("hardtanh.default")
def clamp(e: Emitter, a: Value, low: Any = None, high: Any = None, **named: Any) -> int:
    """a between low and high, each a number or a tensor."""
    low, high = named.get("min", low), named.get("max", high)
    if isinstance(a, Value) and e.dtype(a) in (I32, I64):
        need(all(v is None or (type(v) is int and abs(v) < 2**31) for v in (low, high)))
        return clamped(e, e.copy(a) if low is None is high else a, *(v if v is None else float(v) for v in (low, high)))
    floats(e, *(v for v in (a, low, high) if isinstance(v, Value)))
    return clamped(e, a, *(v if v is None or isinstance(v, Value) else float(v) for v in (low, high)))


@lowers("clamp_max.default")
def clamp_max(e: Emitter, a: Value, high: float) -> int:
    """min(a, high)."""
    return clamp(e, a, None, high)


NAMED["aten.clamp.default"] = NAMED["aten.clamp.Tensor"] = frozenset({"min", "max"})


def _unless_nan(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Value, b: Value) -> int:
        floats(e, a, b)
        best = e.binary(CODE[code], a, b)
        shape = e.shape(best)
        one, other = (v if e.shape(v) == shape else e.broadcast(v, shape) for v in (a, b))
        return e.select(e.equal(one, one), e.select(e.equal(other, other), best, one), other)
    return lower


TABLE["aten.fmax.default"], TABLE["aten.fmin.default"] = _unless_nan("MAXIMUM"), _unless_nan("MINIMUM")


@lowers("hardtanh_backward.default")
def hardtanh_backward(e: Emitter, g: Value, a: Value, low: float, high: float) -> int:
    """g between low and high and where a is NaN, 0 elsewhere."""
    floats(e, g, a)
    outside = e.logical_or(e.less_equal(a, float(low)), e.greater_equal(a, float(high)))
    return e.select(outside, e.full(0.0, e.shape(g), e.dtype(g)), g)


@lowers("leaky_relu.default")
def leaky_relu(e: Emitter, a: Value, slope: float = 0.01) -> int:
    """a above 0, slope * a below."""
    floats(e, a)
    return e.select(e.greater(a, 0.0), a, e.mul(a, float(slope)))


@lowers("leaky_relu_backward.default")
def leaky_relu_backward(e: Emitter, g: Value, a: Value, slope: float, of_result: bool) -> int:
    """g where a is above 0, slope * g below."""
    floats(e, g, a)
    return e.select(e.greater(a, 0.0), g, e.mul(g, float(slope)))


@lowers("elu.default")
def elu(e: Emitter, a: Value, alpha: float = 1, scale: float = 1, inner: float = 1) -> int:
    """scale * a above 0, scale * alpha * (e ** (inner * a) - 1) below."""
    floats(e, a)
    below = e.mul(e.expm1(e.mul(e.minimum(a, 0.0), float(inner))), float(alpha * scale))
    return e.select(e.greater(a, 0.0), e.mul(a, float(scale)), below)


@lowers("elu_backward.default")
def elu_backward(e: Emitter, g: Value, alpha: float, scale: float, inner: float, of_result: bool, a: Value) -> int:
    """g times elu's slope, at its operand or at its result."""
    floats(e, g, a)
    if of_result:
        below = e.mul(e.add(a, float(alpha * scale)), float(inner))
    else:
        below = e.mul(e.exp(e.mul(e.minimum(a, 0.0), float(inner))), float(inner * alpha * scale))
    return e.mul(g, e.select(e.greater(a, 0.0), e.full(float(scale), e.shape(a), e.dtype(a)), below))


@lowers("hardswish_backward.default")
def hardswish_backward(e: Emitter, g: Value, a: Value) -> int:
    """g times hardswish's slope."""
    floats(e, g, a)
    slope = e.select(e.less(a, 3.0), e.add(e.mul(a, 1 / 3), 0.5), e.full(1.0, e.shape(a), e.dtype(a)))
    return e.mul(g, e.select(e.less_equal(a, -3.0), e.full(0.0, e.shape(a), e.dtype(a)), slope))


@lowers("hardsigmoid_backward.default")
def hardsigmoid_backward(e: Emitter, g: Value, a: Value) -> int:
    """g / 6 between -3 and 3."""
    floats(e, g, a)
    inside = e.logical_and(e.greater(a, -3.0), e.less(a, 3.0))
    return e.select(inside, e.mul(g, 1 / 6), e.full(0.0, e.shape(g), e.dtype(g)))


# ---- truths and whole numbers ----------------------------------------------------------------------------------------------------------

def _truth(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Value) -> int:
        floats(e, a)
        return e.unary(CODE[code], a)
    return lower


for _name, _code in {"isnan": "IS_NAN", "isinf": "IS_INF", "isfinite": "IS_FINITE"}.items():
    TABLE[f"aten.{_name}.default"] = _truth(_code)


def _true(e: Emitter, a: Any) -> int:
    need(isinstance(a, Value) and e.dtype(a) in (BOOL, F32, F64, I32, I64))
    return a if e.dtype(a) == BOOL else e.not_equal(a, 0.0)


def _connective(name: str, both: Callable[[Emitter, int, int], int]) -> None:
    @lowers(f"logical_{name}.default")
    def lower(e: Emitter, a: Value, b: Value) -> int:
        return both(e, _true(e, a), _true(e, b))


_connective("and", lambda e, a, b: e.logical_and(a, b))
_connective("or", lambda e, a, b: e.logical_or(a, b))
_connective("xor", lambda e, a, b: e.binary(CODE["BIT_XOR"], a, b))


def _bits(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Any, b: Any) -> int:
        values = [v for v in (a, b) if isinstance(v, Value)]
        numbers = [v for v in (a, b) if not isinstance(v, Value)]
        need(len({e.dtype(v) for v in values}) == 1 and e.dtype(values[0]) in _WHOLE)
        need(all(type(v) is int and abs(v) < 2**31 for v in numbers) and not (numbers and e.dtype(values[0]) == BOOL))
        return e.binary(CODE[code], *(v if isinstance(v, Value) else float(v) for v in (a, b)))
    return lower


for _name, _code in {"and": "BIT_AND", "or": "BIT_OR", "xor": "BIT_XOR"}.items():
    for _kind in ("Tensor", "Scalar", "Scalar_Tensor"):
        TABLE[f"aten.bitwise_{_name}.{_kind}"] = _bits(_code)


@lowers("bitwise_not.default")
def bitwise_not(e: Emitter, a: Value) -> int:
    """Every bit of a inverted; not a of a truth."""
    need(isinstance(a, Value) and e.dtype(a) in _WHOLE)
    return e.unary(CODE["BIT_NOT"], a)


@lowers("any.default")
@lowers("any.dim")
@lowers("any.dims")
def any_(e: Emitter, a: Value, axes: Sequence[int] | int | None = None, keepdims: bool = False) -> int:
    """Whether one of the elements over some axes is not 0."""
    return _count(e, _true(e, a), axes, keepdims, lambda count: e.greater(count, 0.0))


def _count(e: Emitter, truth: int, axes: Sequence[int] | int | None, keepdims: bool, then: Callable[[int], int]) -> int:
    rank = len(e.shape(truth))
    chosen = tuple(range(rank)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    if rank == 0:
        return e.copy(truth)
    return then(e.sum(e.cast(truth, I32), chosen or tuple(range(rank)), keepdims))


# ---- over axes -------------------------------------------------------------------------------------------------------------------------

def _variance(e: Emitter, a: Value, axes: Sequence[int] | None, correction: float | None, keepdims: bool) -> tuple[int, int]:
    floats(e, a)
    rank = len(e.shape(a))
    need(rank > 0)
    chosen = tuple(axis % rank for axis in axes) if axes else tuple(range(rank))
    count = math.prod(e.shape(a)[axis] for axis in chosen)
    rest = count - (1 if correction is None else correction)
    need(rest > 0)
    mean = e.mean(a, chosen, True)
    low = e.sub(a, mean)
    variance = e.div(e.sum(e.mul(low, low), chosen, keepdims), float(rest))
    return variance, mean if keepdims else e.reshape(mean, e.shape(variance))


@lowers("var.correction")
def var(e: Emitter, a: Value, axes: Sequence[int] | None = None, correction: float | None = None, keepdim: bool = False) -> int:
    """The mean of squared distances from the mean over some axes, of `correction` elements less (1 if None)."""
    return _variance(e, a, axes, correction, keepdim)[0]


@lowers("var_mean.correction")
def var_mean(e: Emitter, a: Value, axes: Sequence[int] | None = None, correction: float | None = None, keepdim: bool = False) -> Parts:
    """That, and the mean."""
    return Parts(_variance(e, a, axes, correction, keepdim))


NAMED["aten.var.correction"] = NAMED["aten.var_mean.correction"] = frozenset({"correction", "keepdim"})


@lowers("linalg_vector_norm.default")
def vector_norm(e: Emitter, a: Value, order: float = 2, axes: Sequence[int] | None = None, keepdims: bool = False) -> int:
    """The norm of some axes: Euclidean, sum, largest or smallest of sizes, how many are not 0, or the sum of powers' root."""
    floats(e, a)
    rank = len(e.shape(a))
    need(rank > 0)
    chosen = tuple(axes) if axes else tuple(range(rank))
    if order == 2:
        return e.sqrt(e.sum(e.mul(a, a), chosen, keepdims))
    if order == 0:
        return e.sum(e.cast(e.not_equal(a, 0.0), e.dtype(a)), chosen, keepdims)
    size = e.abs(a)
    if math.isinf(order):
        return (e.max if order > 0 else e.min)(size, chosen, keepdims)
    total = e.sum(size if order == 1 else e.pow(size, float(order)), chosen, keepdims)
    return total if order == 1 else e.pow(total, 1 / order)


@lowers("prod.default")
@lowers("prod.dim_int")
def prod(e: Emitter, a: Value, axis: int | None = None, keepdims: bool = False) -> int:
    """The product over an axis, or all."""
    floats(e, a)
    need(bool(e.shape(a)))
    return e.prod(a, range(len(e.shape(a))) if axis is None else (axis,), keepdims)


# ---- constants -------------------------------------------------------------------------------------------------------------------------

def _filled(e: Emitter, shape: Sequence[int], value: float, dtype: int) -> int:
    need(0 not in shape and dtype in (*FLOATS, BOOL, I32, I64) and (dtype in FLOATS or abs(value) < 2**53))
    return e.full(float(value), tuple(shape), dtype)


def _dtype_of(value: float) -> int:
    return BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F32 if torch.get_default_dtype() == torch.float32 else 0


@lowers("full.default")
def full(e: Emitter, shape: Sequence[int], value: float, dtype: int | None = None) -> int:
    """A number in every element."""
    return _filled(e, shape, value, _dtype_of(value) if dtype is None else dtype)


@lowers("scalar_tensor.default")
def scalar(e: Emitter, value: float, dtype: int | None = None) -> int:
    """A number."""
    return _filled(e, (), value, (_dtype_of(0.0) if dtype is None else dtype))


@lowers("full_like.default")
def full_like(e: Emitter, a: Value, value: float, dtype: int | None = None) -> int:
    """A number in every element of a's shape."""
    return _filled(e, e.shape(a), value, e.dtype(a) if dtype is None else dtype)


@lowers("empty.memory_format")
@lowers("empty_permuted.default")
@lowers("new_empty_strided.default")
def empty(e: Emitter, *args: Any, dtype: int | None = None) -> int:
    """Zeros, where PyTorch leaves what was there."""
    given, shape = (args[0], args[1]) if isinstance(args[0], Value) else (None, args[0])
    return _filled(e, shape, 0.0, dtype or (_dtype_of(0.0) if given is None else e.dtype(given)))


@lowers("copy.default")
def copy(e: Emitter, a: Value, b: Value) -> int:
    """b in a's shape and dtype."""
    need(isinstance(b, Value) and {e.dtype(a), e.dtype(b)} <= {*FLOATS, BOOL, I32, I64})
    value = Value(e.cast(b, e.dtype(a))) if e.dtype(a) != e.dtype(b) else b
    return e.copy(value) if e.shape(value) == e.shape(a) else e.broadcast(value, e.shape(a))


@lowers("arange.start_step")
def arange(e: Emitter, start: float, end: float, step: float = 1, dtype: int | None = None) -> int:
    """start, start + step ... before end; of whole numbers only."""
    numbers = (start, end, step)
    need(all(abs(v) < 2**31 and v == int(v) for v in numbers) and step != 0 and dtype in (None, I64, I32, *FLOATS))
    if dtype is None:
        dtype = I64 if all(type(v) is int for v in numbers) else _dtype_of(0.0)
    count = len(range(int(start), int(end), int(step)))
    need(count > 0)
    value = e.iota((count,), 0, I64)
    value = value if step == 1 else e.mul(value, float(step))
    return e.cast(value if start == 0 else e.add(value, float(start)), dtype)


for _name in ("empty.memory_format", "empty_permuted.default", "new_empty_strided.default",
              "full.default", "scalar_tensor.default", "full_like.default", "arange.start_step"):
    NAMED[f"aten.{_name}"] = frozenset({"dtype"})


# ---- masks -----------------------------------------------------------------------------------------------------------------------------

@lowers("native_dropout_backward.default")
def dropout_backward(e: Emitter, g: Value, mask: Value, scale: float) -> int:
    """g where the mask is, times a number."""
    floats(e, g)
    need(e.dtype(mask) == BOOL)
    return e.mul(e.mul(g, e.cast(mask, e.dtype(g))), float(scale))
