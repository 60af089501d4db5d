"""Dtypes that programs never have and tensors beside them may: complex, odd integers, eight and four bits. Shown, never computed with.

Those that NumPy lacks come as their bits (uint8, in the shape of the tensor) and are decoded for what is looked at."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FIRST = 256  # codes of these dtypes: no code of native/types.h


@dataclass(frozen=True)
class Foreign:
    """decode: bits to numbers that NumPy computes with, None where it has the dtype itself."""
    name: str
    short: str
    code: int
    itemsize: int  # bytes
    decode: Callable[[np.ndarray], np.ndarray] | None = None


def _decoded(table: np.ndarray, bits: np.ndarray) -> np.ndarray:
    return table[bits.view(np.uint8)]


@functools.cache
def _small_floats(exponent_bits: int, bias: int) -> np.ndarray:
    """All 256 numbers with that many bits of exponent, before the codes that a format keeps for other things."""
    codes = np.arange(256)
    mantissa_bits = 7 - exponent_bits
    exponent, mantissa = codes >> mantissa_bits & (1 << exponent_bits) - 1, codes & (1 << mantissa_bits) - 1
    normal = np.ldexp(1.0 + np.ldexp(mantissa, -mantissa_bits), exponent - bias)
    subnormal = np.ldexp(mantissa.astype(np.float64), 1 - bias - mantissa_bits)
    return np.where(codes & 0x80, -1.0, 1.0) * np.where(exponent == 0, subnormal, normal)


@functools.cache
def _e4m3fn() -> np.ndarray:
    """OCP 8-bit floating point, E4M3: no infinities, all ones are NaN."""
    numbers = _small_floats(4, 7).copy()
    numbers[[0x7F, 0xFF]] = np.nan
    return numbers.astype(np.float32)


@functools.cache
def _e5m2() -> np.ndarray:
    """OCP E5M2: the upper half of a float16."""
    return np.left_shift(np.arange(256, dtype=np.uint16), 8).view(np.float16).astype(np.float32)


@functools.cache
def _hifloat8() -> np.ndarray:
    """HiF8: a prefix of 2 to 4 bits says how many bits of exponent follow (sign and magnitude, leading one), the rest is mantissa."""
    prefixes = (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0))
    numbers = np.zeros(256, np.float32)
    for code in range(128):
        bits = f"{code:07b}"
        found = next(((prefix, width) for prefix, width in prefixes if bits.startswith(prefix)), None)
        if found is None:
            numbers[code] = 2.0 ** (code - 23) if code else 0.0
        else:
            prefix, width = found
            exponent, mantissa = bits[len(prefix):len(prefix) + width], bits[len(prefix) + width:]
            power = int("1" + exponent[1:], 2) * (-1 if exponent[0] == "1" else 1) if width else 0
            numbers[code] = 2.0 ** power * (1 + int(mantissa, 2) / (1 << len(mantissa)))
        numbers[code + 128] = -numbers[code]
    numbers[0x80], numbers[0x6F], numbers[0xEF] = np.nan, np.inf, -np.inf
    return numbers


def _pairs(bits: np.ndarray) -> np.ndarray:
    """Two integers of four bits in each byte, the lower half first: one more axis."""
    signed = bits.view(np.int8)
    return np.stack((np.right_shift(np.left_shift(signed, 4), 4), np.right_shift(signed, 4)), axis=-1)


# fmt: off
TABLE = (
    Foreign("int16",         "i16",    FIRST,      2),
    Foreign("uint16",        "u16",    FIRST + 1,  2),
    Foreign("uint32",        "u32",    FIRST + 2,  4),
    Foreign("uint64",        "u64",    FIRST + 3,  8),
    Foreign("complex64",     "c64",    FIRST + 4,  8),
    Foreign("complex128",    "c128",   FIRST + 5, 16),
    Foreign("float8_e4m3fn", "f8e4m3", FIRST + 6,  1, lambda bits: _decoded(_e4m3fn(), bits)),
    Foreign("float8_e5m2",   "f8e5m2", FIRST + 7,  1, lambda bits: _decoded(_e5m2(), bits)),
    Foreign("hifloat8",      "hif8",   FIRST + 8,  1, lambda bits: _decoded(_hifloat8(), bits)),
    Foreign("int4x2",        "i4x2",   FIRST + 9,  1, _pairs),
)
# fmt: on
BY_CODE = {entry.code: entry for entry in TABLE}
CODES = {entry.name: entry.code for entry in TABLE}
