"""The table of PyTorch, continued: what layers and losses are made of, and their gradients. Ops with several results give Parts."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .axes import normalized
from .emit import BOOL, F32, F64, FLOATS, I32, I64, Emitter
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
    need(not scaled)
    if padding >= 0:
        none = e.broadcast(e.reshape(e.equal(index, float(padding)), (*e.shape(index), 1)), e.shape(g))
        g = Value(e.select(none, e.full(0.0, e.shape(g), e.dtype(g)), g))
    return e.scatter_add(g, index, 0, (rows, e.shape(g)[-1]))


@lowers("nll_loss_forward.default")
def nll_loss(e: Emitter, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int) -> Parts:
    """Minus a at the target's class, times the class's weight: of each row, their mean over the rows that are not ignored, or their sum;
    and the count of those, or their weights' sum. A class below zero is out of range, unless its row is ignored."""
    floats(e, *(v for v in (a, weight) if v is not None))
    integers(e, target)
    need(len(e.shape(a)) == 2 and len(e.shape(target)) == 1)
    rows = e.shape(target)[0]
    counts = e.not_equal(target, float(ignored))
    nothing = e.full(0.0, (rows,), e.dtype(a))
    classes = e.select(counts, from_the_front(e, target, e.shape(a)[1]), e.full(0.0, (rows,), e.dtype(target)))
    column = e.reshape(classes, (rows, 1))
    loss, share = e.neg(e.reshape(e.gather_elements(a, column, 1), (rows,))), e.cast(counts, e.dtype(a))
    if weight is not None:
        share = e.select(counts, e.gather(weight, classes, 0), nothing)
        loss = e.mul(loss, share)
    losses, count = e.select(counts, loss, nothing), e.sum(share, (0,))
    if reduction == 0:
        return Parts((losses, e.full(0.0, (), e.dtype(a))))
    total = e.sum(losses, (0,))
    return Parts((e.div(total, count) if reduction == 1 else total, count))


@lowers("nll_loss_backward.default")
def nll_loss_backward(e: Emitter, g: Value, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int,
                      count: Value) -> int:
    """Minus g at the target's class, times the class's weight, over the count for a mean; zeros elsewhere and in rows that are ignored."""
    floats(e, *(v for v in (g, a, count, weight) if v is not None))
    integers(e, target)
    need(len(e.shape(a)) == 2 and len(e.shape(target)) == 1)
    rows, classes = e.shape(a)
    share = e.neg(e.div(g, count) if reduction == 1 else g)
    if reduction == 0:
        share = e.reshape(share, (rows, 1))
    column = e.reshape(target, (rows, 1))
    there = e.logical_and(e.equal(e.iota((rows, classes), 1, e.dtype(target)), column), e.not_equal(column, float(ignored)))
    value = e.broadcast(share, (rows, classes))
    return e.select(there, value if weight is None else e.mul(value, weight), e.full(0.0, (rows, classes), e.dtype(a)))


def _rows(e: Emitter, a: Value) -> Value:
    """[images, classes, height, width] as rows of classes."""
    return Value(e.reshape(e.transpose(a, (0, 2, 3, 1)), (math.prod(e.shape(a)) // e.shape(a)[1], e.shape(a)[1])))


@lowers("nll_loss2d_forward.default")
def nll_loss2d(e: Emitter, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int) -> Parts:
    """The same of each element of images [images, classes, height, width]."""
    need(len(e.shape(a)) == 4 and len(e.shape(target)) == 3)
    shape = e.shape(target)
    found = nll_loss(e, _rows(e, a), Value(e.reshape(target, (math.prod(shape),))), weight, reduction, ignored)
    return found if reduction else Parts((e.reshape(found[0], shape), found[1]))


@lowers("nll_loss2d_backward.default")
def nll_loss2d_backward(e: Emitter, g: Value, a: Value, target: Value, weight: Value | None, reduction: int, ignored: int,
                        count: Value) -> int:
    """The same of each element of images [images, classes, height, width]."""
    need(len(e.shape(a)) == 4 and len(e.shape(target)) == 3)
    images, classes, height, width = e.shape(a)
    flat = Value(e.reshape(target, (images * height * width,)))
    of_each = g if reduction else Value(e.reshape(g, e.shape(flat)))
    rows = nll_loss_backward(e, of_each, _rows(e, a), flat, weight, reduction, ignored, count)
    return e.transpose(e.reshape(rows, (images, height, width, classes)), (0, 3, 1, 2))


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
    need(isinstance(a, Value) and e.dtype(a) in (F32, F64, BOOL, I32, I64))
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
