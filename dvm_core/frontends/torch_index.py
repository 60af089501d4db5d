"""The table of PyTorch, continued: elements that an index names, read, written and added to; parts of tensors; order and scans.

What is only moved is float32, float64, int32 or int64 (halves come as float32, see torch_halves), what is added, sorted or scanned a float;
an index is int32 or int64 (of what is written also truths), and what it finds is int64. A place out of range is an error of the core when
the op runs, as it is PyTorch's.
`Unlowerable` is raised of other dtypes (what is read by truths, too), of operands without axes, of an index whose rank or extents the op
does not take, and of empty results.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .axes import along, cut, padded, part, put, repeated, taken, turned
from .emit import BOOL, CODE, F32, F64, I32, I64, Emitter
from .torch_ops import Parts, Value, floats, lowers, need

_DTYPES = frozenset((F32, F64, I32, I64))


def integers(e: Emitter, *values: Any) -> None:
    need(all(isinstance(v, Value) and e.dtype(v) in (I32, I64) for v in values))


def moved(e: Emitter, *values: Any) -> None:
    """Values that are moved and not computed with: of one dtype."""
    need(all(isinstance(v, Value) for v in values) and len({e.dtype(v) for v in values}) == 1 and e.dtype(values[0]) in _DTYPES)


def from_the_front(e: Emitter, index: int, extent: int) -> int:
    """The index with negative numbers out of range, which instructions would count from the end: -1 is the one before that reaches."""
    return e.select(e.less(index, 0.0), e.sub(index, float(extent)), index)


# ---- x[index] --------------------------------------------------------------------------------------------------------------------------

def _named(e: Emitter, indices: Sequence[Any]) -> list[tuple[int, int]]:
    """The axes that are indexed, and their int64 indices."""
    named = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    need(bool(named))
    integers(e, *(index for _, index in named))
    return [(axis, e.cast(index, I64)) for axis, index in named]


def _flat(e: Emitter, indices: list[int], extents: Sequence[int]) -> int:
    """The number of the element in the merged axes; one index counts from the end by itself."""
    if len(indices) == 1:
        return indices[0]
    whole = np.broadcast_shapes(*map(e.shape, indices))
    flat, fits = -1, -1
    for index, extent in zip(indices, extents, strict=True):
        front = e.select(e.less(index, 0.0), e.add(index, float(extent)), index)
        inside = e.logical_and(e.greater_equal(front, 0.0), e.less(front, float(extent)))
        fits = inside if fits < 0 else e.logical_and(fits, inside)
        flat = front if flat < 0 else e.add(e.mul(flat, float(extent)), front)
    flat, fits = (v if e.shape(v) == whole else e.broadcast(v, whole) for v in (flat, fits))
    return e.select(fits, flat, e.full(float(math.prod(extents)), whole, I64))  # one after the last


@lowers("index.Tensor")
@lowers("_unsafe_index.Tensor")
def index(e: Emitter, a: Value, indices: Sequence[Value | None]) -> int:
    """a[indices], None for a whole axis; negative ones count from the end."""
    moved(e, a)
    return taken(e, a, _named(e, indices), functools.partial(_flat, e))


@lowers("index_put.default")
@lowers("_unsafe_index_put.default")
def index_put(e: Emitter, a: Value, indices: Sequence[Value | None], new: Value, accumulate: bool = False) -> int:
    """a with a[indices] = new, or += with each repeated place counted."""
    moved(e, a, new)
    if isinstance(truths := indices[0], Value) and e.dtype(truths) == BOOL:
        need(len(indices) == 1)
        return _where_true(e, a, truths, new, accumulate)
    return put(e, a, _named(e, indices), functools.partial(_flat, e), new, accumulate)


def _where_true(e: Emitter, a: Value, truths: Value, new: Value, accumulate: bool) -> int:
    """a with what `new` has for each place that is true in its first axes. Its own places must not depend on how many are true."""
    floats(e, a, new)
    shape, rank = e.shape(a), len(e.shape(truths))
    own = e.shape(new)[1:] if len(e.shape(new)) == len(shape) - rank + 1 and e.shape(new)[0] == 1 else e.shape(new)
    need(e.shape(truths) == shape[:rank] and len(own) <= len(shape) - rank)
    there = e.broadcast(e.reshape(truths, shape[:rank] + (1,) * (len(shape) - rank)), shape) if rank < len(shape) else truths
    value = e.broadcast(e.reshape(new, (1,) * (len(shape) - len(own)) + own), shape)
    return e.select(there, e.add(a, value) if accumulate else value, a)


# ---- along an axis ---------------------------------------------------------------------------------------------------------------------

@lowers("index_select.default")
def index_select(e: Emitter, a: Value, axis: int, where: Value) -> int:
    """The places of an axis that an index names."""
    moved(e, a)
    integers(e, where)
    need(bool(e.shape(a)))
    row = where if e.shape(where) else e.reshape(where, (1,))
    return e.gather(a, from_the_front(e, row, e.shape(a)[axis]), axis % len(e.shape(a)))


@lowers("index_add.default")
def index_add(e: Emitter, a: Value, axis: int, where: Value, new: Value, alpha: float = 1) -> int:
    """a with each part of `new` added at the place of an axis that the index names."""
    floats(e, a, new)
    integers(e, where)
    shape = e.shape(a)
    need(len(e.shape(where)) == 1 and len(e.shape(new)) == len(shape) > 0)
    added = new if alpha == 1 else e.mul(new, float(alpha))
    return e.add(a, e.scatter_add(added, from_the_front(e, where, shape[axis]), axis % len(shape), shape))


@lowers("index_copy.default")
def index_copy(e: Emitter, a: Value, axis: int, where: Value, new: Value) -> int:
    """a with the places of an axis that the index names replaced."""
    moved(e, a, new)
    integers(e, where)
    need(len(e.shape(where)) == 1 and len(e.shape(new)) == len(e.shape(a)) > 0)
    return e.scatter(a, from_the_front(e, where, e.shape(a)[axis]), new, axis % len(e.shape(a)))


def _elements(e: Emitter, a: Value, axis: int, where: Value, new: Any = None) -> tuple[int, int, int]:
    # axis, index and what is written, as large as the index; other axes of a are cut to it where it is read
    integers(e, where)
    rank = len(e.shape(a))
    need(len(e.shape(where)) == rank > 0)
    size = e.shape(where)
    if isinstance(new, (int, float)) and not isinstance(new, Value):
        new = e.full(float(new), size, e.dtype(a))
    elif new is not None and e.shape(new) != size:
        need(all(has >= extent for has, extent in zip(e.shape(new), size, strict=True)))
        new = e.slice(new, (0, 1) * rank, size)
    return axis % rank, from_the_front(e, where, e.shape(a)[axis]), new


def _same_but(e: Emitter, a: int, where: int, axis: int) -> None:
    need(all(i == axis or n == m for i, (n, m) in enumerate(zip(e.shape(a), e.shape(where), strict=True))))


@lowers("gather.default")
def gather(e: Emitter, a: Value, axis: int, where: Value) -> int:
    """a[..., where[..., i, ...], ...] along an axis."""
    moved(e, a)
    axis, where_, _ = _elements(e, a, axis, where)
    size = tuple(n if i == axis else m for i, (n, m) in enumerate(zip(e.shape(a), e.shape(where), strict=True)))
    return e.gather_elements(a if size == e.shape(a) else e.slice(a, (0, 1) * len(size), size), where_, axis)


@lowers("scatter.src")
@lowers("scatter.value")
def scatter(e: Emitter, a: Value, axis: int, where: Value, new: Any) -> int:
    """a with the elements that the index names along an axis replaced."""
    moved(e, a, *([new] if isinstance(new, Value) else []))
    axis, where_, written = _elements(e, a, axis, where, new)
    _same_but(e, a, where, axis)
    return e.scatter_elements(a, where_, written, axis)


@lowers("scatter_add.default")
def scatter_add(e: Emitter, a: Value, axis: int, where: Value, new: Value) -> int:
    """a with `new` added to the elements that the index names along an axis."""
    floats(e, a, new)
    axis, where_, written = _elements(e, a, axis, where, new)
    _same_but(e, a, where, axis)
    return e.add(a, e.scatter_add_elements(written, where_, axis, e.shape(a)))


# ---- parts -----------------------------------------------------------------------------------------------------------------------------

def _taken(extent: int, start: int | None, end: int | None, step: int) -> range:
    places = range(extent)[start:end:step]
    need(len(places) > 0)
    return places


def _put(e: Emitter, new: int, axis: int, places: range, shape: Sequence[int]) -> int:
    return e.unslice(new, along(len(shape), axis, places.start, places.step), tuple(shape))


@lowers("slice_backward.default")
def slice_backward(e: Emitter, g: Value, shape: Sequence[int], axis: int, start: int, end: int, step: int) -> int:
    """g at the places of an axis that were taken, zeros elsewhere."""
    floats(e, g)
    axis %= len(shape)
    return _put(e, g, axis, _taken(shape[axis], start, end, step), shape)


@lowers("slice_scatter.default")
def slice_scatter(e: Emitter, a: Value, new: Value, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> int:
    """a with some places of an axis replaced."""
    moved(e, a, new)
    shape = e.shape(a)
    axis %= len(shape)
    places = _taken(shape[axis], start, end, step)
    need(e.shape(new) == (*shape[:axis], len(places), *shape[axis + 1:]))
    if step != 1:
        inside = e.cast(_put(e, e.full(1.0, e.shape(new), I32), axis, places, shape), BOOL)
        return e.select(inside, _put(e, new, axis, places, shape), a)
    pieces = [part(e, a, axis, 0, places.start)] if places.start else []
    pieces.append(new)
    if places.stop < shape[axis]:
        pieces.append(part(e, a, axis, places.stop, shape[axis] - places.stop))
    return e.concat(pieces, axis) if len(pieces) > 1 else e.copy(new)


@lowers("select_scatter.default")
def select_scatter(e: Emitter, a: Value, new: Value, axis: int, at: int) -> int:
    """a with one place of an axis replaced."""
    moved(e, a, new)
    shape = e.shape(a)
    axis %= len(shape)
    at %= shape[axis]
    return slice_scatter(e, a, Value(e.reshape(new, (*shape[:axis], 1, *shape[axis + 1:]))), axis, at, at + 1)


@lowers("constant_pad_nd.default")
def pad(e: Emitter, a: Value, padding: Sequence[int], fill: float = 0) -> int:
    """A number around a; padding: before and after the last axis, the one before it ... negative: places that go."""
    moved(e, a)
    shape = e.shape(a)
    pairs = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
    pairs = [(0, 0)] * (len(shape) - len(pairs)) + pairs[::-1]
    left = zip(cut(shape, pairs), pairs, strict=True)
    need(all(extent > 0 for extent, (before, after) in left if before < 0 or after < 0))
    return padded(e, a, pairs, float(fill))


@lowers("flip.default")
def flip(e: Emitter, a: Value, axes: Sequence[int]) -> int:
    """a with some axes in reverse."""
    moved(e, a)
    rank = len(e.shape(a))
    return e.copy(turned(e, a, {axis % rank for axis in axes} if rank else ()))


@lowers("repeat.default")
def repeat(e: Emitter, a: Value, times: Sequence[int]) -> int:
    """a several times along each axis."""
    moved(e, a)
    need(all(times))
    return e.copy(repeated(e, a, times))


# ---- order and scans -------------------------------------------------------------------------------------------------------------------

@lowers("sort.default")
@lowers("sort.stable")
def sort(e: Emitter, a: Value, axis: int = -1, descending: bool = False, stable: bool = False) -> Parts:
    """The elements in order along an axis, and where they were; equal ones stay in their order."""
    floats(e, a)
    need(bool(e.shape(a)))
    axis %= len(e.shape(a))
    places = e.argsort(a, axis, descending)
    return Parts((e.gather_elements(a, places, axis), places))


@lowers("topk.default")
def topk(e: Emitter, a: Value, k: int, axis: int = -1, largest: bool = True, ordered: bool = True) -> Parts:
    """The k largest (or smallest) elements along an axis, and where they are."""
    floats(e, a)
    need(bool(e.shape(a)) and k > 0)
    axis %= len(e.shape(a))
    places = e.topk(a, axis, k, largest)
    return Parts((e.gather_elements(a, places, axis), places))


def _extreme(name: str, code: str) -> Any:
    @lowers(f"{name}.dim")
    def along(e: Emitter, a: Value, axis: int, keepdims: bool = False) -> Parts:
        floats(e, a)
        need(bool(e.shape(a)))
        axis %= len(e.shape(a))
        found = e.op(CODE[f"ARG{code}"], (a,), (int(keepdims), axis), dtype=I64)
        return Parts((e.reduce(CODE[code], a, (axis,), keepdims), found))

    @lowers(f"{name}.default")
    def of_all(e: Emitter, a: Value) -> int:
        floats(e, a)
        return e.reduce(CODE[code], a, range(len(e.shape(a))), False) if e.shape(a) else e.copy(a)

    @lowers(f"arg{name}.default")
    def place(e: Emitter, a: Value, axis: int | None = None, keepdims: bool = False) -> int:
        floats(e, a)
        need(bool(e.shape(a)) and not (axis is None and keepdims))
        if axis is None:
            return e.op(CODE[f"ARG{code}"], (e.reshape(a, (math.prod(e.shape(a)),)),), (0, 0), dtype=I64)
        return e.op(CODE[f"ARG{code}"], (a,), (int(keepdims), axis % len(e.shape(a))), dtype=I64)

    return along, of_all, place


_extreme("max", "MAX"), _extreme("min", "MIN")


@lowers("cumsum.default")
def cumsum(e: Emitter, a: Value, axis: int, dtype: int | None = None) -> int:
    """Sums up to here along an axis."""
    floats(e, a)
    need(bool(e.shape(a)) and dtype in (None, e.dtype(a)))
    return e.cumsum(a, axis % len(e.shape(a)))
