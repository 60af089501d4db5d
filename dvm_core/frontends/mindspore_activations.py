"""Lowerings of activation functions."""
from __future__ import annotations

import math
from typing import Any

from .lowering import Unlowerable, lowers, normal_axis
from .mindspore_ops import extremum
from .mindspore_shapes import part


@lowers("ReLU")
def _relu(c: Any, x: Any) -> int:
    return c.maximum(0.0, c.value(x))  # in this order: the gradient at 0 is 0


GELU_K, GELU_M = math.sqrt(2 / math.pi), 0.044715


def _gelu_tanh(c: Any, x: int) -> int:
    cube = c.mul(c.mul(x, x), x)
    t = c.tanh(c.mul(c.add(x, c.mul(cube, GELU_M)), GELU_K))
    return c.group("gelu_tanh", c.mul(c.mul(x, 0.5), c.add(t, 1.0)), (x,), (GELU_K, GELU_M), (t,))


@lowers("GeLU", once=True)
def _gelu(c: Any, x: Any) -> int:
    return _gelu_tanh(c, c.value(x))


@lowers("GeluExt", once=True)
def _gelu_ext(c: Any, x: Any, approximate: Any = 0) -> int:
    value = c.value(x)
    if approximate in (1, "tanh"):
        return _gelu_tanh(c, value)
    return c.mul(c.mul(value, 0.5), c.add(c.erf(c.mul(value, math.sqrt(0.5))), 1.0))


@lowers("SiLU", once=True)
def _silu(c: Any, x: Any) -> int:
    value = c.value(x)
    return c.mul(value, c.sigmoid(value))


@lowers("ReLU6")
def _relu6(c: Any, x: Any) -> int:
    return c.minimum(c.maximum(0.0, c.value(x)), 6.0)


@lowers("Hardtanh")
def _hardtanh(c: Any, x: Any, low: float = -1, high: float = 1) -> int:
    return extremum(c, "MINIMUM", extremum(c, "MAXIMUM", c.value(x), float(low)), float(high))


@lowers("LeakyReLUExt")
def _leaky_relu(c: Any, x: Any, slope: float = 0.01) -> int:
    value = c.value(x)
    return c.select(c.greater(value, 0.0), value, c.mul(value, float(slope)))


@lowers("Elu", "EluExt", once=True)
def _elu(c: Any, x: Any, alpha: float = 1.0) -> int:
    value = c.value(x)
    below = c.mul(c.expm1(c.minimum(value, 0.0)), float(alpha))
    return c.select(c.greater(value, 0.0), value, below)


def softplus(c: Any, value: int) -> int:
    """ln(1 + e^x) without overflow"""
    soft = c.add(c.maximum(0.0, value), c.log1p(c.exp(c.neg(c.abs(value)))))
    return c.group("softplus", soft, (value,))  # the chain's own rules are wrong at 0, where both parts have a kink


@lowers("Softplus", once=True)
def _softplus_op(c: Any, x: Any) -> int:
    return softplus(c, c.value(x))


@lowers("SoftplusExt", once=True)
def _softplus_ext(c: Any, x: Any, beta: float = 1, threshold: float = 20) -> int:
    value = c.value(x)
    scaled = value if beta == 1 else c.mul(value, float(beta))
    smooth = c.div(softplus(c, scaled), float(beta))
    return c.select(c.greater(scaled, float(threshold)), value, smooth)


@lowers("PReLU")
def _prelu(c: Any, x: Any, slope: Any) -> int:
    value, factor = c.value(x), c.value(slope)
    extent = c.shape(factor)[0]
    if extent > 1:  # one per channel
        factor = c.reshape(factor, (extent, *(1,) * (len(c.shape(value)) - 2)))
    return c.select(c.greater(value, 0.0), value, c.mul(value, factor))


@lowers("Mish", "MishExt", once=True)
def _mish(c: Any, x: Any) -> int:
    value = c.value(x)
    return c.mul(value, c.tanh(softplus(c, value)))


@lowers("HSigmoid", once=True)
def _hsigmoid(c: Any, x: Any) -> int:
    return c.mul(c.minimum(c.maximum(0.0, c.add(c.value(x), 3.0)), 6.0), 1 / 6)


@lowers("HSwish", once=True)
def _hswish(c: Any, x: Any) -> int:
    return c.mul(c.value(x), _hsigmoid(c, x))


@lowers("SeLU", "SeLUExt", once=True)
def _selu(c: Any, x: Any) -> int:
    return c.mul(_elu(c, x, 1.6732632423543772), 1.0507009873554805)


@lowers("CeLU", once=True)
def _celu(c: Any, x: Any, alpha: float = 1.0) -> int:
    value = c.value(x)
    below = c.mul(c.expm1(c.mul(c.minimum(value, 0.0), 1 / alpha)), float(alpha))
    return c.select(c.greater(value, 0.0), value, below)


@lowers("Softsign", once=True)
def _softsign(c: Any, x: Any) -> int:
    value = c.value(x)
    return c.div(value, c.add(c.abs(value), 1.0))


@lowers("SoftShrink", once=True)
def _soft_shrink(c: Any, x: Any, limit: float = 0.5) -> int:
    value = c.value(x)
    return c.add(c.maximum(c.sub(value, float(limit)), 0.0), c.minimum(c.add(value, float(limit)), 0.0))


@lowers("HShrink")
def _hard_shrink(c: Any, x: Any, limit: float = 0.5) -> int:
    value = c.value(x)
    return c.select(c.greater(c.abs(value), float(limit)), value, c.full(0.0, (), c.dtype(value)))


@lowers("FastGeLU", once=True)
def _fast_gelu(c: Any, x: Any) -> int:
    value = c.value(x)
    return c.mul(value, c.sigmoid(c.mul(value, 1.702)))


@lowers("LogSigmoid")
def _log_sigmoid(c: Any, x: Any) -> tuple[int, int]:
    result = c.neg(softplus(c, c.neg(c.floating(c.value(x)))))
    return result, c.exp(result)  # the second is for MindSpore's own gradient


def _halves(c: Any, x: Any, axis: int) -> tuple[int, int]:
    value = c.value(x)
    axis = normal_axis(axis, len(c.shape(value)))
    half, odd = divmod(c.shape(value)[axis], 2)
    if odd:
        raise Unlowerable
    return part(c, value, axis, 0, half), part(c, value, axis, half, half)


@lowers("GLU", once=True)
def _glu(c: Any, x: Any, axis: Any = None) -> int:
    a, b = _halves(c, x, getattr(c.primitive, "axis", -1) if axis is None else axis)
    return c.mul(a, c.sigmoid(b))


@lowers("Swiglu", once=True)
def _swiglu(c: Any, x: Any, axis: int = -1) -> int:
    a, b = _halves(c, x, axis)
    return c.mul(c.mul(a, c.sigmoid(a)), b)


@lowers("Threshold")
def _threshold(c: Any, x: Any, limit: float, fill: float) -> int:
    value = c.value(x)
    return c.select(c.greater(value, float(limit)), value, c.full(float(fill), (), c.dtype(value)))
