"""Lowerings of the ops that MindSpore makes of gradients: in the graphs it compiles, where it differentiates itself.

Operands come as MindSpore has them: the gradient of the result is `g`, the result `y`, and what the op was called with `x`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mindspore import Tensor

from .lowering import Unlowerable, lowers, normal_axes, normal_axis
from .mindspore_activations import GELU_K, GELU_M
from .mindspore_windows import _attr, _pair, _planes, _window
from .windows import Window, transposed


def _where(c: Any, condition: int, g: int) -> int:
    return c.select(condition, g, c.full(0.0, (), c.dtype(g)))


# ---- elementwise: op -> (c, its operands in MindSpore's order) -> gradient ------------------------------------------------------------

def _gelu(c: Any, g: int, x: int, y: int) -> int:
    t = c.tanh(c.mul(c.add(x, c.mul(c.mul(c.mul(x, x), x), GELU_M)), GELU_K))
    slope = c.mul(c.add(c.mul(c.mul(x, x), 3 * GELU_M * GELU_K), GELU_K), c.sub(1.0, c.mul(t, t)))
    return c.mul(g, c.mul(c.add(c.add(t, 1.0), c.mul(x, slope)), 0.5))


def _silu(c: Any, g: int, x: int) -> int:
    s = c.sigmoid(x)
    return c.mul(g, c.mul(s, c.add(c.mul(x, c.sub(1.0, s)), 1.0)))


_ELEMENTWISE: dict[str, Callable[..., int]] = {
    "ReluGrad": lambda c, g, y: _where(c, c.greater(y, 0.0), g),
    "ReLU6Grad": lambda c, g, x: _where(c, c.logical_and(c.greater(x, 0.0), c.less(x, 6.0)), g),
    "SigmoidGrad": lambda c, y, g: c.mul(g, c.mul(y, c.sub(1.0, y))),
    "TanhGrad": lambda c, y, g: c.mul(g, c.sub(1.0, c.mul(y, y))),
    "SqrtGrad": lambda c, y, g: c.div(c.mul(g, 0.5), y),
    "RsqrtGrad": lambda c, y, g: c.mul(c.mul(g, -0.5), c.mul(c.mul(y, y), y)),
    "ReciprocalGrad": lambda c, y, g: c.neg(c.mul(g, c.mul(y, y))),
    "GeLUGrad": _gelu,
    "SiLUGrad": _silu,
    "EluGrad": lambda c, g, y: c.select(c.greater(y, 0.0), g, c.mul(g, c.add(y, 1.0))),
    "SoftplusGrad": lambda c, g, x: c.mul(g, c.sigmoid(x)),
}


def _elementwise(name: str, formula: Callable[..., int]) -> None:
    @lowers(name, once=True)
    def lower(c: Any, *operands: Any) -> int:
        return formula(c, *[c.value(operand) for operand in operands])


for _name, _formula in _ELEMENTWISE.items():
    _elementwise(_name, _formula)


@lowers("DropoutGrad", once=True)
def _dropout(c: Any, g: Any, mask: Any) -> int:
    value = c.value(g)
    return c.mul(c.mul(value, c.cast(c.value(mask), c.dtype(value))), 1 / float(_attr(c, "keep_prob")))


# ---- sums over what was shared --------------------------------------------------------------------------------------------------------

@lowers("BiasAddGrad", once=True)
def _bias_add(c: Any, g: Any, data_format: Any = 0) -> int:
    value = c.value(g)
    rank = len(c.shape(value))
    channels = 1 if data_format in (0, "NCHW") else rank - 1
    return c.sum(value, [axis for axis in range(rank) if axis != channels])


@lowers("LogSoftmaxGrad", once=True)
def _log_softmax(c: Any, y: Any, g: Any, axis: Any = -1) -> int:
    logs, value = c.value(y), c.value(g)
    axes = normal_axes(axis, len(c.shape(value)))
    return c.sub(value, c.mul(c.exp(logs), c.sum(value, axes, True)))


@lowers("SoftmaxBackward", once=True)
def _softmax(c: Any, g: Any, y: Any, axis: Any = -1) -> int:
    value, result = c.value(g), c.value(y)
    axes = normal_axes(axis, len(c.shape(value)))
    return c.mul(result, c.sub(value, c.sum(c.mul(value, result), axes, True)))


@lowers("LayerNormGrad", once=True)
def _layer_norm(c: Any, x: Any, g: Any, variance: Any, mean: Any, scale: Any, begin: int = 1, begin_params: int = 1) -> tuple[int, ...]:
    value, given, factor = c.value(x), c.value(g), c.value(scale)
    shape = c.shape(value)
    rank = len(shape)
    first = normal_axis(begin, rank)
    if c.shape(factor) != shape[first:]:
        raise Unlowerable
    axes, before = tuple(range(first, rank)), tuple(range(first))
    inverse = c.rsqrt(c.add(c.value(variance), 1e-12))
    normal = c.mul(c.sub(value, c.value(mean)), inverse)
    scaled = c.mul(given, factor)
    inner = c.sub(scaled, c.add(c.mean(scaled, axes, True), c.mul(normal, c.mean(c.mul(scaled, normal), axes, True))))
    weights = (c.sum(c.mul(given, normal), before), c.sum(given, before)) if before else (c.mul(given, normal), c.copy(given))
    return (c.mul(inverse, inner), *weights)


@lowers("BatchNormGrad", once=True)
def _batch_norm(c: Any, g: Any, x: Any, scale: Any, mean: Any, inverse: Any, reserve: Any = None, training: bool = True,
                epsilon: float = 1e-5, data_format: Any = 0) -> tuple[int, ...]:
    value, given = c.value(x), c.value(g)
    shape = c.shape(value)
    if data_format not in (0, "NCHW") or len(shape) < 2 or not training:
        raise Unlowerable
    axes = (0, *range(2, len(shape)))
    factor, centre, spread = (c.reshape(c.value(t), (shape[1],) + (1,) * (len(shape) - 2)) for t in (scale, mean, inverse))
    normal = c.mul(c.sub(value, centre), spread)
    by_scale, by_shift = c.sum(c.mul(given, normal), axes, True), c.sum(given, axes, True)
    count = 1 / math.prod(shape[axis] for axis in axes)
    inner = c.sub(given, c.mul(c.add(by_shift, c.mul(normal, by_scale)), count))
    return c.mul(c.mul(factor, spread), inner), c.reshape(by_scale, (shape[1],)), c.reshape(by_shift, (shape[1],))


# ---- elements that were picked --------------------------------------------------------------------------------------------------------

@lowers("GatherDGradV2")
def _gather(c: Any, x: Any, axis: int, index: Any, g: Any) -> int:
    value = c.value(x)
    shape = c.shape(value)
    return c.scatter_add_elements(c.value(g), c.value(index), normal_axis(axis, len(shape)), shape)


@lowers("EmbeddingDenseBackward")
def _embedding(c: Any, g: Any, index: Any, rows: int, padding: Any = None, by_count: bool = False) -> int:
    if padding is not None and padding >= 0 or by_count:
        raise Unlowerable
    value, at = c.value(g), c.value(index)
    width, count = c.shape(value)[-1], math.prod(c.shape(at))
    return c.scatter_add(c.reshape(value, (count, width)), c.reshape(at, (count,)), 0, (int(rows), width))


@lowers("UnsortedSegmentSum")
def _segments(c: Any, x: Any, index: Any, count: int) -> int:
    value, at = c.value(x), c.value(index)
    shape, lead = c.shape(value), c.shape(at)
    if isinstance(count, Tensor) or shape[:len(lead)] != lead:
        raise Unlowerable
    rest, rows = shape[len(lead):], math.prod(lead)
    value, at = c.reshape(value, (rows, *rest)), c.reshape(at, (rows,))
    there = c.reshape(c.greater_equal(at, 0.0), (rows, *(1,) * len(rest)))  # a negative index is that of no segment
    return c.scatter_add(_where(c, there, value), c.maximum(at, c.full(0.0, (), c.dtype(at))), 0, (int(count), *rest))


# ---- windows --------------------------------------------------------------------------------------------------------------------------

def _convolution(c: Any, image: Sequence[int]) -> tuple[Window, tuple[int, ...]]:
    if _attr(c, "data_format") not in ("NCHW", 0):
        raise Unlowerable
    pad = _attr(c, "pad_list" if "pad_list" in c.primitive.attrs else "pad")
    window = _window(_attr(c, "pad_mode"), _pair(_attr(c, "kernel_size")), _pair(_attr(c, "stride")), image, pad,
                     _pair(_attr(c, "dilation")))
    return window, (*window.stride, *window.before, *window.dilation, 1, 1, _attr(c, "group"))


@lowers("Conv2DBackpropInput")
def _conv_image(c: Any, g: Any, weight: Any, shape: Sequence[int], *_: Any) -> int:
    given, filters = _planes(c, g), _planes(c, weight)
    size = tuple(int(extent) for extent in shape)
    return transposed(c, given, filters, _convolution(c, size[2:])[1], size)


@lowers("Conv2DBackpropFilter")
def _conv_weight(c: Any, g: Any, x: Any, shape: Sequence[int], *_: Any) -> int:
    given, image = _planes(c, g), _planes(c, x)
    return c.conv2d_weight(image, given, _convolution(c, c.shape(image)[2:])[1], tuple(int(extent) for extent in shape))


def _pool(c: Any, image: Sequence[int]) -> Window:
    if _attr(c, "data_format") not in ("NCHW", 0):
        raise Unlowerable
    return _window(_attr(c, "pad_mode"), _pair(_attr(c, "kernel_size")), _pair(_attr(c, "strides")), image)


@lowers("MaxPoolGrad")
def _max_pool(c: Any, x: Any, y: Any, g: Any, *_: Any) -> int:
    image, given = _planes(c, x), _planes(c, g)
    shape = c.shape(image)
    window = _pool(c, shape[2:])
    return c.pool("MAX_POOL2D_GRAD", (image, given), (*window.taps, *window.stride, *window.before, *window.dilation), shape)


@lowers("AvgPoolGrad")
def _avg_pool(c: Any, x: Any, y: Any, g: Any, *_: Any) -> int:
    shape = c.shape(_planes(c, x))
    window = _pool(c, shape[2:])
    return c.pool("AVG_POOL2D_GRAD", (_planes(c, g),), (*window.taps, *window.stride, *window.before, *window.after, 0, 0), shape)
