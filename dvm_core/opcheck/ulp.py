"""Differences in units of the last place."""

from __future__ import annotations

import numpy as np

# Bits of the mantissa behind the point, exponent of the least normal number.
_FORMS = {"float32": (23, -126), "float64": (52, -1022), "float16": (10, -14), "bfloat16": (7, -126)}
_TOP = {"float32": 3.4028234663852886e38, "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float64": np.inf}


def is_float(dtype: str) -> bool:
    return dtype in _FORMS


def spacing(x: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of neighbouring numbers of `dtype` at |x|."""
    mantissa, least = _FORMS[dtype]
    exponent = np.frexp(np.where(np.isfinite(x), np.abs(x), 1))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, least) - mantissa)


def largest(got: np.ndarray, want: np.ndarray, dtype: str, scale: np.ndarray | None = None) -> float:
    """The largest difference of `got` (widened) from the float64 `want`, in ulps of `want` (of `scale`, if given).

    inf for another kind of value (NaN for a number, say).
    Integers and bools: 0 if all are equal, else inf.
    """
    if got.shape != want.shape:
        return np.inf
    if not is_float(dtype):
        return 0.0 if np.array_equal(got, want) else np.inf
    if not got.size:
        return 0.0
    want = np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        # What is nearer to the next power of two than to the largest number rounds to infinity.
        beyond = np.abs(want) > _TOP[dtype] * (1 + 2.0 ** -(_FORMS[dtype][0] + 2))
        equal = (got == want) | (np.isnan(got) & np.isnan(want)) | (beyond & np.isinf(got) & (np.sign(got) == np.sign(want)))
        near = np.abs(got - want) / spacing(want if scale is None else scale, dtype)
        off = np.where(equal, 0.0, np.where(np.isfinite(got) & np.isfinite(want), near, np.inf))
    return float(off.max())
