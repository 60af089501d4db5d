"""Gradients by central differences in float64, for comparison."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """What a result is weighted with to get a number: the same for every caller, and not all equal."""
    return np.asarray((np.arange(math.prod(shape)) % 7 + 1).reshape(shape) / 4, np.float32)


def differences(function: Callable[..., np.ndarray], arrays: list[np.ndarray]) -> list[np.ndarray | None]:
    """Central differences in float64 of sum(function * weights), for the float arrays."""
    exact = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]

    def value() -> float:
        result = function(*exact)
        return float((result * weights(result.shape)).sum())

    found: list[np.ndarray | None] = []
    for array in exact:
        if array.dtype != np.float64:
            continue
        slope = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            kept, h = array[at], 1e-5
            array[at] = kept + h
            above = value()
            array[at] = kept - h
            below = value()
            array[at] = kept
            slope[at] = (above - below) / (2 * h)
        found.append(slope)
    return found
