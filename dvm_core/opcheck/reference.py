"""What float64 NumPy says of each op, on operands given as float64 (floats) or as they are. Written from the formulas of ops.def."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case
from .windows import WINDOWS

Reference = Callable[..., np.ndarray]


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def _modulo(fn: Reference) -> Reference:
    def modulo(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "f":
            return fn(a, b)
        return np.where(b == 0, 0, fn(a, np.where(b == 0, 1, b))).astype(a.dtype)

    return modulo


def _shift(fn: Reference, beyond: Reference) -> Reference:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        fits = (b >= 0) & (b < 8 * a.dtype.itemsize)
        return np.where(fits, fn(a, np.where(fits, b, 0)), beyond(a)).astype(a.dtype)

    return shift


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.power(a, b)
    # Whole powers: a negative one is a fraction, cut off.
    whole = np.power(a, np.maximum(b, 0))
    return np.where(b >= 0, whole, np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))).astype(a.dtype)


_ELEMENTWISE: dict[str, Reference] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": _divide, "POW": _power, "MAXIMUM": np.maximum, "MINIMUM": np.minimum,
    "EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal, "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or, "LOGICAL_NOT": np.logical_not,
    "NEG": np.negative, "ABS": np.abs, "EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt, "RSQRT": lambda x: 1 / np.sqrt(x),
    "RECIPROCAL": lambda x: 1 / x, "TANH": np.tanh, "ERF": np.vectorize(math.erf, otypes=[np.float64]),
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)), "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint, "TRUNC": np.trunc,
    "IS_FINITE": np.isfinite, "IS_NAN": np.isnan, "IS_INF": np.isinf, "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "ATAN": np.arctan,
    "COPY": lambda x: x, "LOG1P": np.log1p, "EXPM1": np.expm1, "SIGN": np.sign, "SELECT": np.where, "FMOD": _modulo(np.fmod),
    "REMAINDER": _modulo(np.remainder), "BIT_NOT": np.invert, "BIT_AND": np.bitwise_and, "BIT_OR": np.bitwise_or, "BIT_XOR": np.bitwise_xor,
    "SHIFT_LEFT": _shift(np.left_shift, np.zeros_like), "SHIFT_RIGHT": _shift(np.right_shift, lambda a: np.where(a < 0, -1, 0)),
}  # fmt: skip
_REDUCE = {"SUM": np.sum, "MAX": np.max, "MIN": np.min, "MEAN": np.mean, "PROD": np.prod}
_REDUCE_BOOL = {"SUM": np.any, "MAX": np.any, "MIN": np.all, "PROD": np.all}


def _reduce(c: Case, x: np.ndarray) -> np.ndarray:
    if x.dtype == bool:
        return np.asarray(_REDUCE_BOOL[c.op](x, axis=c.attrs[1:], keepdims=bool(c.attrs[0])))
    rest: Any = {"dtype": x.dtype} if c.op in ("SUM", "PROD") else {}
    return np.asarray(_REDUCE[c.op](x, axis=c.attrs[1:], keepdims=bool(c.attrs[0]), **rest))  # type: ignore[operator]


def _matmul(c: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(np.swapaxes(a, -1, -2) if c.attrs[0] else a, np.swapaxes(b, -1, -2) if c.attrs[1] else b)


def _slice(c: Case, x: np.ndarray) -> np.ndarray:
    assert c.shape is not None
    return x[np.ix_(*(start + step * np.arange(n) for start, step, n in zip(c.attrs[::2], c.attrs[1::2], c.shape, strict=True)))]


def _unslice(c: Case, x: np.ndarray) -> np.ndarray:
    out = np.zeros(c.shape or (), x.dtype)
    out[np.ix_(*(start + step * np.arange(n) for start, step, n in zip(c.attrs[::2], c.attrs[1::2], x.shape, strict=True)))] = x
    return out


def _pad(c: Case, x: np.ndarray) -> np.ndarray:
    out = np.full(c.shape or (), c.imms[0]).astype(x.dtype)
    out[tuple(slice(before, before + n) for before, n in zip(c.attrs, x.shape, strict=True))] = x
    return out


def _cumsum(c: Case, x: np.ndarray) -> np.ndarray:
    axis, exclusive, reverse = c.attrs
    x = np.flip(x, axis) if reverse else x
    total = np.cumsum(x, axis, dtype=x.dtype)
    if exclusive:  # a place later, from 0
        first = np.zeros_like(np.take(total, [0], axis))
        total = np.concatenate([first, np.delete(total, -1, axis)], axis)
    return np.flip(total, axis) if reverse else total


def _along(index: np.ndarray) -> tuple[np.ndarray, ...]:
    # Places of elements along axis 0.
    return (index, *np.indices(index.shape)[1:])


def _add_at(c: Case, new: np.ndarray, places: Any) -> np.ndarray:
    out = np.zeros(c.shape or (), new.dtype)
    np.add.at(out, places, new)
    return out


def _put(x: np.ndarray, places: Any, new: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[places] = new  # NumPy, too, leaves the last one
    return out


def _order(c: Case, x: np.ndarray, descending: int, axis: int) -> np.ndarray:
    # NaN is above all numbers; equal ones stay as they were.
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def _iota(c: Case) -> np.ndarray:
    assert c.shape is not None
    return np.broadcast_to(np.indices(c.shape)[c.attrs[0]], c.shape)


_OTHERS: dict[str, Reference] = {
    "CAST": lambda c, x: np.trunc(x) if x.dtype.kind == "f" and c.dtype.startswith(("int", "uint")) else x,
    "MATMUL": _matmul,
    "RESHAPE": lambda c, x: x.reshape(c.shape),
    "TRANSPOSE": lambda c, x: x.transpose(c.attrs),
    "SLICE": _slice,
    "BROADCAST": lambda c, x: np.broadcast_to(x, c.shape),
    "UNSLICE": _unslice,
    "CONCAT": lambda c, *xs: np.concatenate(xs, c.attrs[0]),
    "PAD": _pad,
    "CUMSUM": _cumsum,
    "GATHER": lambda c, x, index: x[index],
    "SCATTER_ADD": lambda c, x, index: _add_at(c, x, index),
    "GATHER_ELEMENTS": lambda c, x, index: x[_along(index)],
    "SCATTER": lambda c, x, index, new: _put(x, index, new),
    "SCATTER_ELEMENTS": lambda c, x, index, new: _put(x, _along(index), new),
    "SCATTER_ADD_ELEMENTS": lambda c, x, index: _add_at(c, x, _along(index)),
    "ONE_HOT": lambda c, index: np.where(index[..., None] == np.arange(c.attrs[0]), c.imms[0], c.imms[1]),
    "ARGMAX": lambda c, x: np.argmax(x, c.attrs[1], keepdims=bool(c.attrs[0])),
    "ARGMIN": lambda c, x: np.argmin(x, c.attrs[1], keepdims=bool(c.attrs[0])),
    "SORT": lambda c, x: np.take_along_axis(x, _order(c, x, c.attrs[1], c.attrs[0]), c.attrs[0]),
    "ARGSORT": lambda c, x: _order(c, x, c.attrs[1], c.attrs[0]),
    "TOPK": lambda c, x: np.take(_order(c, x, c.attrs[2], c.attrs[0]), range(c.attrs[1]), c.attrs[0]),
    "FULL": lambda c: np.full(c.shape or (), c.imms[0]),
    "IOTA": _iota,
    **dict.fromkeys(_REDUCE, _reduce),
    **WINDOWS,
}
# Summed in an order of their own: their rounding is measured against the sum of magnitudes.
SUMS = frozenset(("SUM", "MEAN", "MATMUL", "CUMSUM", "SCATTER_ADD", "SCATTER_ADD_ELEMENTS", "CONV2D", "CONV2D_WEIGHT", "AVG_POOL2D",
                  "AVG_POOL2D_GRAD", "MAX_POOL2D_GRAD"))  # fmt: skip


def known(op: str) -> bool:
    """Whether there is a reference for it."""
    return op in _ELEMENTWISE or op in _OTHERS


def of(case: Case, operands: list[np.ndarray]) -> np.ndarray:
    """The result on these operands, the immediate among them."""
    with np.errstate(all="ignore"):
        if case.op in _ELEMENTWISE:
            return np.asarray(_ELEMENTWISE[case.op](*operands))
        return np.asarray(_OTHERS[case.op](case, *operands))


def magnitudes(case: Case, operands: list[np.ndarray]) -> np.ndarray:
    """The sum of magnitudes, for what is a sum."""
    first = 1 if case.op == "MAX_POOL2D_GRAD" else 0  # its first operand says where
    return of(case, [np.abs(x) if i >= first and x.dtype.kind == "f" else x for i, x in enumerate(operands)])
