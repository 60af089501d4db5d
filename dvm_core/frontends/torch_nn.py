"""The table of PyTorch, continued: what layers and losses are made of, and their gradients. Ops with several results give Parts."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .axes import normalized
from .emit import BOOL, FLOATS, I32, I64, Emitter
from .torch_index import from_the_front, integers
from .torch_ops import TABLE, Parts, Value, floats, lowers, need

# ---- activations -----------------------------------------------------------------------------------------------------------------------

@lowers("gelu.default")
def gelu(e: Emitter, a: Value, approximate: str = "none") -> int:
    """a * P(X <= a) of a normal X, or its approximation by tanh."""
    floats(e, a)
    if approximate == "tanh":
        return e.mul(e.mul(a, 0.5), e.add(e.tanh(_inner(e, a)), 1.0))
    return e.mul(a, _below(e, a))


@lowers("gelu_backward.default")
def gelu_backward(e: Emitter, g: Value, a: Value, approximate: str = "none") -> int:
    """g * (P(X <= a) + a * density at a)."""
    floats(e, g, a)
    if approximate == "tanh":
        t = e.tanh(_inner(e, a))
        slope = e.mul(e.add(e.mul(e.mul(a, a), 3 * 0.044715), 1.0), math.sqrt(2 / math.pi))
        left, right = e.mul(e.add(t, 1.0), 0.5), e.mul(e.mul(e.mul(a, 0.5), e.sub(1.0, e.mul(t, t))), slope)
        return e.mul(g, e.add(left, right))
    density = e.mul(e.exp(e.mul(e.mul(a, a), -0.5)), 1 / math.sqrt(2 * math.pi))
    return e.mul(g, e.add(_below(e, a), e.mul(a, density)))


def _below(e: Emitter, a: Value) -> int:
    return e.mul(e.add(e.erf(e.mul(a, math.sqrt(0.5))), 1.0), 0.5)


def _inner(e: Emitter, a: Value) -> int:
    return e.mul(e.add(a, e.mul(e.mul(e.mul(a, a), a), 0.044715)), math.sqrt(2 / math.pi))


# ---- normalization ---------------------------------------------------------------------------------------------------------------------

@lowers("native_layer_norm.default")
def layer_norm(e: Emitter, a: Value, shape: Sequence[int], weight: Value | None, bias: Value | None, epsilon: float) -> Parts:
    """(a - mean) / sqrt(variance + epsilon) over the last axes, times weight, plus bias; and mean and 1 / deviation."""
    floats(e, *(v for v in (a, weight, bias) if v is not None))
    axes = _last(e, a, shape)
    result, mean, _, scale = normalized(e, a, axes, float(epsilon))
    if weight is not None:
        result = e.mul(result, weight)
    if bias is not None:
        result = e.add(result, bias)
    return Parts((result, mean, scale))


@lowers("native_layer_norm_backward.default")
def layer_norm_backward(e: Emitter, g: Value, a: Value, shape: Sequence[int], mean: Value, scale: Value, weight: Value | None,
                        bias: Value | None, wanted: Sequence[bool]) -> Parts:
    """The gradients of a, weight and bias, those that are wanted."""
    floats(e, g, a, mean, scale, *(v for v in (weight, bias) if v is not None))
    axes = _last(e, a, shape)
    normal = e.mul(e.sub(a, mean), scale)
    rows = tuple(range(axes[0]))
    of_a = of_weight = of_bias = None
    if wanted[0]:
        h = g if weight is None else e.mul(g, weight)
        level = e.add(e.mean(h, axes, True), e.mul(normal, e.mean(e.mul(h, normal), axes, True)))
        of_a = e.mul(e.sub(h, level), scale)
    if wanted[1] and weight is not None:
        product = e.mul(g, normal)
        of_weight = e.sum(product, rows) if rows else product
    if wanted[2] and bias is not None:
        of_bias = e.sum(g, rows) if rows else e.copy(g)
    return Parts((of_a, of_weight, of_bias))


def _last(e: Emitter, a: Value, shape: Sequence[int]) -> tuple[int, ...]:
    rank = len(e.shape(a))
    need(len(shape) > 0)
    return tuple(range(rank - len(shape), rank))


# ---- tables and classes ----------------------------------------------------------------------------------------------------------------

@lowers("embedding.default")
def embedding(e: Emitter, weight: Value, index: Value, padding: int = -1, scaled: bool = False, sparse: bool = False) -> int:
    """The rows of weight that index names; an index below zero is out of range."""
    floats(e, weight)
    integers(e, index)
    return e.gather(weight, from_the_front(e, index, e.shape(weight)[0]), 0)


@lowers("embedding_dense_backward.default")
def embedding_backward(e: Emitter, g: Value, index: Value, rows: int, padding: int, scaled: bool) -> int:
    """The sum of g by the row that index names, none for the padding."""
    floats(e, g)
    integers(e, index)
    need(not scaled and padding < 0)
    return e.scatter_add(g, index, 0, (rows, e.shape(g)[-1]))


@lowers("nll_loss_forward.default")
def nll_loss(e: Emitter, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int) -> Parts:
    """Minus a at the target's class: of each row, their mean over the rows that are not ignored, or their sum; and the count of those.
    A class below zero is out of range, unless its row is ignored."""
    floats(e, a)
    integers(e, target)
    need(weight is None and len(e.shape(a)) == 2 and len(e.shape(target)) == 1)
    rows = e.shape(target)[0]
    counts = e.not_equal(target, float(ignored))
    nothing = e.full(0.0, (rows,), e.dtype(a))
    classes = e.select(counts, from_the_front(e, target, e.shape(a)[1]), e.full(0.0, (rows,), e.dtype(target)))
    column = e.reshape(classes, (rows, 1))
    losses = e.select(counts, e.neg(e.reshape(e.gather_elements(a, column, 1), (rows,))), nothing)
    count = e.sum(e.cast(counts, e.dtype(a)), (0,))
    if reduction == 0:
        return Parts((losses, e.full(0.0, (), e.dtype(a))))
    total = e.sum(losses, (0,))
    return Parts((e.div(total, count) if reduction == 1 else total, count))


@lowers("nll_loss_backward.default")
def nll_loss_backward(e: Emitter, g: Value, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int,
                      count: Value) -> int:
    """Minus g at the target's class, over the count for a mean; zeros elsewhere and in rows that are ignored."""
    floats(e, g, a, count)
    integers(e, target)
    need(weight is None and len(e.shape(a)) == 2 and len(e.shape(target)) == 1)
    rows, classes = e.shape(a)
    share = e.neg(e.div(g, count) if reduction == 1 else g)
    if reduction == 0:
        share = e.reshape(share, (rows, 1))
    column = e.reshape(target, (rows, 1))
    there = e.logical_and(e.equal(e.iota((rows, classes), 1, e.dtype(target)), column), e.not_equal(column, float(ignored)))
    return e.select(there, e.broadcast(share, (rows, classes)), e.full(0.0, (rows, classes), e.dtype(a)))


# ---- other dtypes ----------------------------------------------------------------------------------------------------------------------

@lowers("logical_not.default")
def logical_not(e: Emitter, a: Value) -> int:
    """not a."""
    need(isinstance(a, Value) and e.dtype(a) == BOOL)
    return e.logical_not(a)


@lowers("_to_copy.default")
def to_copy(e: Emitter, a: Value, dtype: int | None = None) -> int:
    """a in another dtype; a copy in the same one, or if none is named."""
    need(isinstance(a, Value))
    code = e.dtype(a) if dtype is None else dtype
    need({e.dtype(a), code} <= {*FLOATS, BOOL, I32, I64})
    return e.copy(a) if e.dtype(a) == code else e.cast(a, code)


TABLE["prims.convert_element_type.default"] = to_copy


@lowers("clone.default")
def clone(e: Emitter, a: Value) -> int:
    """The same elements in memory of their own."""
    floats(e, a)
    return e.copy(a)


@lowers("select_backward.default")
def select_backward(e: Emitter, g: Value, shape: Sequence[int], axis: int, index: int) -> int:
    """g at one place of an axis, zeros elsewhere."""
    floats(e, g)
    axis %= len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1:])
    return e.pad(e.reshape(g, one), tuple(index % shape[axis] if i == axis else 0 for i in range(len(shape))), tuple(shape))


@lowers("cat.default")
def cat(e: Emitter, values: Sequence[Value], axis: int = 0) -> int:
    """The values side by side along an axis."""
    floats(e, *values)
    rank = len(e.shape(values[0]))
    need(all(len(e.shape(v)) == rank for v in values))
    return e.concat(values, axis % rank)
