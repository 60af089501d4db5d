"""Geometry of convolutions and pools, and what they are made of: for front ends and gradient rules alike.

Everything is for y and x in turn. `attrs` are those of the instructions, see docs/bytecode.md.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .axes import part
from .emit import F32, F64, I64, Emitter

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A window and how it moves; before, after: padding."""

    taps: Pair
    stride: Pair = (1, 1)
    before: Pair = (0, 0)
    after: Pair = (0, 0)
    dilation: Pair = (1, 1)

    def outputs(self, image: Sequence[int], ceil: bool = False) -> Pair:
        """Windows along y and x of an image of this height and width. ceil: also those that go past the end, if they begin on the image."""
        y, x = (self._outputs(axis, image[axis], ceil) for axis in (0, 1))
        return y, x

    def _outputs(self, axis: int, extent: int, ceil: bool) -> int:
        stride, before = self.stride[axis], self.before[axis]
        room = extent + before + self.after[axis] - self.dilation[axis] * (self.taps[axis] - 1) - 1
        count = max(0, (-(-room // stride) if ceil else room // stride) + 1)
        return count - 1 if ceil and count and (count - 1) * stride >= extent + before else count


def same(taps: Pair, stride: Pair, image: Sequence[int], dilation: Pair = (1, 1)) -> Window:
    """Padding that gives one window for every `stride` elements, the odd element of it behind."""
    total = [max(0, (-(-extent // s) - 1) * s + (t - 1) * d + 1 - extent)
             for extent, s, t, d in zip(image, stride, taps, dilation, strict=True)]
    return Window(taps, stride, (total[0] // 2, total[1] // 2), (total[0] - total[0] // 2, total[1] - total[1] // 2), dilation)


def convolve(e: Emitter, image: int, weight: int, window: Window, groups: int = 1) -> int:
    """[N, C, H, W] with [O, C / groups, taps]; the window's taps are the weight's."""
    batch, _, *size = e.shape(image)
    attrs = (*window.stride, *window.before, *window.dilation, 1, 1, groups)
    return e.conv2d(image, weight, attrs, (batch, e.shape(weight)[0], *window.outputs(size)))


def max_pool(e: Emitter, image: int, window: Window, ceil: bool = False, picked: int = -1) -> int:
    """The largest of each window, or the element of `picked` where the first largest (the last NaN) is."""
    shape = e.shape(image)
    attrs = (*window.taps, *window.stride, *window.before, *window.dilation)
    operands = (image,) if picked < 0 else (image, picked)
    return e.pool("MAX_POOL2D", operands, attrs, (*shape[:2], *window.outputs(shape[2:], ceil)))


def with_places(e: Emitter, image: int, window: Window, ceil: bool) -> tuple[int, int]:
    """The largest of each window and, as int64, where in its plane it is: the first of several, but the last NaN."""
    _, _, height, width = shape = e.shape(image)
    wide = F64 if e.dtype(image) == F64 or height * width > 1 << 24 else F32  # float32 counts that far
    best = max_pool(e, image, window, ceil)
    source = e.cast(image, wide)
    places = e.broadcast(e.reshape(e.iota((height * width,), 0, wide), (1, 1, height, width)), shape)
    return best, e.cast(max_pool(e, source, window, ceil, places), I64)


def avg_pool(e: Emitter, image: int, window: Window, ceil: bool = False, count_padding: bool = True, divisor: int = 0) -> int:
    """The mean of each window, over its elements (and padding, if that counts) or by a divisor of its own."""
    shape = e.shape(image)
    attrs = (*window.taps, *window.stride, *window.before, *window.after, int(count_padding), divisor)
    return e.pool("AVG_POOL2D", (image,), attrs, (*shape[:2], *window.outputs(shape[2:], ceil)))


def adaptive_pool(e: Emitter, image: int, size: Sequence[int], reduce: Callable[[int, Sequence[int], bool], int]) -> int:
    """`size` windows that cover the image as evenly as they can; `reduce`: e.mean or e.max. Windows are rectangles: rows, then columns."""
    for axis, count in ((2, size[0]), (3, size[1])):
        shape = e.shape(image)
        extent = shape[axis]
        if extent == count:
            continue
        if count and extent % count == 0:
            split = e.reshape(image, (*shape[:axis], count, extent // count, *shape[axis + 1:]))
            image = reduce(split, (axis + 1,), False)
            continue
        parts = []
        for i in range(count):
            first, last = i * extent // count, -(-(i + 1) * extent // count)
            parts.append(reduce(part(e, image, axis, first, last - first), (axis,), True))
        image = e.concat(parts, axis) if len(parts) > 1 else parts[0]
    return image


# ---- the gradient of the image, which is also the transposed convolution ---------------------------------------------------------------

def _turned(e: Emitter, weight: int, groups: int) -> int:
    # The weight as seen from the result: taps in reverse, input and output channels of each group exchanged.
    out, inner, *taps = e.shape(weight)
    if groups == 1:
        turned = e.transpose(weight, (1, 0, 2, 3))
    else:
        turned = e.transpose(e.reshape(weight, (groups, out // groups, inner, *taps)), (0, 2, 1, 3, 4))
        turned = e.reshape(turned, (groups * inner, out // groups, *taps))
    if taps == [1, 1]:
        return turned
    reverse = tuple(v for extent in taps for v in ((extent - 1, -1) if extent > 1 else (0, 1)))
    return e.slice(turned, (0, 1, 0, 1, *reverse), e.shape(turned))


def transposed(e: Emitter, g: int, weight: int, attrs: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """What a CONV2D with these attributes, whose image has this shape, sends back to it from the gradient of its result."""
    stride, before, dilation, gap, groups = attrs[:2], attrs[2:4], attrs[4:6], attrs[6:8], attrs[8]
    out, taps = e.shape(g), e.shape(weight)[2:]
    turned = _turned(e, weight, groups)
    reached = all((extent - 1) * step < had for extent, step, had in zip(out[2:], stride, shape[2:], strict=True))
    if taps == (1, 1) == gap and before == (0, 0) and stride != (1, 1) and min(out[2:]) > 0 and reached:  # most positions get nothing
        part = e.conv2d(g, turned, (1, 1, 0, 0, 1, 1, 1, 1, groups), (*shape[:2], *out[2:]))
        return e.unslice(part, (0, 1, 0, 1, 0, stride[0], 0, stride[1]), shape)
    back = tuple((extent - 1) * d - b for extent, d, b in zip(taps, dilation, before, strict=True))
    return e.conv2d(g, turned, (*gap, *back, *dilation, *stride, groups), shape)
