"""Convolutions and pools in float64, one tap after the other. Attributes are for y and x in turn; `s` has attrs and the result's shape."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def _seen(x, axis, out, tap, stride, before, dilation, gap, empty):
    """x as the outputs of one axis see it through a tap; `empty` where it sees nothing."""
    position = np.arange(out) * stride - before + tap * dilation
    there = (position >= 0) & (position <= (x.shape[axis] - 1) * gap) & (position % gap == 0)
    if not x.shape[axis]:
        return np.full((*x.shape[:axis], out, *x.shape[axis + 1:]), empty)
    taken = np.take(x, np.where(there, position // gap, 0), axis)
    return np.where(there.reshape([-1 if i == axis else 1 for i in range(x.ndim)]), taken, empty)


def through(x, out, ty, tx, stride, before, dilation, gap=(1, 1), empty=0.0):
    x = _seen(x, 2, out[0], ty, stride[0], before[0], dilation[0], gap[0], empty)
    return _seen(x, 3, out[1], tx, stride[1], before[1], dilation[1], gap[1], empty)


def _conv_parts(s):
    a = s.attrs
    return a[0:2], a[2:4], a[4:6], a[6:8], a[8]


def _conv2d(s, x, w):
    *window, groups = _conv_parts(s)
    n, c = x.shape[:2]
    o, inner, taps_y, taps_x = w.shape
    out = np.zeros((n, groups, o // groups, *s.shape[2:]))
    for ty in range(taps_y):
        for tx in range(taps_x):
            seen = through(x, s.shape[2:], ty, tx, *window).reshape(n, groups, inner, *s.shape[2:])
            out += np.einsum("ngcyx,goc->ngoyx", seen, w[:, :, ty, tx].reshape(groups, o // groups, inner))
    return out.reshape(s.shape)


def _conv2d_weight(s, x, g):
    *window, groups = _conv_parts(s)
    n, o = g.shape[:2]
    out = np.zeros(s.shape)
    for ty in range(s.shape[2]):
        for tx in range(s.shape[3]):
            seen = through(x, g.shape[2:], ty, tx, *window).reshape(n, groups, s.shape[1], *g.shape[2:])
            part = np.einsum("ngcyx,ngoyx->goc", seen, g.reshape(n, groups, o // groups, *g.shape[2:]))
            out[:, :, ty, tx] = part.reshape(o, s.shape[1])
    return out


def _taps(s):
    return [(ty, tx) for ty in range(s.attrs[0]) for tx in range(s.attrs[1])]


def _max_pool(s, x, other=None):
    if other is not None:  # linear in other: its matrix is that of the gradient
        turned = SimpleNamespace(attrs=s.attrs, shape=x.shape)
        out = np.zeros(s.shape)
        for at in np.ndindex(*s.shape):
            one = np.zeros(s.shape)
            one[at] = 1
            place = _max_pool_grad(turned, x, one) > 0
            out[at] = other[place].sum()
        return out
    out = np.full(s.shape, -np.inf)
    for ty, tx in _taps(s):
        out = np.maximum(out, through(x, s.shape[2:], ty, tx, *(s.attrs[i:i + 2] for i in (2, 4, 6)), empty=-np.inf))
    return out


def _places(s, image, out, ty, tx, dilation=(1, 1)):
    """(there, y, x) of the elements a tap sees."""
    (sy, sx), (by, bx) = s.attrs[2:4], s.attrs[4:6]
    y, x = np.arange(out[0]) * sy - by + ty * dilation[0], np.arange(out[1]) * sx - bx + tx * dilation[1]
    there = ((y >= 0) & (y < image[0]))[:, None] & ((x >= 0) & (x < image[1]))[None, :]
    return there, *np.broadcast_arrays(np.clip(y, 0, max(image[0] - 1, 0))[:, None], np.clip(x, 0, max(image[1] - 1, 0))[None, :])


def _max_pool_grad(s, x, g):
    out, dilation = np.zeros(s.shape), s.attrs[6:8]
    for n, c in np.ndindex(*s.shape[:2]):
        plane = x[n, c]
        best = np.full(g.shape[2:], -np.inf)
        found = np.zeros(g.shape[2:], bool)
        at = np.zeros((2, *g.shape[2:]), int)
        for ty, tx in _taps(s):
            there, y, x_ = _places(s, plane.shape, g.shape[2:], ty, tx, dilation)
            value = plane[y, x_] if plane.size else best
            better = there & (~found | (value > best) | (np.isnan(value) & ~np.isnan(best)))
            best, at[0], at[1] = np.where(better, value, best), np.where(better, y, at[0]), np.where(better, x_, at[1])
            found |= better
        np.add.at(out[n, c], (at[0][found], at[1][found]), g[n, c][found])
    return out


def _divisors(s, image, out):
    pad, divisor = s.attrs[8], s.attrs[9]
    if divisor:
        return np.full(out, float(divisor))
    count = []
    for k in range(2):
        first = np.arange(out[k]) * s.attrs[2 + k] - s.attrs[4 + k]
        low, high = (-s.attrs[4 + k], image[k] + s.attrs[6 + k]) if pad else (0, image[k])
        count.append(np.maximum(np.minimum(first + s.attrs[k], high) - np.maximum(first, low), 0))
    both = (count[0][:, None] * count[1][None, :]).astype(float)
    return np.where(both > 0, both, 1.0)


def _avg_pool(s, x):
    total = sum((through(x, s.shape[2:], ty, tx, s.attrs[2:4], s.attrs[4:6], (1, 1)) for ty, tx in _taps(s)), np.zeros(s.shape))
    return total / _divisors(s, x.shape[2:], s.shape[2:])


def _avg_pool_grad(s, g):
    out, share = np.zeros(s.shape), g / _divisors(s, s.shape[2:], g.shape[2:])
    for ty, tx in _taps(s):
        there, y, x = _places(s, s.shape[2:], g.shape[2:], ty, tx)
        for n, c in np.ndindex(*s.shape[:2]):
            np.add.at(out[n, c], (y[there], x[there]), share[n, c][there])
    return out


WINDOWS = {"CONV2D": _conv2d, "CONV2D_WEIGHT": _conv2d_weight, "MAX_POOL2D": _max_pool, "MAX_POOL2D_GRAD": _max_pool_grad,
           "AVG_POOL2D": _avg_pool, "AVG_POOL2D_GRAD": _avg_pool_grad}
