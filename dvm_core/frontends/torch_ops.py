"""The table of PyTorch: aten op -> our instructions. What is not in it, or not of a kind it takes, is run by torch."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .emit import BOOL, CODE, F32, F64, I32, I64, Emitter

TABLE: dict[str, Callable[..., Any]] = {}  # "aten.mul.Tensor" -> lowering(emitter, *args): a value id
# Named arguments that a lowering takes; dtype as our code.
NAMED = {"aten.gelu.default": frozenset({"approximate"}), "aten.gelu_backward.default": frozenset({"approximate"}),
         "aten._to_copy.default": frozenset({"dtype"}), "aten.addmm.default": frozenset({"beta", "alpha"})}
NOTHING = frozenset(("aten.native_batch_norm_backward.default",))  # an empty tensor is none to them
# Of a tensor in memory these are torch's own views: no work.
VIEWS = frozenset(f"aten.{name}" for name in ("view.default", "_unsafe_view.default", "t.default", "transpose.int", "permute.default",
                                              "unsqueeze.default", "expand.default",
                                              "alias.default", "squeeze.dims", "squeeze.dim", "squeeze.default", "detach.default",
                                              "diagonal.default", "unfold.default", "split.Tensor", "unbind.int",
                                              "select.int", "slice.Tensor", "split_with_sizes.default"))


class Unlowerable(Exception):
    """No instructions of ours give what torch gives here."""


class Value(int):
    """A value id, to tell it from a number."""


class Parts(tuple):
    """The results of an op that has several: values, None where one is not computed."""


def need(holds: bool) -> None:
    if not holds:
        raise Unlowerable


def floats(e: Emitter, *values: Any) -> None:
    # Halves come as float32, see torch_halves.
    need(all(isinstance(v, Value) for v in values) and len({e.dtype(v) for v in values}) == 1 and e.dtype(values[0]) in (F32, F64))


def _unary(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Value) -> int:
        if code not in ("NEG", "ABS") or e.dtype(a) not in (I32, I64):
            floats(e, a)
        return e.unary(CODE[code], a)
    return lower


def _alike(e: Emitter, values: list[Value]) -> dict[Value, Value]:
    """The values in the dtype that PyTorch computes in: floats go before whole numbers, and among these values with axes before others."""
    codes = {e.dtype(v) for v in values}
    if codes <= {F32} or codes <= {F64}:
        return {v: v for v in values}
    need(codes <= {F32, F64, BOOL, I32, I64})
    for kinds in ((F64, F32), (I64, I32)):
        among = [v for v in values if e.dtype(v) in kinds]
        deciding = [e.dtype(v) for v in among if e.shape(v)] or [e.dtype(v) for v in among]
        if deciding:
            return {v: Value(e.cast(v, kinds[kinds[0] not in deciding])) for v in values}
    raise Unlowerable


# Of whole numbers, too. Not a division, which gives a float.
_WHOLE = frozenset(("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "FMOD", "REMAINDER", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER",
                    "GREATER_EQUAL"))


_DEFAULT = {torch.float32: F32, torch.float64: F64}


def _binary(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Any, b: Any) -> int:
        values = [v for v in (a, b) if isinstance(v, Value)]
        numbers = [v for v in (a, b) if not isinstance(v, Value)]
        need(bool(values) and all(type(v) in (int, float) for v in numbers))
        whole = code in _WHOLE and all(type(v) is int and abs(v) < 2**31 for v in numbers)
        if code == "MUL" and not numbers and all(e.dtype(v) == BOOL for v in values):
            return e.logical_and(a, b)
        default = _DEFAULT.get(torch.get_default_dtype(), 0)
        if (code == "DIV" or any(type(v) is float for v in numbers)) and default and {e.dtype(v) for v in values} <= {BOOL, I32, I64}:
            alike = {v: Value(e.cast(v, default)) for v in values}  # whole numbers meet a float
        elif numbers and e.dtype(values[0]) == BOOL:
            alike = {values[0]: Value(e.cast(values[0], I64))}
        else:
            alike = _alike(e, values)
        floating = all(e.dtype(v) in (F32, F64) for v in alike.values())
        need(floating or code not in ("FMOD", "REMAINDER") or (not isinstance(b, Value) and b != 0))  # of 0 torch raises an error
        need(whole or floating)
        return e.binary(CODE[code], *(alike[v] if isinstance(v, Value) else float(v) for v in (a, b)))
    return lower


for _name, _code in {"neg": "NEG", "abs": "ABS", "exp": "EXP", "log": "LOG", "sqrt": "SQRT", "rsqrt": "RSQRT", "reciprocal": "RECIPROCAL",
                     "tanh": "TANH", "erf": "ERF", "sigmoid": "SIGMOID", "sin": "SIN", "cos": "COS", "floor": "FLOOR", "ceil": "CEIL",
                     "log1p": "LOG1P", "expm1": "EXPM1"}.items():
    TABLE[f"aten.{_name}.default"] = _unary(_code)
_COMPARES = {"eq": "EQUAL", "ne": "NOT_EQUAL", "lt": "LESS", "le": "LESS_EQUAL", "gt": "GREATER", "ge": "GREATER_EQUAL"}
COMPARISONS = frozenset(f"aten.{name}.Scalar" for name in _COMPARES)
for _name, _code in {"add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", **_COMPARES}.items():
    TABLE[f"aten.{_name}.Tensor"] = TABLE[f"aten.{_name}.Scalar"] = _binary(_code)
for _name, _code in {"fmod": "FMOD", "remainder": "REMAINDER"}.items():
    TABLE[f"aten.{_name}.Tensor"] = TABLE[f"aten.{_name}.Scalar"] = _binary(_code)
ARITHMETIC = frozenset((*(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div", "true_divide", "fmod", "remainder", *_COMPARES)),
                        "aten.pow.Tensor_Tensor", "aten.maximum.default", "aten.minimum.default"))  # of two tensors, also of other dtypes
TABLE["aten.true_divide.Tensor"] = TABLE["aten.div.Tensor"]
TABLE["aten.pow.Tensor_Tensor"] = _binary("POW")
TABLE["aten.maximum.default"], TABLE["aten.minimum.default"] = _binary("MAXIMUM"), _binary("MINIMUM")


def lowers(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a lowering under an aten overload's name."""
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        TABLE[f"aten.{name}"] = function
        return function
    return register


@lowers("sign.default")
def sign(e: Emitter, a: Value) -> int:
    """-1, 0 or 1; 0 of NaN."""
    floats(e, a)
    return e.select(e.equal(a, a), e.sign(a), e.full(0.0, e.shape(a), e.dtype(a)))


@lowers("pow.Tensor_Scalar")
def power(e: Emitter, a: Value, exponent: float) -> int:
    """a ** exponent; the powers that PyTorch computes by other means are computed by these."""
    floats(e, a)
    special = {2.0: lambda: e.mul(a, a), 3.0: lambda: e.mul(e.mul(a, a), a), 0.5: lambda: e.sqrt(a), -0.5: lambda: e.rsqrt(a),
               -1.0: lambda: e.reciprocal(a), -2.0: lambda: e.reciprocal(e.mul(a, a))}
    return special.get(float(exponent), lambda: e.pow(a, float(exponent)))()


@lowers("pow.Scalar")
def power_of(e: Emitter, base: float, a: Value) -> int:
    """base ** a."""
    floats(e, a)
    return e.pow(float(base), a)


@lowers("relu.default")
def relu(e: Emitter, a: Value) -> int:
    """max(a, 0)."""
    floats(e, a)
    return e.maximum(a, 0.0)


@lowers("silu.default")
def silu(e: Emitter, a: Value) -> int:
    """a * sigmoid a."""
    floats(e, a)
    return e.mul(a, e.sigmoid(a))


@lowers("silu_backward.default")
def silu_backward(e: Emitter, g: Value, a: Value) -> int:
    """g * s * (1 + a * (1 - s)), s = sigmoid a."""
    floats(e, g, a)
    s = e.sigmoid(a)
    return e.mul(e.mul(g, s), e.add(e.mul(a, e.sub(1.0, s)), 1.0))


@lowers("threshold_backward.default")
def threshold_backward(e: Emitter, g: Value, a: Value, threshold: float) -> int:
    """g where a is above the threshold (or NaN), else 0."""
    floats(e, g, a)
    need(e.shape(g) == e.shape(a))
    return e.select(e.less_equal(a, float(threshold)), e.full(0.0, e.shape(g), e.dtype(g)), g)


@lowers("tanh_backward.default")
def tanh_backward(e: Emitter, g: Value, r: Value) -> int:
    """g * (1 - r * r)."""
    floats(e, g, r)
    return e.mul(g, e.sub(1.0, e.mul(r, r)))


@lowers("sigmoid_backward.default")
def sigmoid_backward(e: Emitter, g: Value, r: Value) -> int:
    """g * (1 - r) * r."""
    floats(e, g, r)
    return e.mul(e.mul(g, e.sub(1.0, r)), r)


@lowers("where.self")
def where(e: Emitter, condition: Value, a: Value, b: Value) -> int:
    """condition ? a : b, each broadcast to the shape of all."""
    floats(e, a, b)
    need(isinstance(condition, Value) and e.dtype(condition) == BOOL)
    shape = np.broadcast_shapes(*(e.shape(v) for v in (condition, a, b)))
    return e.select(*(v if e.shape(v) == shape else e.broadcast(v, shape) for v in (condition, a, b)))


# ---- products ------------------------------------------------------------------------------------------------------------------------

@lowers("mm.default")
@lowers("bmm.default")
def matmul(e: Emitter, a: Value, b: Value) -> int:
    """a @ b."""
    floats(e, a, b)
    return e.matmul(a, b)


@lowers("addmm.default")
def addmm(e: Emitter, bias: Value, a: Value, b: Value, beta: float = 1, alpha: float = 1) -> int:
    """beta * bias + alpha * a @ b; of beta 0 the bias is not looked at."""
    floats(e, bias, a, b)
    product = e.matmul(a, b) if alpha == 1 else e.mul(e.matmul(a, b), float(alpha))
    if beta == 0:
        return product
    return e.add(product, bias if beta == 1 else e.mul(bias, float(beta)))


# ---- reductions ----------------------------------------------------------------------------------------------------------------------

def _reduction(code: str) -> Callable[..., int]:
    def lower(e: Emitter, a: Value, axes: Sequence[int] | None = None, keepdims: bool = False) -> int:
        if code == "SUM" and isinstance(a, Value) and e.dtype(a) in (BOOL, I32):
            a = Value(e.cast(a, I64))  # counts are whole numbers
        elif code != "SUM" or not isinstance(a, Value) or e.dtype(a) != I64:
            floats(e, a)
        rank = len(e.shape(a))
        return e.reduce(CODE[code], a, axes or range(rank), keepdims) if rank else e.copy(a)
    return lower


for _name, _code in {"sum.default": "SUM", "sum.dim_IntList": "SUM", "mean.default": "MEAN", "mean.dim": "MEAN", "amax.default": "MAX",
                     "amin.default": "MIN"}.items():
    TABLE[f"aten.{_name}"] = _reduction(_code)


@lowers("_softmax.default")
def softmax(e: Emitter, a: Value, axis: int, half_to_float: bool) -> int:
    """e ** (a - max) over its sum."""
    floats(e, a)
    need(bool(e.shape(a)))
    power = e.exp(e.sub(a, e.max(a, (axis,), True)))
    return e.div(power, e.sum(power, (axis,), True))


@lowers("_log_softmax.default")
def log_softmax(e: Emitter, a: Value, axis: int, half_to_float: bool) -> int:
    """a - max - ln of the sum of e ** (a - max)."""
    floats(e, a)
    need(bool(e.shape(a)))
    low = e.sub(a, e.max(a, (axis,), True))
    return e.sub(low, e.log(e.sum(e.exp(low), (axis,), True)))


@lowers("_softmax_backward_data.default")
def softmax_backward(e: Emitter, g: Value, r: Value, axis: int, dtype: Any) -> int:
    """r * g - r * sum(r * g)."""
    floats(e, g, r)
    product = e.mul(g, r)
    return e.sub(product, e.mul(r, e.sum(product, (axis,), True)))


@lowers("_log_softmax_backward_data.default")
def log_softmax_backward(e: Emitter, g: Value, r: Value, axis: int, dtype: Any) -> int:
    """g - e ** r * sum(g)."""
    floats(e, g, r)
    return e.sub(g, e.mul(e.exp(r), e.sum(g, (axis,), True)))


# ---- views of values that are not in memory yet --------------------------------------------------------------------------------------

@lowers("view.default")
@lowers("_unsafe_view.default")
def view(e: Emitter, a: Value, shape: Sequence[int]) -> int:
    """The same elements in another shape; one extent may be -1."""
    known = math.prod(n for n in shape if n != -1)
    return e.reshape(a, tuple(math.prod(e.shape(a)) // known if n == -1 else n for n in shape))


@lowers("permute.default")
def permute(e: Emitter, a: Value, axes: Sequence[int]) -> int:
    """Axes in another order."""
    return e.transpose(a, tuple(axis % len(axes) for axis in axes))


@lowers("t.default")
def t(e: Emitter, a: Value) -> int:
    """The transpose of a matrix."""
    need(len(e.shape(a)) == 2)
    return e.transpose(a, (1, 0))


@lowers("transpose.int")
def transpose(e: Emitter, a: Value, first: int, second: int) -> int:
    """Two axes exchanged."""
    order = list(range(len(e.shape(a))))
    need(bool(order))
    order[first], order[second] = order[second], order[first]
    return e.transpose(a, tuple(order))


@lowers("unsqueeze.default")
def unsqueeze(e: Emitter, a: Value, axis: int) -> int:
    """An axis of extent 1 more."""
    shape = list(e.shape(a))
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
    return e.reshape(a, tuple(shape))


@lowers("expand.default")
def expand(e: Emitter, a: Value, shape: Sequence[int]) -> int:
    """Broadcast; -1 keeps an extent."""
    own = (1,) * (len(shape) - len(e.shape(a))) + e.shape(a)
    return e.broadcast(a, tuple(o if n == -1 else n for n, o in zip(shape, own, strict=True)))


@lowers("lift_fresh_copy.default")
def fresh(e: Emitter, a: Value) -> int:
    """A constant of the graph as a value of its own."""
    return e.copy(a)


@lowers("alias.default")
@lowers("detach.default")
def alias(e: Emitter, a: Value) -> int:
    """The same elements as another value: a graph may return both."""
    return e.reshape(a, e.shape(a))


@lowers("squeeze.default")
@lowers("squeeze.dim")
@lowers("squeeze.dims")
def squeeze(e: Emitter, a: Value, axes: Sequence[int] | int | None = None) -> int:
    """Those of the axes (or of all) gone whose extent is 1."""
    rank = len(e.shape(a))
    chosen = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    gone = {axis % rank for axis in chosen} if rank else set()
    return e.reshape(a, tuple(n for axis, n in enumerate(e.shape(a)) if axis not in gone or n != 1))


@lowers("slice.Tensor")
def slice_(e: Emitter, a: Value, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> int:
    """As Python slices along an axis; an empty result is torch's."""
    shape = list(e.shape(a))
    taken = range(shape[axis])[start:end:step]
    need(len(taken) > 0)
    pairs = [(0, 1)] * len(shape)
    shape[axis], pairs[axis] = len(taken), (taken.start, step)
    return e.slice(a, tuple(n for pair in pairs for n in pair), tuple(shape))


@lowers("split_with_sizes.default")
def split_with_sizes(e: Emitter, a: Value, sizes: Sequence[int], axis: int = 0) -> Parts:
    """Neighbouring parts of an axis, of these extents."""
    ends = list(itertools.accumulate(sizes))
    return Parts(Value(slice_(e, a, axis, end - size, end)) for size, end in zip(sizes, ends, strict=True))


@lowers("split.Tensor")
def split(e: Emitter, a: Value, size: int, axis: int = 0) -> Parts:
    """Neighbouring parts of an axis, of one extent but for the last."""
    extent = e.shape(a)[axis]
    need(size > 0)
    return split_with_sizes(e, a, [min(size, extent - start) for start in range(0, extent, size)], axis)


@lowers("unbind.int")
def unbind(e: Emitter, a: Value, axis: int = 0) -> Parts:
    """Each position along an axis, which goes."""
    return Parts(Value(select(e, a, axis, at)) for at in range(e.shape(a)[axis]))


@lowers("select.int")
def select(e: Emitter, a: Value, axis: int, index: int) -> int:
    """One position along an axis, which goes."""
    shape = e.shape(a)
    axis %= len(shape)
    at = index % shape[axis]
    return e.reshape(slice_(e, a, axis, at, at + 1), shape[:axis] + shape[axis + 1:])
