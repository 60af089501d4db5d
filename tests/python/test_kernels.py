"""The element kernels of every SIMD level, one by one, against NumPy in float64; and the same bits at every level."""
import os
import subprocess
import sys

import numpy as np
import pytest

from dvm_core import _core

LEVELS = _core.simd_levels()
OP = {name: code for name, code, *_ in _core.OPS}
CODE = {name: code for name, code, _ in _core.DTYPES}
SIZES = (0, 1, 15, 16, 17, 63, 64, 1000, 4097, 10000)
FLOATS = ("float32", "float64")
INTS = ("int32", "int64", "int8", "uint8")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


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
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, info.tiny / 8, -info.tiny / 3, info.smallest_subnormal, info.max, info.min, 0.5, -1.5, 2.5],
                       dtype)
    where = rng.random(n) < 0.2
    return np.where(where, special[rng.integers(0, len(special), n)], x)


def erf(x):
    import math
    return np.vectorize(math.erf, otypes=[np.float64])(x)


UNARY = {  # op: (reference, largest error in ulps for float32, for float64)
    "NEG": (np.negative, 0, 0), "ABS": (np.abs, 0, 0), "SQRT": (np.sqrt, 0.5, 0.5), "RSQRT": (lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "RECIPROCAL": (lambda x: 1 / x, 0.5, 0.5), "FLOOR": (np.floor, 0, 0), "CEIL": (np.ceil, 0, 0), "ROUND": (np.rint, 0, 0),
    "TRUNC": (np.trunc, 0, 0), "COPY": (lambda x: x, 0, 0),
    "EXP": (np.exp, 1.0, 2), "LOG": (np.log, 1.0, 2), "TANH": (np.tanh, 2.6, 3), "ERF": (erf, 1.4, 2), "SIN": (np.sin, 0.51, 2), "COS": (np.cos, 0.51, 2),
    "SIGMOID": (lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x))), 2.5, 3),
}


def unary(level, op, x, result=None):
    dst = np.full(x.size, 77, result or x.dtype)
    assert call(level, "unary", op, x.dtype, dst, x, x.size)
    return dst


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", UNARY)
def test_unary_is_accurate_and_the_same_at_every_level(op, dtype):
    reference, limit32, limit64 = UNARY[op]
    for n in SIZES:
        x = numbers(dtype, n, seed=n)
        results = [unary(level, op, x) for level in LEVELS]
        assert ulps(results[0], reference(x.astype(np.float64))) <= (limit32 if dtype == "float32" else limit64), (op, n)
        for level, got in zip(LEVELS, results, strict=True):
            assert same_bits(got, results[0]), (op, n, level)
            in_place = x.copy()
            assert call(level, "unary", op, dtype, in_place, in_place, n)
            assert same_bits(in_place, got), (op, n, level, "in place")


@pytest.mark.parametrize("op", ["EXP", "LOG", "TANH", "ERF", "SIGMOID", "SIN", "COS"])
def test_float32_functions_over_the_whole_range(op):
    """Every 4999th float there is; the limits are the ones documented beside the coefficients."""
    x = np.arange(0, 1 << 32, 4999, dtype=np.uint64).astype(np.uint32).view(np.float32)
    reference, limit, _ = UNARY[op]
    first = unary(LEVELS[0], op, x)
    assert ulps(first, reference(x.astype(np.float64))) <= limit
    for level in LEVELS[1:]:
        assert same_bits(unary(level, op, x), first), level


INF, NAN = np.inf, np.nan
SPECIAL = [  # op, argument, exact result
    ("EXP", -INF, 0.0), ("EXP", INF, INF), ("EXP", NAN, NAN), ("EXP", 0.0, 1.0), ("EXP", -0.0, 1.0), ("EXP", 1e30, INF), ("EXP", -1e30, 0.0),
    ("LOG", 0.0, -INF), ("LOG", -0.0, -INF), ("LOG", -1.0, NAN), ("LOG", -INF, NAN), ("LOG", INF, INF), ("LOG", NAN, NAN), ("LOG", 1.0, 0.0),
    ("TANH", INF, 1.0), ("TANH", -INF, -1.0), ("TANH", NAN, NAN), ("TANH", -0.0, -0.0), ("TANH", 1e-42, 1e-42), ("TANH", -30.0, -1.0),
    ("ERF", INF, 1.0), ("ERF", -INF, -1.0), ("ERF", NAN, NAN), ("ERF", -0.0, -0.0), ("ERF", 9.0, 1.0),
    ("SIGMOID", INF, 1.0), ("SIGMOID", -INF, 0.0), ("SIGMOID", NAN, NAN), ("SIGMOID", 0.0, 0.5),
    ("SIN", INF, NAN), ("SIN", -0.0, -0.0), ("COS", -INF, NAN), ("COS", 0.0, 1.0), ("SIN", NAN, NAN),
    ("SQRT", -1.0, NAN), ("SQRT", -0.0, -0.0), ("RSQRT", 0.0, INF), ("RSQRT", INF, 0.0), ("RECIPROCAL", -0.0, -INF),
    ("FLOOR", -0.0, -0.0), ("CEIL", -0.3, -0.0), ("ROUND", -0.5, -0.0), ("ROUND", 2.5, 2.0), ("ROUND", 3.5, 4.0), ("TRUNC", -0.9, -0.0),
    ("FLOOR", INF, INF), ("ROUND", NAN, NAN), ("ABS", -0.0, 0.0), ("NEG", 0.0, -0.0),
]


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype):
    for level in LEVELS:
        for op, x, want in SPECIAL:
            for n in (1, 40):  # scalar tail and vector body
                got = unary(level, op, np.full(n, x, dtype))
                assert same_bits(got, np.full(n, want, dtype)), (level, op, x, got[0])


def test_exp_and_sigmoid_reach_denormals():
    x = np.linspace(-104, -86, 5000, dtype=np.float32)
    for level in LEVELS:
        got = unary(level, "EXP", x)
        assert np.count_nonzero((got > 0) & (got < np.finfo(np.float32).tiny)) > 1000
        assert ulps(got, np.exp(x.astype(np.float64))) <= 1.0
        assert np.all(unary(level, "SIGMOID", x[x > -100]) > 0)


@pytest.mark.parametrize("dtype", INTS)
def test_unary_integers(dtype):
    references = {"NEG": np.negative, "ABS": np.abs, "COPY": np.array, "FLOOR": np.array, "CEIL": np.array, "ROUND": np.array, "TRUNC": np.array}
    for n in SIZES:
        x = numbers(dtype, n)
        for op, reference in references.items():
            for level in LEVELS:
                assert same_bits(unary(level, op, x), reference(x)), (op, level)


def test_is_finite_and_logical_not():
    for level in LEVELS:
        for dtype in FLOATS:
            x = numbers(dtype, 4097)
            assert same_bits(unary(level, "IS_FINITE", x, np.bool_), np.isfinite(x))
        assert unary(level, "IS_FINITE", numbers("int32", 100), np.bool_).all()
        x = numbers("bool", 1000)
        assert same_bits(unary(level, "LOGICAL_NOT", x, np.bool_), ~x)


# ---- two operands ------------------------------------------------------------------------------------------------------------------------

COMPARISONS = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
               "GREATER_EQUAL": np.greater_equal}
ARITHMETIC = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "DIV": np.true_divide}


def floor_divide(a, b):
    """NumPy's floor division, which already gives x // 0 = 0 and MIN // -1 = MIN."""
    return np.floor_divide(a, b)


def integer_power(a, b):
    """a ** b modulo 2**bits; a negative exponent truncates the true power."""
    bits, out = 8 * a.dtype.itemsize, []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        p = pow(x, y, 1 << bits) if y >= 0 else (1 if x == 1 else (-1) ** (-y) if x == -1 else 0)
        p %= 1 << bits
        out.append(p - (1 << bits) if a.dtype.kind == "i" and p >> (bits - 1) else p)
    return np.array(out, a.dtype)


def reference_of(op, dtype):
    if op in COMPARISONS:
        return COMPARISONS[op]
    if np.dtype(dtype) == np.bool_:
        return {"ADD": np.logical_or, "MUL": np.logical_and, "MAXIMUM": np.logical_or, "MINIMUM": np.logical_and, "LOGICAL_AND": np.logical_and,
                "LOGICAL_OR": np.logical_or}[op]
    if np.dtype(dtype).kind in "iu" and op in ("DIV", "POW"):
        return floor_divide if op == "DIV" else integer_power
    return ARITHMETIC[op]


BINARY = [(op, dtype) for dtype in (*FLOATS, *INTS) for op in (*ARITHMETIC, *COMPARISONS)]
BINARY += [("POW", dtype) for dtype in INTS]
BINARY += [(op, "bool") for op in ("ADD", "MUL", "MAXIMUM", "MINIMUM", "LOGICAL_AND", "LOGICAL_OR", *COMPARISONS)]


def binary(level, op, a, b):
    dst = np.full(a.size, 1, np.bool_ if op in COMPARISONS or op.startswith("LOGICAL") else a.dtype)
    assert call(level, "binary", op, a.dtype, dst, a, b, a.size)
    return dst


@pytest.mark.parametrize(("op", "dtype"), BINARY)
def test_binary_equals_numpy(op, dtype):
    """float32 and float64 arithmetic is correctly rounded, so NumPy in the same dtype is the reference, bit for bit."""
    reference = reference_of(op, dtype)
    for n in SIZES:
        a, b = numbers(dtype, n, seed=1), numbers(dtype, n, seed=2)
        want = reference(a, b)
        if op in ("MAXIMUM", "MINIMUM"):  # of two zeros either may be the larger
            want = want + np.zeros(1, dtype) if want.dtype.kind == "f" else want
        for level in LEVELS:
            got = binary(level, op, a, b)
            assert same_bits(got + np.zeros(1, dtype) if op in ("MAXIMUM", "MINIMUM") and got.dtype.kind == "f" else got, want), (n, level)
            assert same_bits(got, binary(LEVELS[0], op, a, b)), (n, level)
            if got.dtype == a.dtype:
                for operand in (0, 1):
                    pair = [a.copy(), b.copy()]
                    assert call(level, "binary", op, dtype, pair[operand], *pair, n)
                    assert same_bits(pair[operand], got), (n, level, "in place")


@pytest.mark.parametrize(("op", "dtype"), [*BINARY, ("POW", "float32"), ("POW", "float64")])
def test_one_operand_per_row_equals_two_tensors(op, dtype):
    """Which form the compiler picks must never change a bit."""
    for rows, cols in ((0, 5), (1, 0), (1, 1), (1, 1000), (5, 1), (3, 17), (64, 64), (7, 129)):
        a, s = numbers(dtype, rows * cols, seed=3), numbers(dtype, max(rows, 1), seed=4)
        if op == "POW" and np.dtype(dtype).kind == "f":
            s[: min(rows, 5)] = np.array([2, 0.5, -1, -0.5, 3])[: min(rows, 5)]
        spread = np.repeat(s[:rows], cols)
        for level in LEVELS:
            for table, pair in (("binary_vs", (a, spread)), ("binary_sv", (spread, a))):
                want = binary(LEVELS[0], op, *pair)
                got = np.zeros_like(want)
                assert call(level, table, op, dtype, got, a, s, rows, cols)
                assert same_bits(got, want), (level, table, rows, cols)


def test_maximum_and_minimum_of_nan_are_nan():
    for level in LEVELS:
        for dtype in FLOATS:
            for n in (1, 33):
                nan, one = np.full(n, np.nan, dtype), np.ones(n, dtype)
                for op in ("MAXIMUM", "MINIMUM"):
                    assert np.isnan(binary(level, op, nan, one)).all()
                    assert np.isnan(binary(level, op, one, nan)).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integer_division_edges(dtype):
    """Every pair of edge values and small numbers, rounded towards minus infinity; nothing traps."""
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, *range(0 if info.min == 0 else -13, 14)]
    a, b = (g.ravel() for g in np.meshgrid(np.array(edges, dtype), np.array(edges, dtype)))
    want = [0 if y == 0 else x // y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    want = np.array(want, object)
    want[want > info.max] = info.min  # MIN / -1
    for level in LEVELS:
        assert same_bits(binary(level, "DIV", a, b), want.astype(dtype)), level


@pytest.mark.parametrize("dtype", FLOATS)
def test_power(dtype):
    """Like NumPy: x ** 0 = 1 even for NaN, negative bases with whole exponents, NaN with broken ones."""
    bases = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-3, -1e3, 3.7, INF, -INF, NAN]
    exponents = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, -3.0, 0.5, -0.5, 1.5, 7.0, -7.0, 2.25, INF, -INF, NAN]
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(bases, exponents))
    rng = np.random.default_rng(0)
    a = np.concatenate([a, np.exp(rng.uniform(-20, 20, 5000)).astype(dtype)])
    b = np.concatenate([b, rng.uniform(-4, 4, 5000).astype(dtype)])
    want = np.power(a.astype(np.float64), b.astype(np.float64))
    for level in LEVELS:
        got = binary(level, "POW", a, b)
        assert ulps(got, want) <= 2
        assert same_bits(got, binary(LEVELS[0], "POW", a, b))


# ---- casts, select -------------------------------------------------------------------------------------------------------------------------


def saturating(x, dtype):
    """Float to integer as documented: towards zero, clamped, NaN is 0."""
    info = np.iinfo(dtype)
    return np.array([0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in x.astype(np.float64).tolist()], dtype)


def run_cast(level, x, to):
    dst = np.zeros(x.size, to)
    assert call(level, "cast", code(x.dtype), to, dst, x, x.size), (x.dtype, to)
    return dst


@pytest.mark.parametrize("to", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("source", [*FLOATS, *INTS, "bool"])
def test_casts(source, to):
    for n in SIZES:
        x = numbers(source, n)
        if source in FLOATS and n > 64:
            x[10:60] = np.linspace(-300, 300, 50)
            x[:6] = [2**31, -(2**31), 2**63, -(2**63), 2**31 - 1, 1e300]
        want = saturating(x, to) if source in FLOATS and to in INTS else x.astype(to)
        for level in LEVELS:
            assert same_bits(run_cast(level, x, to), want), (n, level)


def test_half_casts_are_exact_and_round_to_even():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    singles = np.arange(0, 1 << 32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ties = (halves[:0x7BFF].astype(np.float32) + halves[1:0x7C00].astype(np.float32)) / 2
    for level in LEVELS:
        assert same_bits(run_cast(level, halves, np.float32), halves.astype(np.float32))
        for x in (singles, ties, np.nextafter(ties, np.float32(0)), np.float32([65519.9, 65520, 65536, 1e-8, 2.98e-8, 2.99e-8])):
            assert same_bits(run_cast(level, x, np.float16), x.astype(np.float16))


def test_bfloat16_casts():
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = bits.astype(np.uint32) << 16
    x = np.arange(0, 1 << 32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    u = x.view(np.uint32).astype(np.uint64)
    nearest = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)
    want = np.where(np.isnan(x), 0x7FC0, nearest)
    for level in LEVELS:
        back, narrow = np.zeros(bits.size, np.float32), np.zeros(x.size, np.uint16)
        assert _core.selftest_kernel(level, "cast", CODE["bfloat16"], CODE["float32"], back, bits, bits.size)
        assert same_bits(back, wide.view(np.float32))
        assert _core.selftest_kernel(level, "cast", CODE["float32"], CODE["bfloat16"], narrow, x, x.size)
        nan = np.isnan(x)
        assert np.array_equal(narrow[~nan], want[~nan])
        assert np.all((narrow[nan] & 0x7F80) == 0x7F80) and np.all(narrow[nan] & 0x7F)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool", "float16"])
def test_select(dtype):
    for n in SIZES:
        cond, a, b = numbers("bool", n), numbers(dtype, n, 1), numbers(dtype, n, 2)
        for level in LEVELS:
            dst = a.copy()
            assert call(level, "select", 0, dtype, dst, cond, dst, b, n)
            assert same_bits(dst, np.where(cond, a, b)), (n, level)


# ---- reductions ------------------------------------------------------------------------------------------------------------------------------

WIDTHS = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 100, 768, 4095, 4096, 4097, 4111, 8192, 16384, 20485)


def ordered_reduce(x, join, identity):
    """The order the kernel table promises, written with NumPy: blocks of 4096 columns, 16 lanes, a tree, blocks in order."""
    total = None
    for begin in range(0, x.shape[1], 4096):
        block = x[:, begin:begin + 4096]
        pad = -block.shape[1] % 16
        block = np.concatenate([block, np.full((x.shape[0], pad), identity, x.dtype)], axis=1).reshape(x.shape[0], -1, 16)
        lanes = np.full((x.shape[0], 16), identity, x.dtype)
        for group in range(block.shape[1]):
            lanes = join(lanes, block[:, group])
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = join(lanes[:, :half], lanes[:, half:])
        total = lanes[:, 0] if total is None else join(total, lanes[:, 0])
    return np.full(x.shape[0], identity, x.dtype) if total is None else total


def identity_of(op, dtype):
    dtype = np.dtype(dtype)
    if op == "SUM":
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(-np.inf if op == "MAX" else np.inf)
    if dtype == np.bool_:
        return np.bool_(op == "MIN")
    return dtype.type(np.iinfo(dtype).min if op == "MAX" else np.iinfo(dtype).max)


JOIN = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("op", ["SUM", "MAX", "MIN"])
def test_row_reduction_has_the_promised_order(op, dtype):
    for cols in WIDTHS:
        for rows in (1, 3, 4, 5, 70) if cols <= 100 else (1, 6):
            x = numbers(dtype, rows * cols, seed=cols).reshape(rows, cols)
            if np.dtype(dtype).kind == "f":
                x = np.where(np.abs(x) < 1e30, x, np.asarray(1.25, dtype))
            want = ordered_reduce(x, JOIN[op], identity_of(op, dtype))
            for level in LEVELS:
                got = np.zeros(rows, dtype)
                assert call(level, "reduce_row", op, dtype, got, x, rows, cols)
                if op != "SUM" and got.dtype.kind == "f":
                    got, want = got + np.zeros(1, dtype), want + np.zeros(1, dtype)  # of two zeros either may be the larger
                assert same_bits(got, want), (rows, cols, level)


def test_sums_are_near_the_exact_sum():
    for dtype in FLOATS:
        x = np.random.default_rng(0).standard_normal((3, 100_000)).astype(dtype)
        for level in LEVELS:
            got = np.zeros(3, dtype)
            assert call(level, "reduce_row", "SUM", dtype, got, x, 3, 100_000)
            exact = x.astype(np.longdouble).sum(axis=1)
            assert np.all(np.abs(got - exact) <= np.finfo(dtype).eps * np.abs(x).astype(np.longdouble).sum(axis=1))


def test_reduction_of_nothing_is_the_identity_and_nan_wins():
    for level in LEVELS:
        for op in JOIN:
            for dtype in FLOATS:
                got = np.ones(4, dtype)
                assert call(level, "reduce_row", op, dtype, got, np.zeros(0, dtype), 4, 0)
                assert same_bits(got, np.full(4, identity_of(op, dtype)))
                for cols in (1, 5, 16, 40, 5000):
                    for at in {0, cols // 2, cols - 1}:
                        x = np.ones((5, cols), dtype)
                        x[:, at] = np.nan
                        got = np.ones(5, dtype)
                        assert call(level, "reduce_row", op, dtype, got, x, 5, cols)
                        assert np.isnan(got).all(), (level, op, cols, at)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("op", ["SUM", "MAX", "MIN"])
def test_column_reduction_goes_row_by_row(op, dtype):
    for rows, cols in ((0, 4), (1, 1), (3, 17), (4, 16), (9, 100), (130, 3), (33, 1000)):
        x = numbers(dtype, rows * cols, seed=5).reshape(rows, cols)
        start = numbers(dtype, cols, seed=6)
        want = start.copy()
        for row in x:
            want = JOIN[op](want, row)
        for level in LEVELS:
            got = start.copy()
            assert call(level, "reduce_col", op, dtype, got, x, rows, cols)
            if op != "SUM" and got.dtype.kind == "f":
                got, want = got + np.zeros(1, dtype), want + np.zeros(1, dtype)
            assert same_bits(got, want), (rows, cols, level)


# ---- statistics ------------------------------------------------------------------------------------------------------------------------------


def expected_stats(x):
    x = x.astype(np.float64)
    f = x[np.isfinite(x)]
    bins = np.zeros(32, int)
    for m in np.abs(f):
        bins[0 if m < 2.0**-24 else min(int(np.floor(np.log2(m))) + 25, 31)] += 1
    return {"count": x.size, "finite": f.size, "zero": int((x == 0).sum()), "nan": int(np.isnan(x).sum()), "pos_inf": int((x == np.inf).sum()),
            "neg_inf": int((x == -np.inf).sum()), "min": f.min(initial=np.inf) if f.size else 0.0, "max": f.max(initial=-np.inf) if f.size else 0.0,
            "mean": f.mean() if f.size else 0.0, "m2": float(((f - f.mean()) ** 2).sum()) if f.size else 0.0, "histogram": bins.tolist()}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool", "float16"])
def test_statistics(dtype):
    for n in (*SIZES, 1023, 1024, 1025):
        x = numbers(dtype, n, seed=n) if dtype != "float16" else numbers("float32", n, seed=n).astype(np.float16)
        if dtype in FLOATS:  # the largest floats would drown the mean's error bound
            x = np.where(np.isfinite(x) & (np.abs(x) > 1e6), x.dtype.type(3), x)
        want = expected_stats(x)
        for level in LEVELS:
            for run in (100, 1024, 1 << 20):  # one run, and runs merged
                got = call(level, "stats", 0, dtype, x, n, run)
                for key, value in want.items():
                    assert got[key] == pytest.approx(value, rel=1e-9, abs=1e-300), (n, level, run, key)


def test_statistics_without_a_finite_value():
    for level in LEVELS:
        got = call(level, "stats", 0, "float32", np.float32([np.nan, np.inf, -np.inf, np.inf]), 4, 4)
        assert (got["finite"], got["nan"], got["pos_inf"], got["neg_inf"]) == (0, 1, 2, 1)
        assert (got["min"], got["max"], got["mean"], got["m2"], sum(got["histogram"])) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("dtype", [*FLOATS, "float16"])
def test_check_finds_one_bad_value_anywhere(dtype):
    for n in (1, 16, 17, 1000):
        for at in {0, n // 2, n - 1}:
            for value, bits in ((np.nan, 1), (np.inf, 2), (-np.inf, 2), (np.finfo(dtype).max, 0)):
                x = np.zeros(n, dtype)
                x[at] = value
                for level in LEVELS:
                    assert call(level, "check", 0, dtype, x, n) == bits, (n, at, value, level)
    both = np.array([np.inf, np.nan], dtype)
    assert all(call(level, "check", 0, dtype, both, 2) == 3 and call(level, "check", 0, "int32", np.ones(3, np.int32), 3) == 0 for level in LEVELS)


def test_check_of_bfloat16():
    for bits, want in ((0x7F80, 2), (0xFF80, 2), (0x7FC1, 1), (0x7F7F, 0), (0x0000, 0)):
        x = np.full(3, bits, np.uint16)
        assert all(_core.selftest_kernel(level, "check", 0, CODE["bfloat16"], x, 3) == want for level in LEVELS)


# ---- copies --------------------------------------------------------------------------------------------------------------------------------------

VIEWS = {  # name: view of a (rows, cols) kind cut from a big array
    "contiguous": lambda x: x[:37, :53], "transposed": lambda x: x[:53, :37].T, "every other column": lambda x: x[:20, ::2], "backward": lambda x: x[10::-1, 30::-3],
    "row broadcast": lambda x: np.broadcast_to(x[3], (9, x.shape[1])), "column broadcast": lambda x: np.broadcast_to(x[:40, :1], (40, 23)),
    "one element": lambda x: np.broadcast_to(x[5, 5], (7, 31)), "one column": lambda x: x[:, 3:4], "one row": lambda x: x[3:4, ::5], "empty": lambda x: x[:0, :5],
    "transposed and backward": lambda x: x[40::-1, :18].T, "big transpose": lambda x: x.T,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "float16"])
@pytest.mark.parametrize("name", VIEWS)
def test_copy_from_and_to_strided_memory(name, dtype):
    base = (np.arange(70 * 90) % 251).astype(dtype).reshape(70, 90)
    view = VIEWS[name](base)
    rows, cols = view.shape
    for level in LEVELS:
        packed = np.zeros(view.shape, dtype)
        call(level, "copy_in", 0, dtype, packed, view, rows, cols, *view.strides)
        assert np.array_equal(packed, view), level
        if "broadcast" in name or name == "one element":
            continue
        target = np.zeros_like(base)
        target_view, want = VIEWS[name](target), np.zeros_like(base)
        call(level, "copy_out", 0, dtype, target_view, packed, rows, cols, *target_view.strides)
        VIEWS[name](want)[...] = view
        assert np.array_equal(target, want), level


def test_fill():
    for level in LEVELS:
        for dtype in ("uint8", "float16", "int32", "float64"):
            for n in SIZES:
                x = np.zeros(n + 1, dtype)
                call(level, "fill", 0, dtype, x, np.full(1, 3, dtype), n)
                assert np.all(x[:n] == 3) and x[n] == 0


# ---- matrix product ------------------------------------------------------------------------------------------------------------------------------


def gemm(level, a, b, ldc=None):
    (m, k), n = a.shape, b.shape[1]
    packed = np.full(_core.selftest_kernel(level, "packed_b_bytes", 0, 1, k, n) // 4 + 16, np.nan, np.float32)
    call(level, "pack_b", 0, "float32", packed, b, k, n, b.strides[0] // 4, b.strides[1] // 4)
    c = np.full((m, ldc or n), 99, np.float32)
    call(level, "gemm", 0, "float32", c, a, packed, m, n, k, a.strides[0] // 4, a.strides[1] // 4, ldc or n)
    assert np.all(c[:, n:] == 99), "wrote beyond the columns of the result"
    return c[:, :n]


def matrix(rows, cols, layout="rows", seed=0):
    x = np.random.default_rng(seed).standard_normal((cols, rows) if layout == "transposed" else (rows, 2 * cols if layout == "strided" else cols))
    x = x.astype(np.float32)
    return x.T if layout == "transposed" else x[:, ::2] if layout == "strided" else x


SHAPES = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 7, 33), (1, 600, 300), (2, 5, 31), (5, 513, 64), (6, 64, 65), (7, 100, 32), (12, 31, 96), (13, 512, 97),
          (15, 1025, 33), (33, 70, 130), (100, 64, 1), (169, 40, 50), (200, 530, 40)]


@pytest.mark.parametrize("layout", ["rows", "transposed", "strided"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gemm(shape, layout):
    m, k, n = shape
    a, b = matrix(m, k, layout, 1), matrix(k, n, layout, 2)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (k + 2) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    for level in LEVELS:
        got = gemm(level, a, b, ldc=n + 3)
        assert np.all(np.abs(got - exact) <= bound), level
        assert same_bits(got, gemm(level, np.ascontiguousarray(a), np.ascontiguousarray(b))), (level, "strides changed the bits")


@pytest.mark.skipif("avx512" not in LEVELS, reason="needs two levels with fused multiply-add")
def test_gemm_has_the_same_bits_with_avx2_and_avx512():
    for m, k, n in SHAPES:
        a, b = matrix(m, k), matrix(k, n)
        assert same_bits(gemm("avx2", a, b), gemm("avx512", a, b)), (m, k, n)


def test_gemm_element_does_not_depend_on_the_rows_and_columns_around_it():
    a, b = matrix(190, 1100), matrix(1100, 100)
    for level in LEVELS:
        whole = gemm(level, a, b)
        for begin, end in ((0, 1), (1, 3), (3, 9), (4, 16), (17, 50), (100, 190), (189, 190)):
            assert same_bits(gemm(level, a[begin:end], b), whole[begin:end]), (level, begin, end)
        for begin, end in ((0, 32), (32, 100), (96, 100), (64, 65)):
            assert same_bits(gemm(level, a, b[:, begin:end]), whole[:, begin:end]), (level, begin, end)


def test_gemm_order_is_one_sum_over_k_in_blocks_of_512():
    """Emulated in extended precision, where the product of two floats is exact: each step rounds once, like a fused multiply-add."""
    a, b = matrix(3, 1100), matrix(1100, 5)
    total = None
    for begin in range(0, 1100, 512):
        block = np.zeros((3, 5), np.float32)
        for i in range(begin, min(begin + 512, 1100)):
            block = (block.astype(np.longdouble) + np.outer(a[:, i].astype(np.longdouble), b[i].astype(np.longdouble))).astype(np.float32)
        total = block if total is None else total + block
    for level in LEVELS:
        if level != "baseline":
            assert same_bits(gemm(level, a, b), total), level


def test_gemm_passes_nan_and_infinity_on():
    a, b = np.ones((4, 40), np.float32), np.ones((40, 40), np.float32)
    a[1, 3], a[2, 5], b[0, 7] = np.nan, np.inf, -np.inf
    for level in LEVELS:
        got = gemm(level, a, b)
        assert np.isnan(got[1]).all() and np.isnan(got[2, 7]) and got[0, 7] == -np.inf and np.all(np.delete(got[2], 7) == np.inf)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_generic_matrix_product(dtype):
    rng = np.random.default_rng(0)
    for m, k, n in ((0, 2, 3), (2, 0, 3), (1, 1, 1), (5, 17, 9), (20, 33, 40)):
        for transpose in (False, True):
            a, b = rng.integers(-50, 50, (m, k)).astype(dtype), rng.integers(-50, 50, (k, n)).astype(dtype)
            if transpose:
                a, b = np.asfortranarray(a), np.asfortranarray(b)
            item = a.itemsize
            for level in LEVELS:
                c = np.full((m, n + 1), 9, dtype)
                strides = [s // item for s in (*a.strides, *b.strides)]
                call(level, "gemm_generic", 0, dtype, c, a, b, m, n, k, *strides, n + 1)
                assert np.array_equal(c[:, :n], a @ b) and np.all(c[:, n] == 9)


# ---- the tables ----------------------------------------------------------------------------------------------------------------------------------


def test_unsupported_dtypes_have_no_kernel():
    x = np.zeros(4, np.float32)
    for level in LEVELS:
        assert not call(level, "binary", "LOGICAL_AND", "float32", x, x, x, 4)
        assert not call(level, "binary", "SUB", "bool", x, x, x, 4)
        assert not call(level, "unary", "EXP", "int32", x, x, 4)
        assert not call(level, "reduce_row", "ADD", "float32", x, x, 1, 4)


def test_baseline_is_always_there_and_unknown_levels_are_refused():
    assert LEVELS[0] == "baseline"
    with pytest.raises(ValueError, match="no SIMD level"):
        call("mmx", "unary", "EXP", "float32", np.zeros(1, np.float32), np.zeros(1, np.float32), 1)


@pytest.mark.parametrize("level", LEVELS)
def test_environment_forces_a_level(level):
    code = "from dvm_core import _core; print(_core.simd_level())"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "DVM_SIMD": level}, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == level and "DVM_SIMD" not in run.stderr


def test_environment_with_an_unknown_level_says_so_and_runs():
    code = "from dvm_core import _core; print(_core.simd_level())"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "DVM_SIMD": "sse9"}, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == LEVELS[-1]
    assert "DVM_SIMD=sse9" in run.stderr and "baseline, avx2, avx512" in run.stderr
