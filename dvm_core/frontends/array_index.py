"""`array[...]`: NumPy's basic indexing as SLICE and RESHAPE, one integer array as GATHER."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..dtypes import bool_, describe, int32, int64
from ..errors import ArgumentError, UnsupportedError, where

if TYPE_CHECKING:
    from .array import Array


def take(array: Array, index: Any) -> Array:
    """The part of an array that an index names. Raises ArgumentError for an index out of range, UnsupportedError for masks."""
    parts = _expand(array, index if isinstance(index, tuple) else (index,))
    special = [i for i, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    if any(not _is_int(parts[i]) for i in special) and special != [*range(special[0], special[-1] + 1)]:
        raise _error(UnsupportedError, array, "an index array and a number apart from it: index in two steps, as in x[1][:, [0, 3]]")
    starts: list[int] = []
    extents: list[int] = []
    shape: list[int] = []
    gathered: tuple[int, Any] | None = None  # axis of the result, index
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        size = array.shape[axis]
        if isinstance(part, slice):
            begin, end, step = part.indices(size)
            extent = len(range(begin, end, step))
            starts += [begin if extent else 0, step if extent else 1]
            shape.append(extent)
        elif _is_int(part):
            number, extent = int(part), 1
            if not -size <= number < size:
                raise _error(
                    ArgumentError, array, f"index {number} is out of range for axis {axis} of {describe(array.dtype, array.shape)}"
                )
            starts += [number % size, 1]
        else:
            if gathered is not None:
                raise _error(UnsupportedError, array, "more than one index array is not part of this version")
            gathered, extent = (len(shape), part), size
            starts += [0, 1]
            shape.append(size)
        extents.append(extent)
        axis += 1
    result = array
    if tuple(extents) != array.shape or any(start or step != 1 for start, step in zip(starts[::2], starts[1::2], strict=True)):
        result = result._op("SLICE", attrs=tuple(starts), shape=tuple(extents))
    if tuple(shape) != result.shape:
        result = result._op("RESHAPE", shape=tuple(shape))
    return result if gathered is None else _gather(result, *gathered)


def _gather(array: Array, axis: int, index: Any) -> Array:
    from .array import tensor

    numbers = tensor(index)
    if numbers.dtype is bool_:
        raise _error(
            UnsupportedError,
            array,
            "a boolean mask has a shape that depends on values, which is not part of this version; use mask.where(a, b)",
        )
    if numbers.dtype not in (int32, int64):
        raise _error(ArgumentError, array, f"an index array must be int32 or int64, got {describe(numbers.dtype, numbers.shape)}")
    size = array.shape[axis]
    negative = numbers < 0
    return array._op("GATHER", (negative.where(numbers + size, numbers),), (axis,))


def _expand(array: Array, index: tuple[Any, ...]) -> list[Any]:
    # One entry per axis (None: a new one): the ellipsis replaced, missing axes taken whole.
    named = sum(1 for part in index if part is not None and part is not Ellipsis)
    if named > array.ndim:
        raise _error(ArgumentError, array, f"{named} indices for {describe(array.dtype, array.shape)}")
    rest = [slice(None)] * (array.ndim - named)
    dots = [i for i, part in enumerate(index) if part is Ellipsis]
    if len(dots) > 1:
        raise _error(ArgumentError, array, "an index can have one ellipsis")
    return [*index[: dots[0]], *rest, *index[dots[0] + 1 :]] if dots else [*index, *rest]


def _is_int(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_))


def _error(kind: Any, array: Array, text: str) -> Exception:
    file, line = where(_core.user_place())
    return kind(text, op="index", dtypes=[array.dtype.name], shapes=[array.shape], file=file, line=line)
