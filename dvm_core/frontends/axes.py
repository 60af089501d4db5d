"""What front ends make of a value's axes: parts, turns, repeats, padding, elements that indices name, means and deviations."""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from .emit import Emitter

# Of int64 indices and the extents of the axes they are for: the number of the element in the axes as one.
Flat = Callable[[list[int], tuple[int, ...]], int]


def along(rank: int, axis: int, start: int, step: int = 1) -> tuple[int, ...]:
    """Start and step of every axis, in turn, as slices have them: those of one, the others whole."""
    return tuple(number for i in range(rank) for number in ((start, step) if i == axis else (0, 1)))


def part(e: Emitter, value: int, axis: int, start: int, extent: int, step: int = 1) -> int:
    """start, start + step ... along one axis: `extent` places."""
    shape = e.shape(value)
    return e.slice(value, along(len(shape), axis, start, step), (*shape[:axis], extent, *shape[axis + 1:]))


def turned(e: Emitter, value: int, axes: Collection[int]) -> int:
    """Some axes in reverse."""
    shape = e.shape(value)
    return e.slice(value, tuple(v for i, extent in enumerate(shape) for v in ((max(extent - 1, 0), -1) if i in axes else (0, 1))), shape)


def repeated(e: Emitter, value: int, times: Sequence[int]) -> int:
    """The value several times along each axis. The shorter of `times` and its shape is as if there were ones before it."""
    shape = e.shape(value)
    rank = max(len(times), len(shape))
    times, shape = (1,) * (rank - len(times)) + tuple(times), (1,) * (rank - len(shape)) + shape
    # [a, b] (m, n) times: [1, a, 1, b] broadcast to [m, a, n, b]
    apart = e.reshape(value, tuple(v for extent in shape for v in (1, extent)))
    spread = e.broadcast(apart, tuple(v for pair in zip(times, shape, strict=True) for v in pair))
    return e.reshape(spread, tuple(n * extent for n, extent in zip(times, shape, strict=True)))


def cut(shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The extents that `padded` leaves of a shape before it adds any."""
    return [extent + min(before, 0) + min(after, 0) for extent, (before, after) in zip(shape, pairs, strict=True)]


def padded(e: Emitter, value: int, pairs: Sequence[tuple[int, int]], fill: float) -> int:
    """pairs: how many before and after each axis; negative ones are cut off."""
    for axis, (extent, (before, after)) in enumerate(zip(cut(e.shape(value), pairs), pairs, strict=True)):
        if before < 0 or after < 0:
            value = part(e, value, axis, -min(before, 0), extent)
    grown = [(max(before, 0), max(after, 0)) for before, after in pairs]
    shape = tuple(before + extent + after for (before, after), extent in zip(grown, e.shape(value), strict=True))
    return e.pad(value, tuple(before for before, _ in grown), shape, fill)


# ---- x[index] ------------------------------------------------------------------------------------------------------------------------

def _merged(e: Emitter, value: int, indices: Sequence[tuple[int, int]],
            flat: Flat) -> tuple[int, int, int, tuple[int, ...], tuple[int, ...]]:
    """(value with the indexed axes merged to one, that axis, the index into it, its shape before and the order its axes were put in)"""
    axes = [axis for axis, _ in indices]
    order = tuple(range(len(e.shape(value))))
    if axes != list(range(axes[0], axes[0] + len(axes))):  # apart: NumPy and PyTorch move them to the front
        order = (*axes, *(i for i in order if i not in axes))
        value, axes = e.transpose(value, order), list(range(len(axes)))
    shape = e.shape(value)
    extents = shape[axes[0]:axes[0] + len(axes)]
    if len(axes) > 1:
        value = e.reshape(value, (*shape[:axes[0]], math.prod(extents), *shape[axes[-1] + 1:]))
    return value, axes[0], flat([index for _, index in indices], extents), shape, order


def taken(e: Emitter, value: int, indices: Sequence[tuple[int, int]], flat: Flat) -> int:
    """The elements that indices name. indices: axes and their int64 values, at least one."""
    merged, axis, index, _, _ = _merged(e, value, indices, flat)
    return e.gather(merged, index, axis)


def put(e: Emitter, value: int, indices: Sequence[tuple[int, int]], flat: Flat, new: int, accumulate: bool,
        fits: Callable[[tuple[int, ...]], None] = lambda wanted: None) -> int:
    """value with the elements that indices name replaced, or added to where the same place may be named several times. fits: is called with
    the shape that `new` is broadcast to, and may raise."""
    merged, axis, index, shape, order = _merged(e, value, indices, flat)
    whole = e.shape(merged)
    wanted = (*whole[:axis], *e.shape(index), *whole[axis + 1:])
    fits(wanted)
    new = new if e.shape(new) == wanted else e.broadcast(new, wanted)
    written = e.add(merged, e.scatter_add(new, index, axis, whole)) if accumulate else e.scatter(merged, index, new, axis)
    written = written if whole == shape else e.reshape(written, shape)
    return written if order == tuple(range(len(order))) else e.transpose(written, tuple(sorted(order, key=order.__getitem__)))


# ---- normalization -------------------------------------------------------------------------------------------------------------------

def normalized(e: Emitter, value: int, axes: Sequence[int], epsilon: float) -> tuple[int, int, int, int]:
    """(value - mean) / sqrt(variance + epsilon) over some axes; mean, variance and 1 / deviation, with these axes as ones."""
    mean = e.mean(value, axes, True)
    low = e.sub(value, mean)
    variance = e.mean(e.mul(low, low), axes, True)
    inverse = e.rsqrt(e.add(variance, epsilon))
    return e.mul(low, inverse), mean, variance, inverse
