"""Kernels of two operands, at every SIMD level, against NumPy."""
import numpy as np
import pytest
from kernel_calls import FLOATS, INTS, LEVELS, SIZES, call, numbers, same_bits, ulps

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

COMPARISONS = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
               "GREATER_EQUAL": np.greater_equal}
ARITHMETIC = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "DIV": np.true_divide}


BITS = {"BIT_AND": np.bitwise_and, "BIT_OR": np.bitwise_or, "BIT_XOR": np.bitwise_xor}
MODULO = {"FMOD": np.fmod, "REMAINDER": np.remainder}


def shifted(op):
    def shift(a, b):
        """With any number of bits: what is shifted out is gone."""
        bits, shift = 8 * a.dtype.itemsize, np.left_shift if op == "SHIFT_LEFT" else np.right_shift
        inside = (b >= 0) & (b < bits)
        gone = np.where(a < 0, -1, 0).astype(a.dtype) if op == "SHIFT_RIGHT" else np.zeros_like(a)
        return np.where(inside, shift(a, np.where(inside, b, 0)), gone)
    return shift


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
    if op in BITS or op in MODULO:
        return (BITS | MODULO)[op]
    if op.startswith("SHIFT"):
        return shifted(op)
    if np.dtype(dtype) == np.bool_:
        return np.logical_or if op in ("ADD", "MAXIMUM", "LOGICAL_OR") else np.logical_and
    if np.dtype(dtype).kind in "iu" and op in ("DIV", "POW"):
        return floor_divide if op == "DIV" else integer_power
    return ARITHMETIC[op]


BINARY = [(op, dtype) for dtype in (*FLOATS, *INTS) for op in (*ARITHMETIC, *COMPARISONS)]
BINARY += [("POW", dtype) for dtype in INTS]
BINARY += [(op, dtype) for dtype in INTS for op in (*BITS, "SHIFT_LEFT", "SHIFT_RIGHT")]
BINARY += [(op, dtype) for dtype in (*FLOATS, *INTS) for op in MODULO]
BINARY += [(op, "bool") for op in BITS]
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
            s[: min(rows, 6)] = np.array([2, 0.5, -1, -0.5, 3, 1])[: min(rows, 6)]
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
    inf, nan = np.inf, np.nan
    bases = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-3, -1e3, 3.7, inf, -inf, nan]
    exponents = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -2.0, -3.0, 0.5, -0.5, 1.5, 7.0, -7.0, 2.25, inf, -inf, nan]
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(bases, exponents))
    rng = np.random.default_rng(0)
    a = np.concatenate([a, np.exp(rng.uniform(-20, 20, 5000)).astype(dtype)])
    b = np.concatenate([b, rng.uniform(-4, 4, 5000).astype(dtype)])
    want = np.power(a.astype(np.float64), b.astype(np.float64))
    for level in LEVELS:
        got = binary(level, "POW", a, b)
        assert ulps(got, want) <= 2
        assert same_bits(got, binary(LEVELS[0], "POW", a, b))
