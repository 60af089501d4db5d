"""bfloat16 for NumPy, which has no such dtype: its bits travel as uint16, its values as float32."""

from __future__ import annotations

from typing import Any

import numpy as np


def convert_to_bf16(values: Any) -> np.ndarray:
    """The bits (uint16) of numbers rounded to bfloat16, to nearest even. An array of a dtype called bfloat16 gives its own bits."""
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        return array.view(np.uint16)
    with np.errstate(all="ignore"):
        single = np.asarray(array, np.float32)
        bits = single.view(np.uint32)
        if array.dtype.kind != "f" or array.dtype.itemsize > 4:
            # Rounded to odd first, so that the second rounding is the only one that counts.
            exact = np.asarray(array, np.float64)
            away = np.abs(single.astype(np.float64)) > np.abs(exact)
            inexact = (single != exact) & ~np.isnan(exact) & (bits & 1 == 0)
            bits = np.where(inexact, np.where(away, bits - 1, bits + 1), bits).astype(np.uint32)
        nearest = np.right_shift(bits + 0x7FFF + (np.right_shift(bits, 16) & 1), 16)
    return np.asarray(np.where(np.isnan(single), 0x7FC0, nearest), np.uint16)


def convert_from_bf16(bits: Any) -> np.ndarray:
    """The numbers (float32, exact) that bits of bfloat16 stand for; also of an array of a dtype called bfloat16."""
    array = np.asarray(bits)
    array = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    return np.asarray(np.left_shift(array, 16, dtype=np.uint32)).view(np.float32)
