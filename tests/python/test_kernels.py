"""Kernels of one operand and casts, at every SIMD level, against NumPy in float64; which level runs."""
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from kernel_calls import CODE, FLOATS, INTS, LEVELS, SIZES, call, code, numbers, same_bits, ulps

from dvm_core import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


UNARY = {  # op: (reference, largest error in ulps for float32, for float64)
    "NEG": (np.negative, 0, 0), "ABS": (np.abs, 0, 0), "COPY": (lambda x: x, 0, 0),
    "SQRT": (np.sqrt, 0.5, 0.5), "RSQRT": (lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "RECIPROCAL": (lambda x: 1 / x, 0.5, 0.5), "FLOOR": (np.floor, 0, 0), "CEIL": (np.ceil, 0, 0), "ROUND": (np.rint, 0, 0),
    "TRUNC": (np.trunc, 0, 0),
    "EXP": (np.exp, 1.0, 2), "LOG": (np.log, 1.0, 2), "LOG1P": (np.log1p, 1.5, 2), "TANH": (np.tanh, 2.6, 3), "ERF": (erf, 2.1, 2),
    "EXPM1": (np.expm1, 1.8, 2), "TAN": (np.tan, 0.51, 4), "ATAN": (np.arctan, 0.51, 2), "SIGN": (np.sign, 0, 0),
    "SIN": (np.sin, 0.51, 2), "COS": (np.cos, 0.51, 2),
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


@pytest.mark.parametrize("op", ["EXP", "EXPM1", "LOG", "LOG1P", "TAN", "ATAN", "TANH", "ERF", "SIGMOID", "SIN", "COS"])
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
    ("EXP", -INF, 0.0), ("EXP", INF, INF), ("EXP", NAN, NAN), ("EXP", 0.0, 1.0), ("EXP", -0.0, 1.0),
    ("EXP", 1e30, INF), ("EXP", -1e30, 0.0),
    ("LOG", 0.0, -INF), ("LOG", -0.0, -INF), ("LOG", -1.0, NAN), ("LOG", -INF, NAN), ("LOG", INF, INF), ("LOG", NAN, NAN),
    ("LOG", 1.0, 0.0),
    ("LOG1P", -1.0, -INF), ("LOG1P", -0.0, -0.0), ("LOG1P", INF, INF), ("LOG1P", -2.0, NAN), ("LOG1P", NAN, NAN), ("LOG1P", 1e-40, 1e-40),
    ("EXPM1", -INF, -1.0), ("EXPM1", INF, INF), ("EXPM1", NAN, NAN), ("EXPM1", -0.0, -0.0), ("EXPM1", 1e-40, 1e-40), ("EXPM1", -50.0, -1.0),
    ("TAN", INF, NAN), ("TAN", -0.0, -0.0), ("TAN", NAN, NAN), ("ATAN", NAN, NAN), ("ATAN", -0.0, -0.0), ("ATAN", INF, np.pi / 2),
    ("ATAN", -INF, -np.pi / 2), ("SIGN", -0.0, 0.0), ("SIGN", NAN, NAN), ("SIGN", -INF, -1.0), ("SIGN", 1e-42, 1.0),
    ("TANH", INF, 1.0), ("TANH", -INF, -1.0), ("TANH", NAN, NAN), ("TANH", -0.0, -0.0), ("TANH", 1e-42, 1e-42), ("TANH", -30.0, -1.0),
    ("ERF", INF, 1.0), ("ERF", -INF, -1.0), ("ERF", NAN, NAN), ("ERF", -0.0, -0.0), ("ERF", 9.0, 1.0),
    ("SIGMOID", INF, 1.0), ("SIGMOID", -INF, 0.0), ("SIGMOID", NAN, NAN), ("SIGMOID", 0.0, 0.5),
    ("SIN", INF, NAN), ("SIN", -0.0, -0.0), ("COS", -INF, NAN), ("COS", 0.0, 1.0), ("SIN", NAN, NAN),
    ("SQRT", -1.0, NAN), ("SQRT", -0.0, -0.0), ("RSQRT", 0.0, INF), ("RSQRT", INF, 0.0), ("RECIPROCAL", -0.0, -INF),
    ("FLOOR", -0.0, -0.0), ("CEIL", -0.3, -0.0), ("ROUND", -0.5, -0.0), ("ROUND", 2.5, 2.0), ("ROUND", 3.5, 4.0), ("TRUNC", -0.9, -0.0),
    ("FLOOR", INF, INF), ("ROUND", NAN, NAN), ("ABS", -0.0, 0.0), ("NEG", 0.0, -0.0),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", UNARY)
def test_a_nan_has_the_same_bits_wherever_it_stands(op, dtype):
    """Vector loop or tail, among NaNs of either sign and numbers that give one: bits must not depend on where a tile begins."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    pattern = np.array([np.nan, 0.3, -1.7, np.nan, -np.inf, np.inf, 0.0], dtype)
    pattern[3] = np.copysign(pattern[3], -1)
    x = np.tile(pattern, 40)
    results = [unary(level, op, x).view(bits).reshape(-1, pattern.size) for level in LEVELS]
    for got in results:
        assert (got == got[0]).all()
    if dtype == np.float32:  # float64 functions are the C library's
        assert all((got == results[0]).all() for got in results)
    for level, got in zip(LEVELS, results, strict=True):
        alone = np.concatenate([unary(level, op, pattern[i:i + 1]) for i in range(pattern.size)])
        assert (alone.view(bits) == got[0]).all(), level


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
    references = {"NEG": np.negative, "ABS": np.abs, "SIGN": np.sign, "BIT_NOT": np.invert}
    references |= dict.fromkeys(("COPY", "FLOOR", "CEIL", "ROUND", "TRUNC"), np.array)
    for n in SIZES:
        x = numbers(dtype, n)
        for op, reference in references.items():
            for level in LEVELS:
                assert same_bits(unary(level, op, x), reference(x)), (op, level)


def test_is_finite_and_logical_not():
    for level in LEVELS:
        for dtype in FLOATS:
            x = numbers(dtype, 4097)
            for op, reference in (("IS_FINITE", np.isfinite), ("IS_NAN", np.isnan), ("IS_INF", np.isinf)):
                assert same_bits(unary(level, op, x, np.bool_), reference(x))
        assert unary(level, "IS_FINITE", numbers("int32", 100), np.bool_).all()
        assert not unary(level, "IS_NAN", numbers("int32", 100), np.bool_).any()
        x = numbers("bool", 1000)
        assert same_bits(unary(level, "LOGICAL_NOT", x, np.bool_), ~x) and same_bits(unary(level, "BIT_NOT", x, np.bool_), ~x)


# ---- casts, select ------------------------------------------------------------


def saturating(x, dtype):
    """Float to integer as documented: towards zero, clamped, NaN is 0."""
    info = np.iinfo(dtype)

    def one(v):
        return 0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v)

    return np.array([one(v) for v in x.astype(np.float64).tolist()], dtype)


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


# ---- the tables ------------------------------------------------------------


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
