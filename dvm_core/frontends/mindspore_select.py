"""Lowerings of MindSpore's ops that sort, scan, pad, pick and write elements by an index, or draw random numbers."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .axes import cut, padded, part, turned
from .emit import BOOL, F32, FLOATS, I32, I64
from .lowering import Unlowerable, given_dtype, lowers, normal_axes, normal_axis, unify
from .mindspore_index import flat_index, put

# ---- order and scans -----------------------------------------------------------------------------------------------------------------

def _ranked(c: Any, a: Any, axis: int) -> tuple[int, int]:
    value = c.value(a)
    if not c.shape(value):
        raise Unlowerable
    return value, normal_axis(axis, len(c.shape(value)))


@lowers("SortExt")
def _sort_ext(c: Any, a: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> tuple[int, int]:
    value, axis = _ranked(c, a, axis)
    index = c.argsort(value, axis, descending)
    return c.gather_elements(value, index, axis), index


@lowers("Sort")
def _sort(c: Any, a: Any) -> tuple[int, int]:
    value, axis = _ranked(c, a, c.primitive.axis)
    index = c.argsort(value, axis, c.primitive.descending, I32)
    return c.gather_elements(value, index, axis), index


@lowers("ArgSort")
def _argsort(c: Any, a: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> int:
    value, axis = _ranked(c, a, axis)
    return c.argsort(value, axis, descending)


def _topk_on(c: Any, a: Any, k: Any, axis: int, largest: bool, dtype: int) -> tuple[int, int]:
    value, axis = _ranked(c, a, axis)
    if not isinstance(k, int) or not 0 <= k <= c.shape(value)[axis]:
        raise Unlowerable  # MindSpore words the error
    index = c.topk(value, axis, k, largest, dtype)
    return c.gather_elements(value, index, axis), index


@lowers("TopkExt")
def _topk_ext(c: Any, a: Any, k: int, axis: int = -1, largest: bool = True, in_order: bool = True) -> tuple[int, int]:
    return _topk_on(c, a, k, axis, bool(largest), I64)


@lowers("TopK")
def _topk(c: Any, a: Any, k: Any) -> tuple[int, int]:
    return _topk_on(c, a, k, -1, True, I32)


@lowers("CumsumExt")
def _cumsum_ext(c: Any, a: Any, axis: int, dtype: Any = None) -> int:
    value, axis = _ranked(c, a, axis)
    wanted = given_dtype(dtype) if dtype is not None else c.dtype(value) if c.dtype(value) in FLOATS else I64
    return c.cumsum(c.cast(value, wanted), axis)


@lowers("CumSum")
def _cumsum(c: Any, a: Any, axis: Any, exclusive: bool = False, reverse: bool = False) -> int:
    if not isinstance(axis, int):
        raise Unlowerable
    value, axis = _ranked(c, a, axis)
    return c.cumsum(value, axis, bool(exclusive), bool(reverse))


# ---- shape ---------------------------------------------------------------------------------------------------------------------------

def _pad_axes(c: Any, value: int, pairs: Sequence[tuple[int, int]], fill: float) -> int:
    if min(cut(c.shape(value), pairs), default=0) < 0:
        raise Unlowerable
    return padded(c, value, pairs, fill)


def _from_last(c: Any, value: int, padding: Any) -> list[tuple[int, int]]:
    # (before, after) of the last axis, then of the one before it ...
    rank = len(c.shape(value))
    numbers = list(padding) if isinstance(padding, (tuple, list)) else None
    if numbers is None or len(numbers) % 2 or len(numbers) > 2 * rank or not all(isinstance(n, int) for n in numbers):
        raise Unlowerable
    pairs = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


@lowers("ConstantPadND")
def _constant_pad(c: Any, a: Any, padding: Any, fill: Any = 0.0) -> int:
    value = c.value(a)
    return _pad_axes(c, value, _from_last(c, value, padding), _number(c, fill))


@lowers("PadV3")
def _pad_v3(c: Any, a: Any, padding: Any, fill: Any = None) -> int:
    value = c.value(a)
    if getattr(c.primitive, "mode", "constant") != "constant" or not getattr(c.primitive, "paddings_contiguous", True):
        raise Unlowerable
    return _pad_axes(c, value, _from_last(c, value, padding), 0.0 if fill is None else _number(c, fill))


@lowers("Pad")
def _pad(c: Any, a: Any) -> int:
    return _pad_axes(c, c.value(a), c.primitive.paddings, 0.0)


def _number(c: Any, x: Any) -> float:
    number = c.operand(x)
    if number.__class__ is int:
        raise Unlowerable  # a value still to be computed
    return float(number)


@lowers("ReverseV2")
def _flip(c: Any, a: Any, axes: Any = None) -> int:
    value = c.value(a)
    return c.copy(turned(c, value, normal_axes(getattr(c.primitive, "axis", ()) if axes is None else axes, len(c.shape(value)))))


@lowers("Roll")
def _roll(c: Any, a: Any, shifts: Any, axes: Any = None) -> int:
    value = c.value(a)
    shape = c.shape(value)
    moved = value if axes else c.reshape(value, (math.prod(shape),))
    for shift, axis in zip(_listed(shifts), _listed(axes) if axes else [0], strict=True):
        axis = normal_axis(axis, len(c.shape(moved)))
        extent = c.shape(moved)[axis]
        first = shift % extent if extent else 0
        if first:
            moved = c.concat((part(c, moved, axis, extent - first, first), part(c, moved, axis, 0, extent - first)), axis)
    return c.copy(moved) if axes else c.reshape(c.copy(moved), shape)


def _listed(numbers: Any) -> list[int]:
    return [numbers] if isinstance(numbers, int) else list(numbers)


# ---- by index ------------------------------------------------------------------------------------------------------------------------

ADD_MODES, PLAIN_MODES = (1, "add"), (0, "none", None)


def _elements(c: Any, a: Any, axis: int, index: Any, new: Any) -> tuple[int, int, int, int]:
    # (tensor, axis, index, what is written, as large as the index)
    value, where = c.value(a), c.value(index)
    shape = c.shape(value)
    if not shape or len(c.shape(where)) != len(shape):
        raise Unlowerable
    axis = normal_axis(axis, len(shape))
    c.check_range(index, where, shape[axis], "an index", negative=True)
    wanted = c.shape(where)
    new = c.operand(new)
    if new.__class__ is not int:
        new = c.full(float(new), wanted, c.dtype(value))
    new = c.cast(new, c.dtype(value))
    if c.shape(new) != wanted:
        if any(has < extent for has, extent in zip(c.shape(new), wanted, strict=True)):
            raise Unlowerable
        new = c.slice(new, (0, 1) * len(wanted), wanted)
    return value, axis, where, new


@lowers("Scatter", "ScatterValue")
def scatter(c: Any, a: Any, axis: int, index: Any, new: Any, mode: Any = 0) -> int:
    value, axis, where, new = _elements(c, a, axis, index, new)
    if mode in ADD_MODES:
        return c.add(value, c.scatter_add_elements(new, where, axis, c.shape(value)))
    if mode not in PLAIN_MODES:
        raise Unlowerable
    return c.scatter_elements(value, where, new, axis)


@lowers("ScatterAddExt")
def scatter_add(c: Any, a: Any, axis: int, index: Any, new: Any) -> int:
    return scatter(c, a, axis, index, new, "add")


@lowers("TensorScatterElements")
def _tensor_scatter_elements(c: Any, a: Any, index: Any, new: Any, axis: int = 0, mode: Any = 0) -> int:
    return scatter(c, a, axis, index, new, mode)


def _named(c: Any, index: Any, extents: tuple[int, ...]) -> int:
    """Numbers of the elements that an index [..., k] names in the first k axes, merged to one."""
    where = c.value(index)
    *batch, k = c.shape(where)
    if not 0 < k <= len(extents):
        raise Unlowerable
    columns = [c.cast(c.reshape(part(c, where, len(batch), i, 1), tuple(batch)), I64) for i in range(k)]
    return flat_index(c, columns, extents[:k])


def _merged(c: Any, value: int, index: Any) -> tuple[int, int]:
    shape, k = c.shape(value), c.shape(c.value(index))[-1]
    return c.reshape(value, (math.prod(shape[:k]), *shape[k:])), _named(c, index, shape)


@lowers("GatherNd", "GatherNdExt")
def _gather_nd(c: Any, a: Any, index: Any) -> int:
    merged, where = _merged(c, c.value(a), index)
    return c.gather(merged, where, 0)


@lowers("TensorScatterUpdate")
def _tensor_scatter_update(c: Any, a: Any, index: Any, new: Any) -> int:
    value = c.value(a)
    merged, where = _merged(c, value, index)
    return c.reshape(c.scatter(merged, where, c.cast(c.value(new), c.dtype(value)), 0), c.shape(value))


@lowers("TensorScatterAdd")
def _tensor_scatter_add(c: Any, a: Any, index: Any, new: Any) -> int:
    value = c.value(a)
    merged, where = _merged(c, value, index)
    added = c.scatter_add(c.cast(c.value(new), c.dtype(value)), where, 0, c.shape(merged))
    return c.add(value, c.reshape(added, c.shape(value)))


@lowers("ScatterNd")
def _scatter_nd(c: Any, index: Any, new: Any, shape: Any) -> int:
    shape = tuple(shape)
    where = _named(c, index, shape)
    k = c.shape(c.value(index))[-1]
    return c.reshape(c.scatter_add(c.value(new), where, 0, (math.prod(shape[:k]), *shape[k:])), shape)


@lowers("IndexAddExt")
def index_add(c: Any, a: Any, axis: int, index: Any, new: Any, alpha: float = 1) -> int:
    value, axis = _ranked(c, a, axis)
    addend = c.cast(c.value(new), c.dtype(value))
    addend = addend if alpha == 1 else c.mul(addend, float(alpha))
    return c.add(value, c.scatter_add(addend, c.value(index), axis, c.shape(value)))


def index_copy(c: Any, a: Any, axis: int, index: Any, new: Any) -> int:
    """a[index] = new along an axis."""
    value, axis = _ranked(c, a, axis)
    where = c.value(index)
    new = c.operand(new)
    wanted = (*c.shape(value)[:axis], *c.shape(where), *c.shape(value)[axis + 1:])
    new = c.full(float(new), wanted, c.dtype(value)) if new.__class__ is not int else c.cast(new, c.dtype(value))
    return c.scatter(value, where, new if c.shape(new) == wanted else c.broadcast(new, wanted), axis)


@lowers("IndexFillScalar", "IndexFillTensor")
def _index_fill(c: Any, a: Any, axis: int, index: Any, fill: Any) -> int:
    return index_copy(c, a, axis, index, fill)


@lowers("IndexFill")
def _index_fill_old(c: Any, a: Any, axis: Any, index: Any, fill: Any) -> int:
    return index_copy(c, a, int(_number(c, axis)), index, fill)


def index_put(c: Any, a: Any, indices: Sequence[Any], new: Any, accumulate: bool = False) -> int:
    """a[indices] = new, or += with every repeated index counted."""
    value = c.value(a)
    _, new = unify(c, value, c.operand(new), both=True, keep_first=True)
    items = []
    for index in indices:
        where = c.value(index)
        items.append(("mask", where, index) if c.dtype(where) == BOOL else ("index", where))
    return put(c, value, items, new, bool(accumulate))


# ---- at random -----------------------------------------------------------------------------------------------------------------------

def _kept(c: Any, value: int, shape: tuple[int, ...], keep: float) -> tuple[int, int]:
    # Elements stay with probability `keep` and are scaled; all that share an element of `shape` stay or go together.
    if not 0 < keep <= 1:
        raise Unlowerable
    mask = c.less(c.draw(shape), keep)
    return c.mul(c.select(mask, value, c.full(0.0, (), c.dtype(value))), 1 / keep), mask


@lowers("Dropout")
def _dropout(c: Any, x: Any, keep: Any = None, *_: Any) -> tuple[int, int]:
    value = c.value(x)
    return _kept(c, value, c.shape(value), float(getattr(c.primitive, "keep_prob", 0.5) if keep is None else keep))


@lowers("DropoutExt")
def _dropout_ext(c: Any, x: Any, probability: Any = 0.5, *_: Any) -> tuple[int, int]:
    value = c.value(x)
    return _kept(c, value, c.shape(value), 1 - _number(c, probability))


@lowers("FuncDropoutExt")
def _func_dropout(c: Any, x: Any, probability: Any = 0.5, training: bool = True, *_: Any) -> Any:
    value = c.value(x)
    return _kept(c, value, c.shape(value), 1 - _number(c, probability))[0] if training else x


def _channels(c: Any, value: int) -> tuple[int, ...]:
    shape = c.shape(value)
    if len(shape) < 2:
        raise Unlowerable
    return (*shape[:2], *(1,) * (len(shape) - 2))


@lowers("Dropout2dExt")
def _dropout_channels_ext(c: Any, x: Any, probability: Any = 0.5, training: bool = True, *_: Any) -> Any:
    value = c.value(x)
    return _kept(c, value, _channels(c, value), 1 - _number(c, probability))[0] if training else x


@lowers("Dropout2D", "Dropout3D")
def _dropout_channels(c: Any, x: Any) -> tuple[int, int]:
    value = c.value(x)
    result, mask = _kept(c, value, _channels(c, value), float(c.primitive.keep_prob))
    return result, c.broadcast(mask, c.shape(value))


@lowers("UniformReal")
def _uniform_real(c: Any, shape: Any) -> int:
    if not isinstance(shape, (tuple, list)):
        raise Unlowerable
    return c.draw(tuple(shape))


@lowers("BernoulliExt")
def _bernoulli(c: Any, x: Any, *_: Any) -> int:
    value = c.value(x)
    return c.cast(c.less(c.draw(c.shape(value)), c.cast(value, F32)), c.dtype(value))


def uniform(c: Any, a: Any, low: Any = 0.0, high: Any = 1.0, *_: Any) -> int:
    """Numbers over [low, high) of a's shape and dtype."""
    value = c.value(a)
    low, high = _number(c, low), _number(c, high)
    if c.dtype(value) not in FLOATS:
        raise Unlowerable
    numbers = c.draw(c.shape(value))
    numbers = numbers if high - low == 1 else c.mul(numbers, high - low)
    return c.cast(numbers if low == 0 else c.add(numbers, low), c.dtype(value))


