"""What RANDOM must draw: Philox 4x32 with 10 rounds, written from its description with NumPy."""
from __future__ import annotations

import numpy as np


def philox(counters: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Ten rounds of Philox 4x32 on counters [n, 4], written with Python integers' rules."""
    c, (k0, k1) = counters.astype(np.uint64), key
    for _ in range(10):
        p0, p1 = c[:, 0] * np.uint64(0xD2511F53), c[:, 2] * np.uint64(0xCD9E8D57)
        high0, low0, high1, low1 = p0 >> np.uint64(32), p0 & np.uint64(0xFFFFFFFF), p1 >> np.uint64(32), p1 & np.uint64(0xFFFFFFFF)
        c = np.stack([high1 ^ c[:, 1] ^ np.uint64(k0), low1, high0 ^ c[:, 3] ^ np.uint64(k1), low0], 1)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c.astype(np.uint32)


def words(n: int, seed: int, offset: int) -> np.ndarray:
    """The first n words of a sequence."""
    index = np.arange(-(-n // 4), dtype=np.uint64)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    counters = np.stack([index & low, index >> high, np.full_like(index, offset & 0xFFFFFFFF), np.full_like(index, offset >> 32)], 1)
    return philox(counters, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:n]


def uniform(shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype) -> np.ndarray:
    """RANDOM's result; seed and offset are 64 bits, signed or not."""
    dtype, n = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
    drawn = words(n * dtype.itemsize // 4, seed % 2**64, offset % 2**64).view(f"u{dtype.itemsize}")
    if dtype.kind == "i":
        return drawn.view(dtype).reshape(shape)
    numbers = (drawn >> np.uint32(8)) * np.float32(2**-24) if dtype == np.float32 else (drawn >> np.uint64(11)) * 2.0**-53
    return numbers.astype(dtype).reshape(shape)
