"""The 16-bit floats for tests: bfloat16 travels as uint16, so values go in and out of float32, where every half is exact."""
import numpy as np
from kernel_calls import CODE, LEVELS

from dvm_core import _core

HALVES = ("float16", "bfloat16")
EPS = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}
MANTISSA = {"float16": 10, "bfloat16": 7}
LEAST = {"float16": 2.0 ** -24, "bfloat16": 2.0 ** -133}
TOP = {"float16": 65504.0, "bfloat16": float(np.uint32(0x7F7F0000).view(np.float32))}
ALL = np.arange(1 << 16, dtype=np.uint16)  # the bits of every half


def widen(bits, dtype):
    """float32 of halves given by their bits."""
    bits = np.asarray(bits, np.uint16)
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float32)
    return np.left_shift(bits, 16, dtype=np.uint32).view(np.float32)


def rounded(x, dtype):
    """float64 (or an integer) rounded once to a half, halves to even, as float64; independent of any cast to halves."""
    x = np.asarray(x)
    exact = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.where(np.isfinite(exact), exact, 1))[1] - MANTISSA[dtype] - 1, int(np.log2(LEAST[dtype])))
        step = np.ldexp(np.longdouble(1), exponent)
        y = np.rint(exact / step) * step
        y = np.where(np.abs(y) > TOP[dtype], np.copysign(np.inf, exact), y)
    return np.where(np.isfinite(exact), np.copysign(y, exact), exact).astype(np.float64)


def bits_of(x, dtype):
    """The bits of numbers that are halves already."""
    with np.errstate(all="ignore"):
        single = np.asarray(x).astype(np.float32)
        if dtype == "float16":
            return single.astype(np.float16).view(np.uint16)
        return np.right_shift(single.view(np.uint32), np.uint32(16)).astype(np.uint16)


def samples(dtype, n, seed=0):
    """Bits of n halves of every size class, special ones among them."""
    rng = np.random.default_rng(seed)
    near = bits_of(rounded(rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3, n), dtype), dtype)
    least, top = LEAST[dtype], TOP[dtype]
    special = bits_of(np.array([np.nan, np.inf, -np.inf, 0, -0.0, least, -3 * least, top, -top, 0.5, -1.5, 2.5]), dtype)
    pick = rng.random(n)
    anything = rng.integers(0, 1 << 16, n).astype(np.uint16)
    return np.where(pick < 0.15, special[rng.integers(0, len(special), n)], np.where(pick < 0.4, anything, near)).astype(np.uint16)


def same(got, want):
    """Equal numbers, zeros by their sign, any NaN like any other."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    equal = (got == want) & (np.signbit(got) == np.signbit(want))
    return got.shape == want.shape and bool(np.all(equal | (np.isnan(got) & np.isnan(want))))


def kernel(level, table, op, dtype, *args):
    """One kernel on the bits of halves."""
    return _core.selftest_kernel(level, table, op if isinstance(op, int) else OP[op], CODE[dtype], *args)


OP = {name: code for name, code, *_ in _core.OPS}
__all__ = ["ALL", "EPS", "HALVES", "LEAST", "LEVELS", "MANTISSA", "OP", "TOP", "bits_of", "kernel", "rounded", "same", "samples", "widen"]
