"""Convolutions, pools and random numbers in float64 NumPy, one tap after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..philox import random

if TYPE_CHECKING:
    from .cases import Case


def _taps(case: Case, image: tuple[int, ...], out: tuple[int, ...], taps: tuple[int, ...], stride: int, before: int,
          dilation: int) -> Iterator[tuple[int, int, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    # For each tap: its number in y and x, the outputs that see an element through it, and those elements. Numbers: places in attrs.
    a = case.attrs
    for ty in range(taps[0]):
        for tx in range(taps[1]):
            seen = []
            for axis, tap in ((0, ty), (1, tx)):
                step = a[dilation + axis] if dilation >= 0 else 1
                at = np.arange(out[axis]) * a[stride + axis] - a[before + axis] + tap * step
                there = np.flatnonzero((at >= 0) & (at < image[axis]))
                seen.append((there, at[there]))
            (oy, iy), (ox, ix) = seen
            yield ty, tx, (oy[:, None], ox[None, :]), (iy[:, None], ix[None, :])


def _conv2d(c: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    groups, out = c.attrs[8], np.zeros(c.shape)
    n, o = x.shape[0], w.shape[0]
    for ty, tx, to, at in _taps(c, x.shape[2:], c.shape[2:], w.shape[2:], 0, 2, 4):
        seen = x[(slice(None), slice(None), *at)].reshape(n, groups, w.shape[1], at[0].size, at[1].size)
        part = np.einsum("ngcyx,goc->ngoyx", seen, w[:, :, ty, tx].reshape(groups, o // groups, w.shape[1]))
        out[(slice(None), slice(None), *to)] += part.reshape(n, o, at[0].size, at[1].size)
    return out


def _conv2d_weight(c: Case, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    groups, out = c.attrs[8], np.zeros(c.shape)
    n, o = g.shape[:2]
    for ty, tx, to, at in _taps(c, x.shape[2:], g.shape[2:], c.shape[2:], 0, 2, 4):
        seen = x[(slice(None), slice(None), *at)].reshape(n, groups, c.shape[1], at[0].size, at[1].size)
        error = g[(slice(None), slice(None), *to)].reshape(n, groups, o // groups, at[0].size, at[1].size)
        out[:, :, ty, tx] = np.einsum("ngcyx,ngoyx->goc", seen, error).reshape(o, c.shape[1])
    return out


def _largest(c: Case, x: np.ndarray, out: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # Value of each window's first largest, and where it lies.
    best = np.full(out, -np.inf)
    y, z = np.zeros(out, np.int64), np.zeros(out, np.int64)
    for _, _, to, at in _taps(c, x.shape[2:], out[2:], c.attrs[0:2], 2, 4, 6):
        here, seen = (slice(None), slice(None), *to), x[(slice(None), slice(None), *at)]
        better = seen > best[here]
        best[here] = np.where(better, seen, best[here])
        y[here] = np.where(better, at[0], y[here])
        z[here] = np.where(better, at[1], z[here])
    return best, y, z


def _max_pool(c: Case, x: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    return _largest(c, x, c.shape)[0]


def _max_pool_grad(c: Case, x: np.ndarray, g: np.ndarray) -> np.ndarray:
    _, y, z = _largest(c, x, g.shape)
    out = np.zeros(x.shape)
    batch, channel = np.indices(g.shape)[:2]
    np.add.at(out, (batch, channel, y, z), g)
    return out


def _mean(c: Case, image: tuple[int, ...], out: tuple[int, ...]) -> np.ndarray:
    # Elements that count in each window: those of the image (the cases count no padding and name no divisor).
    count = np.zeros(out[2:])
    for _, _, to, _ in _taps(c, image[2:], out[2:], c.attrs[0:2], 2, 4, -1):
        count[to] += 1
    return count


def _avg_pool(c: Case, x: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    out = np.zeros(c.shape)
    for _, _, to, at in _taps(c, x.shape[2:], c.shape[2:], c.attrs[0:2], 2, 4, -1):
        out[(slice(None), slice(None), *to)] += x[(slice(None), slice(None), *at)]
    return out / _mean(c, x.shape, c.shape)


def _avg_pool_grad(c: Case, g: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    out, share = np.zeros(c.shape), g / _mean(c, c.shape, g.shape)
    for _, _, to, at in _taps(c, c.shape[2:], g.shape[2:], c.attrs[0:2], 2, 4, -1):
        out[(slice(None), slice(None), *at)] += share[(slice(None), slice(None), *to)]
    return out


def _random(c: Case) -> np.ndarray:
    return random(int(c.imms[0]), int(c.imms[1]), c.shape or (), c.dtype)


WINDOWS: dict[str, Callable[..., np.ndarray]] = {
    "CONV2D": _conv2d,
    "CONV2D_WEIGHT": _conv2d_weight,
    "MAX_POOL2D": _max_pool,
    "MAX_POOL2D_GRAD": _max_pool_grad,
    "AVG_POOL2D": _avg_pool,
    "AVG_POOL2D_GRAD": _avg_pool_grad,
    "RANDOM": _random,
}
