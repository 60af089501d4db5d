"""The numbers of the instruction RANDOM in NumPy: Philox 4x32-10 with counter (number, offset) and key seed, see docs/bytecode.md."""

from __future__ import annotations

import math

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def random(seed: int, offset: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Element by element what the core draws. dtype: float32, float64, int32 or int64."""
    n = math.prod(shape)
    number = np.arange(2 * n // 4 + 1, dtype=np.uint64)
    w = [number & _LOW, number >> _HALF, np.full_like(number, offset & 0xFFFFFFFF), np.full_like(number, (offset >> 32) & 0xFFFFFFFF)]
    key = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
    for _ in range(10):
        p, q = w[0] * _MULTIPLIERS[0], w[2] * _MULTIPLIERS[1]
        w = [(q >> _HALF) ^ w[1] ^ np.uint64(key[0]), q & _LOW, (p >> _HALF) ^ w[3] ^ np.uint64(key[1]), p & _LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    words = np.stack(w, 1).astype(np.uint32).reshape(-1)
    pairs = words[: 2 * n].view(np.uint64)
    if dtype == "float32":
        return ((words[:n] >> np.uint32(8)) * np.float32(2.0**-24)).astype(np.float32).reshape(shape)
    if dtype == "float64":
        return ((pairs >> np.uint64(11)) * 2.0**-53).reshape(shape)
    return (words[:n].view(np.int32) if dtype == "int32" else pairs.view(np.int64)).reshape(shape)
