"""x[index] and x[index] = value inside a capture. MindSpore does not dispatch them, and their gradients would silently be zero."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mindspore import Tensor

from .. import _core
from ..errors import convert
from . import axes
from . import capture as captures
from .emit import BOOL, I32, I64
from .grad import broadcast_shapes
from .lowering import Unlowerable, lowers, unify
from .mindspore_shapes import checked, from_front


def _current() -> Any:
    top: Any = captures.active()
    return top if top is not None and top.front_end == "mindspore" and not top.paused else None


def getitem(tensor: Tensor, index: Any, original: Callable[[Tensor, Any], Any]) -> Any:
    """tensor[index], recorded if a capture is active; MindSpore's own otherwise."""
    c = _current()
    if c is None:
        return original(tensor, index)
    c.place = _core.user_place()
    try:
        result = read(c, c.value(tensor), _items(c, index))
        return c.tensor(result)
    except Unlowerable:
        c.refuse(f"indexing with {_words(index)} is not supported inside a captured function")
    except _core.Error as error:
        raise convert(error, op="indexing", place=c.place) from None
    return None


def setitem(tensor: Tensor, index: Any, value: Any) -> bool:
    """tensor[index] = value as a new value the tensor stands for; False outside a capture."""
    c = _current()
    if c is None:
        return False
    c.place = _core.user_place()
    try:
        base = c.value(tensor)
        if isinstance(value, (list, tuple, np.ndarray)):
            value = Tensor(np.asarray(value, tensor.asnumpy().dtype))
        c.replace(tensor, write(c, base, _items(c, index), c.operand(value)), "an assignment to elements")
    except Unlowerable:
        c.refuse(f"assigning to {_words(index)} is not supported inside a captured function; use ops.where or ops.scatter functions")
    except _core.Error as error:
        raise convert(error, op="indexing", place=c.place) from None
    return True


# ---- what an index says --------------------------------------------------------------------------------------------------------------

def _items(c: Any, index: Any) -> list[Any]:
    # One entry per axis or new axis: int, slice, None, Ellipsis, or ("index", value id) / ("mask", value id, tensor).
    found = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, (bool, np.bool_)):
            raise Unlowerable
        if isinstance(item, (list, np.ndarray)):
            item = Tensor(np.asarray(item))
        if isinstance(item, Tensor):
            value = c.value(item)
            if c.dtype(value) == BOOL:
                item = ("mask", value, item)
            elif item.shape == () and c.graph.in_memory(value):
                item = int(item._item())
            else:
                item = ("index", value)
        elif not (item is None or item is Ellipsis or isinstance(item, slice)):
            item = int(item)
        found.append(item)
    return found


def _words(index: Any) -> str:
    items = index if isinstance(index, tuple) else (index,)
    return "[" + ", ".join(f"a tensor {tuple(i.shape)}" if isinstance(i, Tensor) else type(i).__name__ for i in items) + "]"


def _expanded(items: list[Any], rank: int) -> list[Any]:
    # Ellipsis written out; every axis has an entry.
    used = sum(len(i[2].shape) if isinstance(i, tuple) and i[0] == "mask" else 1 for i in items if i is not None and i is not Ellipsis)
    if used > rank or sum(1 for i in items if i is Ellipsis) > 1:
        raise IndexError(f"{used} indices for a tensor of rank {rank}")
    fill = [slice(None)] * (rank - used)
    if Ellipsis in [i for i in items if not isinstance(i, tuple)]:
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        return items[:at] + fill + items[at + 1:]
    return items + fill


class _Basic:
    """The slices of an index: start, step and extent per axis, and which axes the result keeps."""

    def __init__(self, shape: tuple[int, ...], items: list[Any]) -> None:
        self.pairs: list[int] = []  # start, step per axis
        self.extents: list[int] = []
        self.result: list[int] = []  # shape after dropping integer axes and adding new ones
        self.advanced: list[tuple[int, Any]] = []  # (axis of the result, item)
        axis = 0
        for item in items:
            if item is None:
                self.result.append(1)
                continue
            extent = shape[axis]
            if isinstance(item, int):
                if not -extent <= item < extent:
                    raise IndexError(f"index {item} is out of range for axis {axis} with extent {extent}")
                self.pairs += [item + extent if item < 0 else item, 1]
                self.extents.append(1)
            elif isinstance(item, slice):
                start, stop, step = item.indices(extent)
                count = len(range(start, stop, step))
                self.pairs += [start if count else 0, step]
                self.extents.append(count)
                self.result.append(count)
            else:
                axes = len(item[2].shape) if item[0] == "mask" else 1
                self.advanced.append((len(self.result), item))
                for k in range(axes):
                    self.pairs += [0, 1]
                    self.extents.append(shape[axis + k])
                    self.result.append(shape[axis + k])
                axis += axes - 1
            axis += 1
        self.whole = self.extents == list(shape) and all(p == (0, 1)[i % 2] for i, p in enumerate(self.pairs))


def read(c: Any, value: int, items: list[Any]) -> int:
    """The elements an index names."""
    shape = c.shape(value)
    basic = _Basic(shape, _expanded(items, len(shape)))
    part = value if basic.whole else c.slice(value, tuple(basic.pairs), tuple(basic.extents))
    if tuple(basic.result) != c.shape(part):
        part = c.reshape(part, tuple(basic.result))
    if basic.advanced:
        return _gather(c, part, basic.advanced)
    return part if part != value else c.reshape(value, shape)


def _gather(c: Any, part: int, advanced: list[tuple[int, Any]]) -> int:
    return axes.taken(c, part, _indices(c, advanced), functools.partial(flat_index, c))


def _scatter(c: Any, part: int, advanced: list[tuple[int, Any]], new: int, accumulate: bool) -> int:
    # part with part[index] = new, or += where the same place may be named several times.
    def fits(wanted: tuple[int, ...]) -> None:
        if broadcast_shapes(c.shape(new), wanted) != wanted:
            raise Unlowerable  # MindSpore words the error

    return axes.put(c, part, _indices(c, advanced), functools.partial(flat_index, c), new, accumulate, fits)


def _indices(c: Any, advanced: list[tuple[int, Any]]) -> list[tuple[int, int]]:
    # Every tensor index as (axis, value of int64 indices); a mask becomes the positions where it is true.
    found = []
    for axis, item in advanced:
        if item[0] == "index":
            found.append((axis, c.cast(item[1], I64)))
            continue
        for k, positions in enumerate(np.nonzero(item[2].asnumpy())):
            found.append((axis + k, c.host_input(np.ascontiguousarray(positions))))
    return found


def flat_index(c: Any, indices: list[int], extents: tuple[int, ...]) -> int:
    """The number of the element in the merged axes."""
    along = [from_front(c, value, extent) for value, extent in zip(indices, extents, strict=True)]
    flat = along[0]
    for value, extent in zip(along[1:], extents[1:], strict=True):
        flat = c.add(c.mul(flat, float(extent)), value)
    if len(along) > 1:
        for value, extent in zip(along, extents, strict=True):
            flat = checked(c, flat, value, extent, math.prod(extents))
    return flat


# ---- slices as compiled graphs have them -----------------------------------------------------------------------------------------------

def strided(begin: Any, end: Any, strides: Any, masks: Sequence[int]) -> list[Any]:
    """The items that a StridedSlice names. masks: of begin, end, ellipsis, new axis, shrunk axis, a bit for each item."""
    if not all(isinstance(numbers, (tuple, list)) for numbers in (begin, end, strides)):
        raise Unlowerable
    from_start, to_end, rest, new, one = masks
    items: list[Any] = []
    for n, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << n
        if rest & bit:
            items.append(Ellipsis)
        elif new & bit:
            items.append(None)
        elif one & bit:
            items.append(int(first))
        else:
            items.append(slice(None if from_start & bit else int(first), None if to_end & bit else int(last), int(step)))
    return items


@lowers("StridedSlice")
def _strided_slice(c: Any, a: Any, begin: Any, end: Any, strides: Any, *masks: Any) -> int:
    return read(c, c.value(a), strided(begin, end, strides, masks or _masks(c)))


@lowers("StridedSliceGrad")
def _strided_slice_grad(c: Any, g: Any, shape: Any, begin: Any, end: Any, strides: Any, *masks: Any) -> int:
    value, shape = c.value(g), tuple(int(extent) for extent in shape)
    basic = _Basic(shape, _expanded(strided(begin, end, strides, masks or _masks(c)), len(shape)))
    part = c.reshape(value, tuple(basic.extents))
    return c.copy(part) if basic.whole else c.unslice(part, tuple(basic.pairs), shape)


def _masks(c: Any) -> list[int]:
    return [int(c.primitive.attrs[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]


# ---- assignment ----------------------------------------------------------------------------------------------------------------------

def write(c: Any, value: int, items: list[Any], new: Any) -> int:
    """The tensor with the elements an index names replaced. new: a value or a float."""
    _, new = unify(c, value, new, both=True, keep_first=True)
    return put(c, value, items, new)


def put(c: Any, value: int, items: list[Any], new: int, accumulate: bool = False) -> int:
    """value[items] = new, or += with every repeated index counted; new broadcasts to what the index names."""
    shape = c.shape(value)
    new = c.cast(new, c.dtype(value))
    if len(items) == 1 and isinstance(items[0], tuple) and items[0][0] == "mask":
        mask = items[0][1]
        if c.shape(mask) != shape[:len(c.shape(mask))]:
            raise Unlowerable
        if c.shape(new) == () or (c.shape(new) == shape == c.shape(mask) and not accumulate):
            mask = c.reshape(mask, (*c.shape(mask), *(1,) * (len(shape) - len(c.shape(mask)))))
            return c.select(mask, c.add(value, new) if accumulate else c.broadcast(new, shape), value)
    basic = _Basic(shape, _expanded(items, len(shape)))
    part = value if basic.whole else c.slice(value, tuple(basic.pairs), tuple(basic.extents))
    if basic.advanced:
        part = part if tuple(basic.result) == c.shape(part) else c.reshape(part, tuple(basic.result))
        spread = _scatter(c, part, basic.advanced, new, accumulate)
    else:
        spread = c.broadcast(new, tuple(basic.result))
        spread = c.add(c.reshape(part, tuple(basic.result)), spread) if accumulate else spread
    spread = c.reshape(spread, tuple(basic.extents))
    if basic.whole:
        return c.copy(spread)
    pairs, extents = tuple(basic.pairs), tuple(basic.extents)
    inside = c.cast(c.unslice(c.full(1.0, extents, I32), pairs, shape), BOOL)
    return c.select(inside, c.unslice(spread, pairs, shape), value)
