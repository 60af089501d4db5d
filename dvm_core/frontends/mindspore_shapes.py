"""Lowerings of MindSpore's ops that change shapes or move data. Views get memory of their own: no two tensors share an address."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .axes import part, repeated
from .emit import CODE, I64
from .lowering import Unlowerable, lowers, normal_axis, unify


@lowers("Reshape", "View")
def reshape(c: Any, a: Any, shape: Sequence[int]) -> int:
    value = c.value(a)
    if -1 in shape:
        shape = list(shape)
        rest = math.prod(extent for extent in shape if extent != -1)
        if shape.count(-1) > 1 or not rest:
            raise Unlowerable
        shape[shape.index(-1)] = math.prod(c.shape(value)) // rest
    return c.reshape(value, tuple(shape))


@lowers("Flatten")
def _flatten(c: Any, a: Any) -> int:
    value = c.value(a)
    shape = c.shape(value)
    return c.reshape(value, (shape[0] if shape else 1, math.prod(shape[1:])))


@lowers("FlattenExt")
def _flatten_ext(c: Any, a: Any, start: int = 0, end: int = -1) -> int:
    value = c.value(a)
    shape = c.shape(value)
    start, end = normal_axis(start, len(shape)), normal_axis(end, len(shape))
    return c.reshape(value, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


@lowers("Transpose", "TransposeView")
def _transpose(c: Any, a: Any, permutation: Sequence[int]) -> int:
    value = c.value(a)
    rank = len(c.shape(value))
    return c.transpose(value, tuple(normal_axis(axis, rank) for axis in permutation))


@lowers("TransposeExtView")
def _swap(c: Any, a: Any, one: int, other: int) -> int:
    value = c.value(a)
    order = list(range(len(c.shape(value))))
    one, other = normal_axis(one, len(order)), normal_axis(other, len(order))
    order[one], order[other] = order[other], order[one]
    return c.transpose(value, tuple(order))


@lowers("ExpandDims", "ExpandDimsView")
def _expand_dims(c: Any, a: Any, axis: int) -> int:
    value = c.value(a)
    shape = c.shape(value)
    axis = normal_axis(axis, len(shape) + 1)
    return c.reshape(value, (*shape[:axis], 1, *shape[axis:]))


@lowers("Squeeze")
def _squeeze(c: Any, a: Any, axes: Any = ()) -> int:
    value = c.value(a)
    shape = c.shape(value)
    wanted = {normal_axis(axis, len(shape)) for axis in ((axes,) if isinstance(axes, int) else axes or ())}
    if any(shape[axis] != 1 for axis in wanted):
        raise Unlowerable  # MindSpore words the error
    drop = wanted or {i for i, extent in enumerate(shape) if extent == 1}
    return c.reshape(value, tuple(extent for i, extent in enumerate(shape) if i not in drop))


@lowers("BroadcastTo", "BroadcastToView", "ExpandAs")
def _broadcast_to(c: Any, a: Any, shape: Any) -> int:
    value = c.value(a)
    has = c.shape(value)
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else tuple(shape.shape)
    extra = len(wanted) - len(has)
    return c.broadcast(value, tuple(has[i - extra] if extent == -1 and i >= extra else extent for i, extent in enumerate(wanted)))


@lowers("Tile")
def _tile(c: Any, a: Any, repeats: Sequence[int]) -> int:
    return repeated(c, c.value(a), repeats)


# ---- joining and cutting -------------------------------------------------------------------------------------------------------------

@lowers("Concat")
def _concat(c: Any, parts: Sequence[Any], axis: int = 0) -> int:
    values = [c.value(x) for x in parts]
    first = values[0]
    for i, value in enumerate(values):
        values[0], values[i] = unify(c, values[0], value) if i else (values[0], value)
    if values[0] != first:  # promoted on the way: once more, now that the dtype is known
        values = [c.cast(value, c.dtype(values[0])) for value in values]
    return c.concat(values, normal_axis(axis, len(c.shape(first)))) if len(values) > 1 else c.copy(values[0])


def _stack_on(c: Any, parts: Sequence[Any], axis: int) -> int:
    values = [c.value(x) for x in parts]
    shape = c.shape(values[0])
    axis = normal_axis(axis, len(shape) + 1)
    raised = [c.reshape(value, (*shape[:axis], 1, *shape[axis:])) for value in values]
    return c.concat(raised, axis) if len(raised) > 1 else raised[0]


@lowers("Stack")
def _stack(c: Any, *parts: Any) -> int:
    return _stack_on(c, parts[0] if isinstance(parts[0], (tuple, list)) else parts, getattr(c.primitive, "axis", 0))


@lowers("StackExt")
def _stack_ext(c: Any, parts: Sequence[Any], axis: int = 0) -> int:
    return _stack_on(c, parts, axis)


def _cut(c: Any, value: int, axis: int, sizes: Sequence[int]) -> tuple[int, ...]:
    axis = normal_axis(axis, len(c.shape(value)))
    if sum(sizes) != c.shape(value)[axis]:
        raise Unlowerable
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(part(c, value, axis, start, size) for start, size in zip(starts, sizes, strict=True))


@lowers("Split")
def _split(c: Any, a: Any, axis: int, count: int) -> tuple[int, ...]:
    value = c.value(a)
    extent = c.shape(value)[axis]
    if extent % count:
        raise Unlowerable
    return _cut(c, value, axis, [extent // count] * count)


@lowers("SplitWithSize", "SplitWithSizeView")
def _split_sizes(c: Any, a: Any, sizes: Sequence[int], axis: int = 0) -> tuple[int, ...]:
    return _cut(c, c.value(a), axis, list(sizes))


@lowers("SplitTensor", "SplitTensorView")
def _split_every(c: Any, a: Any, size: int, axis: int = 0) -> tuple[int, ...]:
    value = c.value(a)
    extent = c.shape(value)[axis]
    return _cut(c, value, axis, [min(size, extent - start) for start in range(0, extent, size)])


@lowers("Chunk", "ChunkView")
def _chunk(c: Any, a: Any, chunks: int, axis: int = 0) -> tuple[int, ...]:
    return _split_every(c, a, -(-a.shape[axis] // chunks), axis)


def _unstack_on(c: Any, a: Any, axis: int) -> tuple[int, ...]:
    value = c.value(a)
    shape = c.shape(value)
    axis = normal_axis(axis, len(shape))
    flat = shape[:axis] + shape[axis + 1:]
    return tuple(c.reshape(part(c, value, axis, i, 1), flat) for i in range(shape[axis]))


@lowers("Unstack")
def _unstack(c: Any, a: Any) -> tuple[int, ...]:
    return _unstack_on(c, a, getattr(c.primitive, "axis", 0))


@lowers("UnstackExtView")
def _unstack_ext(c: Any, a: Any, axis: int = 0) -> tuple[int, ...]:
    return _unstack_on(c, a, axis)


@lowers("NarrowView", "Narrow")
def _narrow(c: Any, a: Any, axis: int, start: int, length: int) -> int:
    value = c.value(a)
    axis = normal_axis(axis, len(c.shape(value)))
    return part(c, value, axis, start + c.shape(value)[axis] if start < 0 else start, length)


@lowers("SelectExtView")
def _select_view(c: Any, a: Any, axis: int, index: int) -> int:
    value = c.value(a)
    shape = c.shape(value)
    axis = normal_axis(axis, len(shape))
    return c.reshape(part(c, value, axis, index + shape[axis] if index < 0 else index, 1), shape[:axis] + shape[axis + 1:])


@lowers("Slice")
def _slice(c: Any, a: Any, begin: Sequence[int], size: Sequence[int]) -> int:
    value = c.value(a)
    shape = c.shape(value)
    extents = tuple(shape[i] - begin[i] if n == -1 else n for i, n in enumerate(size))
    return c.slice(value, tuple(v for start in begin for v in (start, 1)), extents)


# ---- gathering -----------------------------------------------------------------------------------------------------------------------

def from_front(c: Any, index: int, extent: int) -> int:
    """An index with negative numbers counted from the end."""
    return c.select(c.less(index, 0.0), c.add(index, float(extent)), index)


def checked(c: Any, number: int, index: int, extent: int, elements: int) -> int:
    """The element's number in merged axes; of an index that does not fit its own axis a number that does not fit all `elements`."""
    beyond = c.select(c.less(index, 0.0), c.sub(index, float(elements)), c.add(index, float(elements)))
    fits = c.logical_and(c.greater_equal(index, 0.0), c.less(index, float(extent)))
    return c.select(fits, number, beyond)


@lowers("Gather")
def _gather(c: Any, a: Any, index: Any, axis: Any, batch_dims: int = 0) -> int:
    if batch_dims or not isinstance(axis, int):
        raise Unlowerable
    value = c.value(a)
    return c.gather(value, c.value(index), normal_axis(axis, len(c.shape(value))))


@lowers("IndexSelect")
def _index_select(c: Any, a: Any, axis: int, index: Any) -> int:
    return _gather(c, a, index, axis)


@lowers("Embedding")
def _embedding(c: Any, index: Any, table: Any, padding: Any = None, max_norm: Any = None, *_: Any) -> int:
    if padding is not None or max_norm is not None:
        raise Unlowerable
    return c.gather(c.value(table), c.value(index), 0)


@lowers("GatherD")
def _gather_elements(c: Any, a: Any, axis: int, index: Any) -> int:
    value, where = c.value(a), c.value(index)
    shape = c.shape(value)
    axis = normal_axis(axis, len(shape))
    c.check_range(index, where, shape[axis], "an index", negative=True)
    return c.gather_elements(value, where, axis)


def _keep_triangle(opcode: int) -> Any:
    def lower(c: Any, a: Any, diagonal: Any = None) -> int:
        value = c.value(a)
        shape = c.shape(value)
        shift = getattr(c.primitive, "diagonal", 0) if diagonal is None else diagonal
        rows = c.iota((shape[-2], 1), 0, I64)
        columns = c.iota((1, shape[-1]), 1, I64)
        inside = c.binary(opcode, c.sub(columns, rows), float(shift))
        return c.select(inside, value, c.full(0.0, (), c.dtype(value)))
    return lower


lowers("Triu")(_keep_triangle(CODE["GREATER_EQUAL"]))
lowers("Tril", "TrilExt")(_keep_triangle(CODE["LESS_EQUAL"]))
