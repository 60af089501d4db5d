"""Kernels of float16 and bfloat16: the float32 op rounded once, at every SIMD level the same bits."""
import math

import numpy as np
import pytest
from halves import ALL, HALVES, LEVELS, MANTISSA, TOP, bits_of, kernel, rounded, same, samples, widen
from kernel_calls import CODE, FLOATS, INTS, SIZES, call, numbers

from dvm_core import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0}  # the one NaN that is made
ARITHMETIC = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.true_divide, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}
COMPARISONS = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
               "GREATER_EQUAL": np.greater_equal}
EXACT = {"NEG": np.negative, "ABS": np.abs, "COPY": lambda x: x, "SQRT": np.sqrt, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint,
         "TRUNC": np.trunc, "RECIPROCAL": lambda x: 1 / x}
NEAR = {"EXP": np.exp, "LOG": np.log, "TANH": np.tanh, "ERF": np.vectorize(math.erf, otypes=[np.float64]), "SIN": np.sin, "COS": np.cos,
        "RSQRT": lambda x: 1 / np.sqrt(x), "SIGMOID": lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))}


def unary(level, op, x, dtype, result=np.uint16):
    got = np.full(x.size, 77, result)
    assert kernel(level, "unary", op, dtype, got, x, x.size)
    return got


def binary(level, op, a, b, dtype):
    got = np.full(a.size, 1, np.bool_ if op in COMPARISONS else np.uint16)
    assert kernel(level, "binary", op, dtype, got, a, b, a.size)
    return got


# ---- conversions ---------------------------------------------------------------------------------------------------------------------


def boundaries(dtype):
    """Every float32 where rounding to the dtype changes its mind, and its neighbours on both sides."""
    halves = widen(ALL, dtype)
    finite = np.sort(halves[np.isfinite(halves)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)  # exact: one bit more
    edge = np.float32([TOP[dtype] * (1 + 2.0 ** -(MANTISSA[dtype] + 2))])
    points = np.concatenate([finite, middle, edge, -edge])
    up, down = np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))
    return np.concatenate([points, up, down, np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, 3.4e38, -3.4e38, 1e-45])])


@pytest.mark.parametrize("dtype", HALVES)
def test_conversions_are_exact_and_the_same_at_every_level(dtype):
    everywhere = np.arange(0, 1 << 32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for x in (boundaries(dtype), everywhere):
        results = []
        for level in LEVELS:
            got = np.zeros(x.size, np.uint16)
            assert kernel(level, "cast", CODE["float32"], dtype, got, x, x.size)
            results.append(got)
            assert np.array_equal(got, results[0]), level
        assert np.all(results[0][np.isnan(x)] == QUIET[dtype])
        assert same(widen(results[0], dtype), rounded(x, dtype))
    for level in LEVELS:
        wide, back = np.zeros(ALL.size, np.float32), np.zeros(ALL.size, np.uint16)
        assert call(level, "cast", CODE[dtype], "float32", wide, ALL, ALL.size)
        assert same(wide, widen(ALL, dtype))
        assert kernel(level, "cast", CODE["float32"], dtype, back, wide, ALL.size)
        assert np.array_equal(back, np.where(np.isnan(wide), QUIET[dtype], ALL)), level


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("source", [*FLOATS, *INTS, "bool"])
def test_casts_to_halves_round_once(source, dtype):
    for n in SIZES:
        x = numbers(source, n)
        if source == "float64" and n > 64:  # a float32 in between would round these to a tie, and then the wrong way
            tie = 1 + 2.0 ** -(MANTISSA[dtype] + 1)
            x[:8] = [tie + 2.0 ** -40, tie - 2.0 ** -40, -tie - 2.0 ** -40, 1e300, -1e300, 1e-300, 5e-324, TOP[dtype] * 1.0001]
        if source == "int64" and n > 64:
            x[:4] = [(1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54), -(1 << 62) - (1 << 54) - 1, (1 << 24) + (1 << 16) + 1]
        if source == "int32" and n > 64:
            x[:3] = [(1 << 30) + (1 << 22) + 1, (1 << 30) + (1 << 22), -(1 << 30) - (1 << 22) - 1]
        for level in LEVELS:
            got = np.zeros(n, np.uint16)
            assert kernel(level, "cast", CODE[source], dtype, got, x, n)
            assert same(widen(got, dtype), rounded(x, dtype)), (n, level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("target", [*INTS, "bool", "float64"])
def test_casts_from_halves(target, dtype):
    wide = widen(ALL, dtype).astype(np.float64)
    if target in INTS:
        info = np.iinfo(target)
        want = np.array([0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in wide], target)
    else:
        want = wide.astype(target)
    for level in LEVELS:
        got = np.zeros(ALL.size, target)
        assert call(level, "cast", CODE[dtype], target, got, ALL, ALL.size)
        assert same(got, want), level


def test_one_half_becomes_the_other():
    for source, target in (HALVES, HALVES[::-1]):
        for level in LEVELS:
            got = np.zeros(ALL.size, np.uint16)
            assert kernel(level, "cast", CODE[source], target, got, ALL, ALL.size)
            assert same(widen(got, target), rounded(widen(ALL, source), target))
            place = ALL.copy()
            assert kernel(level, "cast", CODE[source], target, place, place, ALL.size)
            assert np.array_equal(place, got)


# ---- one operand ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", [*EXACT, *NEAR])
def test_functions_of_every_half(op, dtype):
    """Exact ops are the exact result rounded once. The others are float32 functions within 2.6 ulp of float32 rounded once: half an ulp of
    the half and a little."""
    x = widen(ALL, dtype).astype(np.float64)
    first = unary(LEVELS[0], op, ALL, dtype)
    got = widen(first, dtype)
    if op in EXACT:
        assert same(got, rounded(EXACT[op](x), dtype))
    else:
        want = NEAR[op](x)
        near = rounded(want, dtype)
        step = np.ldexp(1.0, np.maximum(np.frexp(np.where(np.isfinite(want), want, 1))[1] - MANTISSA[dtype] - 1, -200))
        with np.errstate(all="ignore"):
            close = np.abs(got - want) <= 0.501 * step
        equal = (got == near) | (np.isnan(got) & np.isnan(near))
        assert np.all(equal | close), (x[~(equal | close)][:5], got[~(equal | close)][:5], want[~(equal | close)][:5])
    for level in LEVELS:
        assert np.array_equal(unary(level, op, ALL, dtype), first), level
        for n in (0, 1, 7, 16, 1023, 1025):
            place = ALL[-n:].copy() if n else ALL[:0].copy()
            assert kernel(level, "unary", op, dtype, place, place, n)
            assert np.array_equal(place, first[first.size - n:]), (level, n)


@pytest.mark.parametrize("dtype", HALVES)
def test_is_finite_of_every_half(dtype):
    for level in LEVELS:
        assert np.array_equal(unary(level, "IS_FINITE", ALL, dtype, np.bool_), np.isfinite(widen(ALL, dtype)))


# ---- two operands --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS])
def test_binary_is_the_exact_result_rounded(op, dtype):
    for n in (*SIZES, 1 << 16):
        a, b = samples(dtype, n, 1), samples(dtype, n, 2)
        x, y = (widen(v, dtype).astype(np.float64) for v in (a, b))
        first = binary(LEVELS[0], op, a, b, dtype)
        if op in COMPARISONS:
            assert np.array_equal(first, COMPARISONS[op](x, y))
        else:
            zero = 0.0 if op in ("MAXIMUM", "MINIMUM") else -0.0  # of two zeros either may be the larger
            assert same(widen(first, dtype) + zero, rounded(ARITHMETIC[op](x, y), dtype) + zero), n
        for level in LEVELS:
            got = binary(level, op, a, b, dtype)
            assert np.array_equal(got, first), (n, level)
            if op not in COMPARISONS:
                for operand in (0, 1):
                    pair = [a.copy(), b.copy()]
                    assert kernel(level, "binary", op, dtype, pair[operand], *pair, n)
                    assert np.array_equal(pair[operand], got), (n, level, "in place")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, "POW"])
def test_one_operand_per_row_equals_two_tensors(op, dtype):
    for rows, cols in ((0, 5), (1, 0), (1, 1), (1, 1500), (5, 1), (3, 17), (64, 64), (7, 129)):
        a, s = samples(dtype, rows * cols, 3), samples(dtype, max(rows, 1), 4)
        if op == "POW":
            s[:min(rows, 6)] = bits_of(np.array([2, 0.5, -1, -0.5, 3, 1])[:min(rows, 6)], dtype)
        spread = np.repeat(s[:rows], cols)
        for level in LEVELS:
            for table, pair in (("binary_vs", (a, spread)), ("binary_sv", (spread, a))):
                want = binary(LEVELS[0], op, *pair, dtype)
                got = np.zeros_like(want)
                assert kernel(level, table, op, dtype, got, a, s, rows, cols)
                assert np.array_equal(got, want), (level, table, rows, cols)


@pytest.mark.parametrize("dtype", HALVES)
def test_power_is_the_float32_power_rounded(dtype):
    quiet = bits_of(np.nan, dtype)  # of a signalling one the C library makes NaN where a quiet one to the 0 is 1
    a, b = (np.where(np.isnan(widen(x, dtype)), quiet, x) for x in (samples(dtype, 5000, 5), samples(dtype, 5000, 6)))
    for level in LEVELS:
        single = np.zeros(5000, np.float32)
        assert call(level, "binary", "POW", "float32", single, widen(a, dtype), widen(b, dtype), 5000)
        assert same(widen(binary(level, "POW", a, b, dtype), dtype), rounded(single, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_select_and_fill_move_bits(dtype):
    for level in LEVELS:
        a, b, cond = samples(dtype, 1000, 1), samples(dtype, 1000, 2), numbers("bool", 1000)
        got = np.zeros(1000, np.uint16)
        assert kernel(level, "select", 0, dtype, got, cond, a, b, 1000)
        assert np.array_equal(got, np.where(cond, a, b))
        assert kernel(level, "fill", 0, dtype, got, a[:1].copy(), 1000)
        assert (got == a[0]).all()


def test_every_float_op_has_halves():
    """What float32 has, halves have: a new op gets them without being told."""
    for level in LEVELS:
        for name, code, cls, arity, *_ in _core.OPS:
            tables = {"U": ("unary",), "B": ("binary", "binary_vs", "binary_sv")}.get(cls, ())
            for table in tables:
                x = np.ones(4, np.float32)
                sizes = (2, 2) if table.endswith(("vs", "sv")) else (4,)
                if not call(level, table, code, "float32", np.zeros(4, np.float32), *[x] * arity, *sizes):
                    continue
                for dtype in HALVES:
                    ones = bits_of(x, dtype)
                    assert kernel(level, table, code, dtype, np.zeros(4, np.uint16), *[ones] * arity, *sizes), (name, dtype)
