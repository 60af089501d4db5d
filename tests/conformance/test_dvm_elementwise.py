"""Unary and binary ops on tensors and numbers, powers, logic: sizes around the ends of vectors and tiles, and their edge values."""

import numpy as np
import pytest
from dvm_kit import FLOATS, HALVES, make, one, wide

from dvm_core.tester import Tester

UNARY = {"sqrt": np.sqrt, "abs": np.abs, "log": np.log, "exp": np.exp, "reciprocal": np.reciprocal}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
ROUNDING = {"round": np.round, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or}
LOGIC_SHAPES = [(1024, 32), (1312, 131), (16, 11), (128, 7), (128, 777)]
EPS = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("name", UNARY)
def test_unary_of_one_value_everywhere(name, dtype):
    x = np.full((32, 1024), 0.5, np.float32)
    one("vector", lambda t, a: getattr(t, name)(a), UNARY[name](np.float64(x)), x, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("name", UNARY)
def test_unary_of_many_values(name, dtype):
    x, w = make((33, 257), dtype, 0.25 if name != "abs" else -2.0, 4.0)
    one("vector", lambda t, a: getattr(t, name)(a), UNARY[name](w), x, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    (x, w), (y, v) = make((32, 1024), dtype), make((32, 1024), dtype, 0.5, 2.0, seed=1)
    one("vector", lambda t, a, b: getattr(t, name)(a, b), BINARY[name](w, v), x, y, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("dtype", ["bool", *FLOATS])
@pytest.mark.parametrize("shape", LOGIC_SHAPES)
@pytest.mark.parametrize("name", LOGICAL)
def test_logic(name, shape, dtype):
    (x, w), (y, v) = make(shape, "bool"), make(shape, "bool", seed=1)
    one("vector", lambda t, a, b: getattr(t, name)(a, b), LOGICAL[name](w, v), x, y, dtypes=[dtype], eps=0)


@pytest.mark.parametrize("dtype", ["bool", *FLOATS, "int32"])
def test_logical_not(dtype):
    x, w = make((128, 77), "bool")
    one("vector", lambda t, a: t.logical_not(a), ~w, x, dtypes=[dtype], eps=0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "name, dtype", [(name, dtype) for name in BINARY for dtype in (*FLOATS, "int32") if (name, dtype) != ("div", "int32")]
)
def test_a_number_on_either_side(name, dtype, side):
    x, w = make((31, 65), dtype, 1.0, 9.0)
    sides = (lambda a: (3, a)) if side == "left" else (lambda a: (a, 3))
    one("vector", lambda t, a: getattr(t, name)(*sides(a)), BINARY[name](*sides(w)), x, dtypes=[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1024, 24, 66666])
def test_isfinite(size, dtype):
    x, _ = make(size, dtype)
    x[::5], x[1::7], x[2::11] = np.inf, -np.inf, np.nan
    one("vector", lambda t, a: t.isfinite(a), np.isfinite(x), x, dtypes=[dtype], eps=0)


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_more_repeats_than_one_instruction_counts(dtype):
    (x, w), (y, v) = make(32 * 64 * 257, dtype), make(32 * 64 * 257, dtype, seed=1)
    one("vector", lambda t, a, b: t.add(t.mul(a, b), 1.0), w * v + 1.0, x, y, dtypes=[dtype], eps=2 * EPS[dtype])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element(shape):
    x, y = np.full(shape, 2.25, np.float32), np.full(shape, -3.0, np.float32)
    one("vector", lambda t, a, b: t.sqrt(t.abs(t.mul(a, b))), np.sqrt(np.abs(x.astype(np.float64) * y)), x, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_number_over_a_tensor(dtype):
    x, w = make((32, 33), dtype, 0.5, 4.0)
    t = one("vector", lambda t, a: t.div(10.5, a), 10.5 / w, x, dtypes=[dtype])
    assert "ScalarDiv<10.5>" in t.dump()


def test_reciprocal_of_a_root():
    x, w = make((32, 33), low=0.1, high=9.0)
    one("vector", lambda t, a: t.div(1.0, t.sqrt(a)), 1.0 / np.sqrt(w), x)


@pytest.mark.parametrize("exponent", [0, 1.2, 5, -7, -3])
def test_power_by_a_number(exponent):
    x, w = make((32, 64), low=0.5, high=1.5)
    one("vector", lambda t, a: t.pow(a, exponent), w**exponent, x)


@pytest.mark.parametrize("exponent", [0, 5, -7, -3])
def test_whole_power_of_a_negative_base(exponent):
    x, w = make((32, 64), low=-1.5, high=-0.5)
    one("vector", lambda t, a: t.pow(a, exponent), w**exponent, x)


def test_edges_of_power():
    base = np.array([0.0, -2.0, -2.0, 0.0, 1.0, -2.0, np.inf], np.float32)
    power = np.array([0.0, 0.5, 3.0, 1.2, np.nan, -2.0, 0.0], np.float32)
    expected = np.array([1.0, np.nan, -8.0, 0.0, 1.0, 0.25, 1.0])
    one("vector", lambda t, a, b: t.pow(a, b), expected, base, power)
    one("vector", lambda t, a: t.pow(a, 0), np.ones(7), base)
    one("vector", lambda t, a: t.pow(a, 0.5), [0.0, np.nan, np.nan, 0.0, 1.0, np.nan, np.inf], base)


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_power_of_two_tensors(dtype):
    (x, w), (y, v) = make((32, 64), dtype, 0.5, 2.0), make((32, 64), dtype, seed=1)
    one("vector", lambda t, a, b: t.pow(a, b), w**v, x, y, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("exponent, count", {3: 2, 10: 4, -8: 3, 11: 5, 15: 6, 20: 5}.items())
def test_a_whole_power_takes_as_few_multiplications_as_it_has_bits(exponent, count):
    x, w = make((16, 16), low=0.75, high=1.25)
    t = one("vector", lambda t, a: t.pow(a, exponent), w**exponent, x)
    assert t.das().count("Mul.fp32") == count


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_a_number_to_a_tensor(dtype):
    x, w = make((32, 129), dtype, -4.0, 4.0)
    one("vector", lambda t, a: t.pow(0.91, a), 0.91**w, x, dtypes=[dtype], eps=EPS[dtype])


INTEGER = {"add": np.add, "sub": np.subtract, "maximum": np.maximum, "minimum": np.minimum}


@pytest.mark.parametrize("name", INTEGER)
def test_int32_near_the_end_of_its_range(name):
    (x, w), (y, v) = make((64, 65), "int32", -(2**30), 2**30 - 1), make((64, 65), "int32", -(2**30), 2**30 - 1, seed=1)
    one("vector", lambda t, a, b: getattr(t, name)(a, b), INTEGER[name](w, v), x, y, dtypes=["int32"])
    one("vector", lambda t, a: getattr(t, name)(a, 2**30), INTEGER[name](w, 2**30), x, dtypes=["int32"])


def test_int32_products_and_magnitudes():
    (x, w), (y, v) = make((64, 65), "int32", -(2**15), 2**15), make((64, 65), "int32", -(2**15), 2**15, seed=1)
    t = Tester("vector")
    a, b = t.load(x), t.load(y)
    t.store_expect(t.mul(a, b), w * v)
    t.store_expect(t.abs(a), np.abs(w))
    t.store_expect(t.pow(t.maximum(t.minimum(a, 9), -9), 3), np.clip(w, -9, 9) ** 3)
    t.run_check()


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("shape", [(32, 32), (128 * 256 * 2 * 48,)])
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding(name, shape, dtype):
    x, _ = make(shape, dtype, -9.0, 9.0)
    if dtype != "bfloat16":
        x.flat[:6] = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    one("vector", lambda t, a: getattr(t, name)(a), ROUNDING[name](wide(x, dtype)), x, dtypes=[dtype], eps=0)
