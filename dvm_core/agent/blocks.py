"""Large arrays in parts of a bounded size: no pass over one makes another of its size."""
from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 21  # elements


def blocks(array: np.ndarray, most: int = BLOCK, by_rows: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """(place of the first element, elements) in index order, flat, at most so many at a time: views wherever the memory allows.
    by_rows: cut as an array would be whose elements do not lie side by side, so that several of one shape are cut alike."""
    if array.size <= most:
        if array.size:
            yield 0, array.reshape(-1)
    elif array.flags.c_contiguous and not by_rows:
        flat = array.reshape(-1)
        yield from ((at, flat[at:at + most]) for at in range(0, array.size, most))
    else:
        row = math.prod(array.shape[1:])
        rows = max(1, most // row)
        for first in range(0, array.shape[0], rows):
            if row <= most:
                yield first * row, array[first:first + rows].reshape(-1)
            else:
                yield from ((first * row + at, part) for at, part in blocks(array[first], most, by_rows))


def in_memory_order(array: np.ndarray) -> np.ndarray:
    """A view of the same elements, with axes by stride: a transposed tensor as it lies in memory. For what does not depend on order."""
    return array.transpose(sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis)))
