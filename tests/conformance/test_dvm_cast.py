"""Casts between all dtypes, alone and around other ops."""

import numpy as np
import pytest
from dvm_kit import BF16, HALVES, make, one, wide

import dvm_core as dvm
from dvm_core.dtypes import of
from dvm_core.tester import Tester, given

DTYPES = ("bool", "float16", "bfloat16", "float32", "int32", "int64")
EPS = {"float16": 1e-3, "bfloat16": 1e-2}
SHAPES = [(84,), (32, 1024), (17, 31)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("source, target", [(a, b) for a in DTYPES for b in DTYPES])
def test_cast(source, target, shape):
    x, w = make(shape, source, -100, 100)
    if of(target).kind == "f":
        expected, eps = wide(w.astype(np.float32), target), EPS.get(target, 0)
    else:
        expected, eps = w.astype(of(target).numpy), 0
    one("vector", lambda t, a: t.cast(a, target), expected, x, dtypes=[source], eps=eps)


def test_a_float_goes_to_an_integer_towards_zero():
    x = np.array([-2.7, -1.5, -0.9, -0.0, 0.4, 1.5, 2.7, 1e6], np.float32)
    for target in ("int32", "int64"):
        one("vector", lambda t, a, target=target: t.cast(a, target), np.trunc(x).astype(np.int64), x)


def test_what_is_not_zero_is_true_however_small():
    # A faithful device goes through float16, where 1e-20 is zero; see docs/devices.md.
    tiny = not dvm.device().endswith(":faithful")
    x = np.array([0.0, -0.0, 1e-20, -1e-40, 0.3, 7.0, np.inf, np.nan], np.float32)
    one("vector", lambda t, a: t.cast(a, "bool"), [False, False, tiny, tiny, True, True, True, True], x)
    y = np.array([0, 1, -1, 65536, 2**31 - 1, -(2**31)], np.int32)
    one("vector", lambda t, a: t.cast(a, "bool"), [False, True, True, True, True, True], y, dtypes=["int32"])


@pytest.mark.parametrize("half", HALVES)
def test_a_cast_rounds_to_the_nearest_and_halves_to_even(half):
    step = 2.0**-10 if half == "float16" else 2.0**-7
    x = np.array([1 + step / 2, 1 + 3 * step / 2, 1 + step * 0.51, -1 - step / 2], np.float32)
    one("vector", lambda t, a: t.cast(t.cast(a, half), "float32"), [1, 1 + 2 * step, 1 + step, -1], x, eps=0)


def test_casts_around_unary_binary_and_broadcast():
    x, w = make((32, 65), "int32", -50, 50)
    row, v = make((65,), "float32")
    t = Tester("vector")
    a, b = t.load(x), t.load(row)
    f = t.cast(a, "float32")
    t.store_expect(t.cast(t.abs(f), "int32"), np.abs(w))
    t.store_expect(t.add(f, b), w + v)
    t.store_expect(t.cast(t.broadcast(t.cast(b, "int32"), [32, 65]), "float32"), np.broadcast_to(np.trunc(v), (32, 65)))
    t.store_expect(t.cast(t.greater(f, 0.0), "float32"), (w > 0).astype(np.float64))
    t.run_check()


@pytest.mark.parametrize("half", HALVES)
def test_a_half_widened_computed_and_narrowed(half):
    (x, w), (y, v) = make((32, 65), half), make((1, 65), half, 0.5, 2.0)

    def body(t, a, b):
        wider = t.div(t.exp(t.cast(a, "float32")), t.cast(b, "float32"))
        return [wider, t.cast(wider, half)]

    one("vector", body, [np.exp(w) / v] * 2, x, y, dtypes=[half], eps=EPS[half])


@pytest.mark.parametrize("source", ("float32", "float16", "int32"))
def test_a_cast_to_bool_chooses(source):
    (c, w), (x, a), (y, b) = make((33, 84), source, -1, 1), make((33, 84)), make((33, 84), seed=1)
    one("vector", lambda t, m, p, q: t.select(t.cast(m, "bool"), p, q), np.where(w != 0, a, b), c, x, y, dtypes=[source, "float32"])


def test_a_store_casts():
    x, w = make((5, 84), "int32", -100, 100)
    t = Tester("vector")
    t.store_expect(t.abs(t.load(x)), np.abs(w), dtype="float32")
    t.run_check()


def test_a_cast_to_the_dtype_it_has_is_nothing():
    t = Tester("vector")
    x = t.load(np.ones(3, np.float32))
    assert t.cast(x, "float32") is x


@pytest.mark.parametrize("dtype", BF16)
def test_bfloat16_travels_as_uint16(dtype):
    values = np.array([1.0, 1.00390625, -2.5, 3.3895e38, np.inf, np.nan, 1e-40], np.float32)
    stored = given(values, dtype)
    assert stored.dtype == np.uint16
    t = Tester("vector")
    store = t.store(t.copy(t.load(stored, dtype)))
    t.run_check()
    np.testing.assert_array_equal(t.output(store), stored)
    np.testing.assert_array_equal(t.result(store), Tester.convert_from_bf16(stored))
