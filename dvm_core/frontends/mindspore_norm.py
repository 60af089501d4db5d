"""Lowerings of normalizations."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import mindspore_compat as compat
from .axes import normalized
from .lowering import Unlowerable, lowers, normal_axis


def _normalize(c: Any, value: int, scale: int, shift: int, axes: tuple[int, ...], epsilon: float) -> tuple[int, int, int, int]:
    # (result, mean, variance, 1 / deviation)
    normal, mean, variance, inverse = normalized(c, value, axes, epsilon)
    result = normal
    if scale >= 0:
        result = c.mul(result, scale)
    if shift >= 0:
        result = c.add(result, shift)
    if result == normal:
        result = c.copy(normal)  # the group's result is its own, also without scale and shift
    return c.group("layer_norm", result, (value, scale, shift), axes, (normal, inverse)), mean, variance, inverse


@lowers("LayerNorm", once=True)
def _layer_norm(c: Any, x: Any, scale: Any, shift: Any, begin: int = 1, begin_params: int = 1, epsilon: float = 1e-7) -> tuple[int, ...]:
    value = c.value(x)
    rank = len(c.shape(value))
    axes = tuple(range(normal_axis(begin, rank), rank))
    if c.shape(c.value(scale)) != tuple(c.shape(value)[axis] for axis in axes):
        raise Unlowerable
    return _normalize(c, value, c.value(scale), c.value(shift), axes, float(epsilon))[:3]


@lowers("LayerNormExt", once=True)
def _layer_norm_ext(c: Any, x: Any, normal_shape: Sequence[int], scale: Any = None, shift: Any = None,
                    epsilon: float = 1e-5) -> tuple[int, ...]:
    value = c.value(x)
    rank = len(c.shape(value))
    axes = tuple(range(rank - len(normal_shape), rank))
    factor, addend = (-1 if t is None else c.value(t) for t in (scale, shift))
    result, mean, _, inverse = _normalize(c, value, factor, addend, axes, float(epsilon))
    return result, mean, inverse


@lowers("RmsNorm", once=True)
def _rms_norm(c: Any, x: Any, scale: Any, epsilon: float = 1e-6) -> tuple[int, int]:
    value, factor = c.value(x), c.value(scale)
    rank, inner = len(c.shape(value)), len(c.shape(factor))
    inverse = c.rsqrt(c.add(c.mean(c.mul(value, value), range(rank - inner, rank), True), float(epsilon)))
    return c.mul(c.mul(value, inverse), factor), inverse


def _along_channels(c: Any, tensor: Any, rank: int) -> int:
    """One value per channel, shaped to meet [batch, channels, ...]; -1 for None."""
    if tensor is None:
        return -1
    value = c.value(tensor)
    return c.reshape(value, (*c.shape(value), *(1,) * (rank - 2)))


def _batch_norm(c: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, training: bool, epsilon: float,
                momentum: float) -> tuple[int, int, int, int]:
    # (result, mean, variance, 1 / deviation), of the batch when training; then the running ones move towards them.
    value = c.value(x)
    shape = c.shape(value)
    rank = len(shape)
    factor, addend = _along_channels(c, scale, rank), _along_channels(c, shift, rank)
    if not training:
        inverse = c.rsqrt(c.add(_along_channels(c, variance, rank), epsilon))
        result = c.mul(c.sub(value, _along_channels(c, mean, rank)), inverse)
        result = c.mul(result, factor) if factor >= 0 else result
        return c.add(result, addend) if addend >= 0 else result, c.value(mean), c.value(variance), c.reshape(inverse, (shape[1],))
    axes = (0, *range(2, rank))
    count = math.prod(shape[axis] for axis in axes)
    result, centre, spread, inverse = _normalize(c, value, factor, addend, axes, epsilon)
    found = [c.reshape(v, (shape[1],)) for v in (centre, spread, inverse)]
    unbiased = c.mul(found[1], count / max(1, count - 1))
    for running, new in ((mean, found[0]), (variance, unbiased)):
        if running is not None:
            new = c.group("detached", c.copy(new), (new,))
            moved = c.add(c.mul(c.value(running), 1 - momentum), c.mul(new, momentum))
            c.replace(running, c.cast(moved, compat.DTYPE_OF[running.dtype]), "BatchNorm")
    return result, found[0], found[1], found[2]


@lowers("BatchNorm", once=True)
def _batch_norm_op(c: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, training: bool = False, epsilon: float = 1e-5,
                   momentum: float = 0.1, data_format: Any = 0) -> tuple[int, ...]:
    if data_format not in (0, "NCHW") or len(c.shape(c.value(x))) < 2:
        raise Unlowerable
    result, centre, spread, inverse = _batch_norm(c, x, scale, shift, mean, variance, bool(training), float(epsilon), float(momentum))
    return result, centre, spread, centre, inverse


@lowers("BatchNormExt", once=True)
def _batch_norm_ext(c: Any, x: Any, scale: Any, shift: Any, mean: Any, variance: Any, training: bool = False, momentum: float = 0.1,
                    epsilon: float = 1e-5) -> tuple[int, ...]:
    if len(c.shape(c.value(x))) < 2:
        raise Unlowerable
    result, centre, _, inverse = _batch_norm(c, x, scale, shift, mean, variance, bool(training), float(epsilon), float(momentum))
    return result, centre, inverse


@lowers("GroupNorm", once=True)
def _group_norm(c: Any, x: Any, groups: int, scale: Any = None, shift: Any = None, epsilon: float = 1e-5) -> tuple[int, int, int]:
    value = c.value(x)
    shape = c.shape(value)
    if len(shape) < 2 or not groups or shape[1] % groups or 0 in shape:
        raise Unlowerable
    rows = c.reshape(value, (shape[0], groups, math.prod(shape[1:]) // groups))
    normal, centre, _, inverse = _normalize(c, rows, -1, -1, (2,), float(epsilon))
    result = c.reshape(normal, shape)
    for name, parameter in (("mul", scale), ("add", shift)):
        if parameter is not None:
            result = getattr(c, name)(result, _along_channels(c, parameter, len(shape)))
    return result, c.reshape(centre, shape[:1] + (groups,)), c.reshape(inverse, shape[:1] + (groups,))
