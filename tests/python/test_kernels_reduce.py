"""Reductions in their promised order, statistics and checks, at every SIMD level."""
import numpy as np
import pytest
from kernel_calls import CODE, FLOATS, INTS, LEVELS, SIZES, call, numbers, same_bits

from dvm_core import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

WIDTHS = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 300, 319, 320, 500, 768, 4095, 4096, 4097, 4111, 8192, 16384, 20485)


def ordered_reduce(x, join, identity):
    """The order the kernel table promises, written with NumPy: blocks of 4096 columns, 16 lanes (four sets of them from 256 columns on,
    which are joined first), a tree, blocks in order."""
    total = None
    for begin in range(0, x.shape[1], 4096):
        block = x[:, begin:begin + 4096]
        sets = 4 if block.shape[1] >= 256 else 1
        pad = -block.shape[1] % (16 * sets)
        block = np.concatenate([block, np.full((x.shape[0], pad), identity, x.dtype)], axis=1).reshape(x.shape[0], -1, 16 * sets)
        lanes = np.full((x.shape[0], 16 * sets), identity, x.dtype)
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
    if op == "PROD":
        return dtype.type(1)
    if dtype.kind == "f":
        return dtype.type(-np.inf if op == "MAX" else np.inf)
    if dtype == np.bool_:
        return np.bool_(op == "MIN")
    return dtype.type(np.iinfo(dtype).min if op == "MAX" else np.iinfo(dtype).max)


JOIN = {"PROD": np.multiply, "SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("op", JOIN)
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
                if op in ("MAX", "MIN") and got.dtype.kind == "f":
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
@pytest.mark.parametrize("op", JOIN)
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
            if op in ("MAX", "MIN") and got.dtype.kind == "f":
                got, want = got + np.zeros(1, dtype), want + np.zeros(1, dtype)
            assert same_bits(got, want), (rows, cols, level)


# ---- statistics ------------------------------------------------------------


def expected_stats(x):
    x = x.astype(np.float64)
    f = x[np.isfinite(x)]
    bins = np.zeros(32, int)
    for m in np.abs(f):
        bins[0 if m < 2.0**-24 else min(int(np.floor(np.log2(m))) + 25, 31)] += 1
    counts = {"count": x.size, "finite": f.size, "zero": int((x == 0).sum()), "nan": int(np.isnan(x).sum()),
              "pos_inf": int((x == np.inf).sum()), "neg_inf": int((x == -np.inf).sum()), "histogram": bins.tolist()}
    if not f.size:
        return counts | {"min": 0.0, "max": 0.0, "mean": 0.0, "m2": 0.0}
    return counts | {"min": f.min(), "max": f.max(), "mean": f.mean(), "m2": float(((f - f.mean()) ** 2).sum())}


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
    both, integers = np.array([np.inf, np.nan], dtype), np.ones(3, np.int32)
    for level in LEVELS:
        assert call(level, "check", 0, dtype, both, 2) == 3
        assert call(level, "check", 0, "int32", integers, 3) == 0


def test_check_of_bfloat16():
    for bits, want in ((0x7F80, 2), (0xFF80, 2), (0x7FC1, 1), (0x7F7F, 0), (0x0000, 0)):
        x = np.full(3, bits, np.uint16)
        assert all(_core.selftest_kernel(level, "check", 0, CODE["bfloat16"], x, 3) == want for level in LEVELS)
