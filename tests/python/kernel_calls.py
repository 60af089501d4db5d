"""Calling one kernel of one SIMD level, arrays of awkward values to feed it, and how near two results are."""
import numpy as np

from dvm_core import _core

LEVELS = _core.simd_levels()
OP = {name: code for name, code, *_ in _core.OPS}
CODE = {name: code for name, code, _ in _core.DTYPES}
SIZES = (0, 1, 15, 16, 17, 63, 64, 1000, 4097, 10000)
FLOATS = ("float32", "float64")
INTS = ("int32", "int64", "int8", "uint8")

def code(dtype):
    return CODE[np.dtype(dtype).name]


def call(level, table, op, dtype, *args):
    return _core.selftest_kernel(level, table, OP.get(op, 0) if isinstance(op, str) else op, code(dtype), *args)


def same_bits(a, b):
    """Equal bit for bit, except that any NaN equals any other (which of two payloads survives is the processor's choice)."""
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.kind == "f":
        nan = np.isnan(a) & np.isnan(b)
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return a.tobytes() == b.tobytes()


def ulps(got, want):
    """Distance from the float64 reference in units of the last place of the result's dtype (denormals: of the smallest)."""
    info = np.finfo(got.dtype)
    want_in_dtype = want.astype(got.dtype)
    ordinary = np.isfinite(want_in_dtype) & np.isfinite(got)
    # Where either is special both must be, and alike; the edge to infinity may be one step off.
    edge = np.isfinite(want) & (np.abs(want) > info.max * (1 - 4 * info.eps))
    special = ~ordinary & ~edge
    assert same_bits(got[special], want_in_dtype[special]), (got[special][:5], want[special][:5])
    w, g = want[ordinary], got[ordinary].astype(np.float64)
    step = np.ldexp(1.0, np.maximum(np.frexp(w)[1] - info.nmant - 1, info.minexp - info.nmant))
    return float(np.max(np.abs(g - w) / step, initial=0.0))


def numbers(dtype, n, seed=0):
    """n values of every size class; floats with NaN, infinities, both zeros, denormals and the largest scattered among them."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, n).astype(np.bool_)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        small = rng.integers(0 if dtype.kind == "u" else -9, 10, n).astype(dtype)
        x = np.where(rng.random(n) < 0.5, x, small)
        x[::7] = info.min
        x[3::11] = info.max
        return x
    info = np.finfo(dtype)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-4, 4, n)).astype(dtype)
    tiny, least = info.tiny, info.smallest_subnormal
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny / 8, -tiny / 3, least, info.max, info.min, 0.5, -1.5, 2.5], dtype)
    where = rng.random(n) < 0.2
    return np.where(where, special[rng.integers(0, len(special), n)], x)
