"""The table of PyTorch, continued: convolutions, pools and normalizations over a batch, with their gradients. One dimension comes as two
with a height of 1."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import windows
from .axes import normalized
from .emit import Emitter
from .torch_ops import Parts, Value, floats, lowers, need
from .torch_replay import CPU
from .windows import Pair, Window


def _pair(numbers: Sequence[int] | int, alone: int) -> Pair:
    """Of height and width. alone: of the height, where there is a width only."""
    if isinstance(numbers, int):
        return numbers, numbers
    if len(numbers) == 1:
        return alone, numbers[0]
    first, second = numbers
    return first, second


def _planes(e: Emitter, *values: Value) -> list[int]:
    floats(e, *values)
    need(all(len(e.shape(v)) in (3, 4) for v in values) and len({len(e.shape(v)) for v in values}) == 1)
    return [v if len(e.shape(v)) == 4 else e.reshape(v, (*e.shape(v)[:2], 1, e.shape(v)[2])) for v in values]


def _as(e: Emitter, value: int, like: Value) -> int:
    shape = e.shape(value)
    return value if len(shape) == len(e.shape(like)) else e.reshape(value, (*shape[:2], shape[3]))


# ---- convolutions ----------------------------------------------------------------------------------------------------------------------

@lowers("convolution.default")
def convolution(e: Emitter, a: Value, weight: Value, bias: Value | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, more: Sequence[int], groups: int) -> int:
    """a [N, C, H, W] with weight [O, C / groups, taps], or, transposed, [C, O / groups, taps]; more: rows and columns added to the latter's
    result."""
    image, taps = _planes(e, a, weight)
    steps, before, apart = _pair(stride, 1), _pair(padding, 0), _pair(dilation, 1)
    if transposed:
        extra, size = _pair(more, 0), e.shape(image)[2:]
        shape = tuple((n - 1) * s - 2 * b + d * (k - 1) + x + 1
                      for n, s, b, d, k, x in zip(size, steps, before, apart, e.shape(taps)[2:], extra, strict=True))
        need(min(shape) > 0)
        whole = (e.shape(image)[0], e.shape(taps)[1] * groups, *shape)
        result = windows.transposed(e, image, taps, (*steps, *before, *apart, 1, 1, groups), whole)
    else:
        window = Window(e.shape(taps)[2:], steps, before, before, apart)  # type: ignore[arg-type]
        result = windows.convolve(e, image, taps, window, groups)
    if bias is not None:
        floats(e, a, bias)
        result = e.add(result, e.reshape(bias, (*e.shape(bias), 1, 1)))
    return _as(e, result, a)


@lowers("convolution_backward.default")
def convolution_backward(e: Emitter, g: Value, a: Value, weight: Value, bias: Any, stride: Sequence[int], padding: Sequence[int],
                         dilation: Sequence[int], transposed: bool, more: Sequence[int], groups: int, wanted: Sequence[bool]) -> Parts:
    """The gradients of a, weight and bias, those that are wanted."""
    into, image, taps = _planes(e, g, a, weight)
    attrs = (*_pair(stride, 1), *_pair(padding, 0), *_pair(dilation, 1), 1, 1, groups)
    of_a = of_weight = of_bias = None
    if wanted[0]:
        found = e.conv2d(into, taps, attrs, e.shape(image)) if transposed else windows.transposed(e, into, taps, attrs, e.shape(image))
        of_a = _as(e, found, a)
    if wanted[1]:
        pair = (into, image) if transposed else (image, into)
        of_weight = _as(e, e.conv2d_weight(*pair, attrs, e.shape(taps)), weight)
    if wanted[2]:
        of_bias = e.sum(into, (0, 2, 3))
    return Parts((of_a, of_weight, of_bias))


# ---- pools -----------------------------------------------------------------------------------------------------------------------------

def _alone(e: Emitter, a: Value) -> int:
    # Pools also take an image without a batch.
    floats(e, a)
    need(len(e.shape(a)) in (3, 4))
    return e.reshape(a, (1, *e.shape(a))) if len(e.shape(a)) == 3 else a


def _back(e: Emitter, value: int, like: Value) -> int:
    return e.reshape(value, e.shape(value)[1:]) if len(e.shape(like)) == 3 else value


def _moved(taps: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int] = (1, 1)) -> Window:
    pad = _pair(padding, 0)
    return Window(_pair(taps, 1), _pair(stride or taps, 1), pad, pad, _pair(dilation, 1))


@lowers("max_pool2d_with_indices.default")
def max_pool(e: Emitter, a: Value, taps: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0, 0),
             dilation: Sequence[int] = (1, 1), ceil: bool = False) -> Parts:
    """The largest of each window, and where in its plane it is."""
    best, places = windows.with_places(e, _alone(e, a), _moved(taps, stride, padding, dilation), ceil)
    return Parts((_back(e, best, a), _back(e, places, a)))


@lowers("max_pool2d_with_indices_backward.default")
def max_pool_backward(e: Emitter, g: Value, a: Value, taps: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                      dilation: Sequence[int], ceil: bool, places: Value) -> int:
    """g where the largest of each window is."""
    floats(e, g, a)
    window, image = _moved(taps, stride, padding, dilation), _alone(e, a)
    attrs = (*window.taps, *window.stride, *window.before, *window.dilation)
    return _back(e, e.pool("MAX_POOL2D_GRAD", (image, _alone(e, g)), attrs, e.shape(image)), a)


@lowers("avg_pool2d.default")
def avg_pool(e: Emitter, a: Value, taps: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0, 0), ceil: bool = False,
             counted: bool = True, divisor: int | None = None) -> int:
    """The mean of each window."""
    return _back(e, windows.avg_pool(e, _alone(e, a), _moved(taps, stride, padding), ceil, counted, divisor or 0), a)


@lowers("avg_pool2d_backward.default")
def avg_pool_backward(e: Emitter, g: Value, a: Value, taps: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool,
                      counted: bool, divisor: int | None) -> int:
    """g shared among the elements of each window."""
    floats(e, g, a)
    window = _moved(taps, stride, padding)
    attrs = (*window.taps, *window.stride, *window.before, *window.after, int(counted), divisor or 0)
    return _back(e, e.pool("AVG_POOL2D_GRAD", (_alone(e, g),), attrs, e.shape(_alone(e, a))), a)


@lowers("_adaptive_avg_pool2d.default")
def adaptive_avg_pool(e: Emitter, a: Value, size: Sequence[int]) -> int:
    """The means of as many windows as `size` says, which cover the image as evenly as they can."""
    image = _alone(e, a)
    result = windows.adaptive_pool(e, image, size, e.mean)
    return _back(e, e.copy(result) if result == image else result, a)


@lowers("_adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(e: Emitter, g: Value, a: Value) -> int:
    """g shared among the elements of each window."""
    floats(e, g, a)
    image, into = _alone(e, a), _alone(e, g)
    attrs = _even(e, e.shape(image)[2:], e.shape(into)[2:])
    return _back(e, e.pool("AVG_POOL2D_GRAD", (into,), (*attrs, *attrs, 0, 0, 0, 0, 1, 0), e.shape(image)), a)


@lowers("adaptive_max_pool2d.default")
def adaptive_max_pool(e: Emitter, a: Value, size: Sequence[int]) -> Parts:
    """The largest of as many windows as `size` says, and where in its plane each is."""
    image = _alone(e, a)
    taps = _even(e, e.shape(image)[2:], size)
    best, places = windows.with_places(e, image, Window(taps, taps), False)
    return Parts((_back(e, best, a), _back(e, places, a)))


@lowers("adaptive_max_pool2d_backward.default")
def adaptive_max_pool_backward(e: Emitter, g: Value, a: Value, places: Value) -> int:
    """g where the largest of each window is."""
    floats(e, g, a)
    image, into = _alone(e, a), _alone(e, g)
    taps = _even(e, e.shape(image)[2:], e.shape(into)[2:])
    return _back(e, e.pool("MAX_POOL2D_GRAD", (image, into), (*taps, *taps, 0, 0, 1, 1), e.shape(image)), a)


def _even(e: Emitter, image: Sequence[int], size: Sequence[int]) -> Pair:
    """Height and width of windows that cover the image without a rest."""
    need(all(count and extent % count == 0 for extent, count in zip(image, size, strict=True)))
    return image[0] // size[0], image[1] // size[1]


# ---- normalization over a batch --------------------------------------------------------------------------------------------------------

def _along(e: Emitter, value: int, rank: int) -> int:
    """One number for each channel, to meet [batch, channels, ...]."""
    return e.reshape(value, (*e.shape(value), *(1,) * (rank - 2)))


def _scaled(e: Emitter, normal: int, weight: Value | None, bias: Value | None) -> int:
    rank = len(e.shape(normal))
    result = normal if weight is None else e.mul(normal, _along(e, weight, rank))
    return result if bias is None else e.add(result, _along(e, bias, rank))


def _batch_norm(e: Emitter, a: Value, weight: Value | None, bias: Value | None, epsilon: float) -> tuple[int, int, int, int]:
    # result, mean, variance, 1 / deviation of the batch
    shape = e.shape(a)
    floats(e, *(v for v in (a, weight, bias) if v is not None))
    need(len(shape) >= 2 and 0 not in shape)
    axes = (0, *range(2, len(shape)))
    normal, *statistics = normalized(e, a, axes, float(epsilon))
    mean, variance, scale = (e.reshape(v, (shape[1],)) for v in statistics)
    return _scaled(e, normal, weight, bias), mean, variance, scale


@lowers("_native_batch_norm_legit_functional.default")
def batch_norm(e: Emitter, a: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value, training: bool,
               momentum: float, epsilon: float) -> Parts:
    """a normalized with the statistics of the batch, these, and the running ones moved towards them."""
    need(training)
    floats(e, mean, variance)
    result, centre, spread, scale = _batch_norm(e, a, weight, bias, epsilon)
    count = math.prod(e.shape(a)) // e.shape(a)[1]
    need(count > 1)
    moved = [e.add(e.mul(v, 1 - momentum), e.mul(e.cast(new, e.dtype(v)), momentum))
             for v, new in ((mean, centre), (variance, e.mul(spread, count / (count - 1))))]
    return Parts((result, centre, scale, *moved))


@lowers("_native_batch_norm_legit.no_stats")
def batch_norm_alone(e: Emitter, a: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float,
                     epsilon: float) -> Parts:
    """a normalized with the statistics of the batch, and these."""
    need(training)
    result, centre, _, scale = _batch_norm(e, a, weight, bias, epsilon)
    return Parts((result, centre, scale))


@lowers("_native_batch_norm_legit_no_training.default")
def batch_norm_eval(e: Emitter, a: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value, momentum: float,
                    epsilon: float) -> Parts:
    """a normalized with the running statistics; of the batch there are none."""
    rank = len(e.shape(a))
    floats(e, *(v for v in (a, weight, bias, mean, variance) if v is not None))
    need(rank >= 2)
    scale = e.rsqrt(e.add(variance, float(epsilon)))
    normal = e.mul(e.sub(a, _along(e, mean, rank)), _along(e, scale, rank))
    return Parts((_scaled(e, normal, weight, bias), torch.empty(0, device=CPU), torch.empty(0, device=CPU)))


@lowers("native_batch_norm_backward.default")
def batch_norm_backward(e: Emitter, g: Value, a: Value, weight: Value | None, mean: Value | None, variance: Value | None,
                        centre: Value | None, scale: Value | None, training: bool, epsilon: float, wanted: Sequence[bool]) -> Parts:
    """The gradients of a, weight and bias, those that are wanted."""
    shape = e.shape(a)
    rank, axes = len(shape), (0, *range(2, len(shape)))
    if training:
        need(centre is not None and scale is not None)
        middle, inverse = centre, scale
    else:
        need(mean is not None and variance is not None)
        middle, inverse = mean, Value(e.rsqrt(e.add(variance, float(epsilon))))
    floats(e, *(v for v in (g, a, weight, middle, inverse) if v is not None))
    low, factor = e.sub(a, _along(e, middle, rank)), _along(e, inverse, rank)  # type: ignore[arg-type]
    normal = e.mul(low, factor)
    total, product = e.sum(g, axes, True), e.sum(e.mul(g, normal), axes, True)
    of_a = None
    if wanted[0]:
        count = math.prod(shape) // shape[1]
        level = e.mul(e.add(total, e.mul(normal, product)), 1 / count) if training else None
        of_a = e.mul(g if level is None else e.sub(g, level), factor)
        of_a = of_a if weight is None else e.mul(of_a, _along(e, weight, rank))
    flat = (shape[1],)
    return Parts((of_a, e.reshape(product, flat) if wanted[1] else None, e.reshape(total, flat) if wanted[2] else None))


@lowers("native_group_norm.default")
def group_norm(e: Emitter, a: Value, weight: Value | None, bias: Value | None, batch: int, channels: int, area: int, groups: int,
               epsilon: float) -> Parts:
    """a normalized within groups of its channels, the means and 1 / deviations of these."""
    floats(e, *(v for v in (a, weight, bias) if v is not None))
    rows = e.reshape(a, (batch, groups, channels // groups * area))
    normal, mean, _, scale = normalized(e, rows, (2,), float(epsilon))
    return Parts((_scaled(e, e.reshape(normal, e.shape(a)), weight, bias), *(e.reshape(v, (batch, groups)) for v in (mean, scale))))


@lowers("native_group_norm_backward.default")
def group_norm_backward(e: Emitter, g: Value, a: Value, mean: Value, scale: Value, weight: Value | None, batch: int, channels: int,
                        area: int, groups: int, wanted: Sequence[bool]) -> Parts:
    """The gradients of a, weight and bias, those that are wanted."""
    floats(e, *(v for v in (g, a, mean, scale, weight) if v is not None))
    rows, one = (batch, groups, channels // groups * area), (batch, groups, 1)
    normal = e.mul(e.sub(e.reshape(a, rows), e.reshape(mean, one)), e.reshape(scale, one))
    into = e.reshape(g, (batch, channels, area))
    of_a = of_weight = of_bias = None
    if wanted[0]:
        h = e.reshape(into if weight is None else e.mul(into, e.reshape(weight, (channels, 1))), rows)
        level = e.add(e.mean(h, (2,), True), e.mul(normal, e.mean(e.mul(h, normal), (2,), True)))
        of_a = e.reshape(e.mul(e.sub(h, level), e.reshape(scale, one)), e.shape(a))
    if wanted[1] and weight is not None:
        of_weight = e.sum(e.mul(into, e.reshape(normal, (batch, channels, area))), (0, 2))
    if wanted[2]:
        of_bias = e.sum(into, (0, 2))
    return Parts((of_a, of_weight, of_bias))


