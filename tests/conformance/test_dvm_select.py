"""select: conditions of bool and of other dtypes, broadcasting, numbers as choices, 64-bit values that no float holds."""

import numpy as np
import pytest
from dvm_kit import FLOATS, make, one

from dvm_core.tester import Tester

SHAPES = [(1024, 32), (13, 131), (16, 11), (3, 3)]
DTYPES = [*FLOATS, "bfloat16", "int32"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_condition_of_the_branches_dtype(shape, dtype):
    (c, m), (x, a), (y, b) = make(shape, dtype, -1, 1), make(shape, dtype, -9, 9, seed=1), make(shape, dtype, -9, 9, seed=2)
    one("vector", lambda t, p, q, r: t.select(p, q, r), np.where(m != 0, a, b), c, x, y, dtypes=[dtype])


@pytest.mark.parametrize("dtype", [*DTYPES, "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_condition_of_bool(shape, dtype):
    (c, m), (x, a), (y, b) = make(shape, "bool"), make(shape, dtype, -9, 9, seed=1), make(shape, dtype, -9, 9, seed=2)
    one("vector", lambda t, p, q, r: t.select(p, q, r), np.where(m, a, b), c, x, y, dtypes=["bool", dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_five_axes_broadcast(dtype):
    (c, m), (x, a), (y, b) = make((4, 1, 6, 1, 9), "bool"), make((1, 5, 6, 7, 1), dtype), make((7, 9), dtype)
    one("vector", lambda t, p, q, r: t.select(p, q, r), np.where(m, a, b), c, x, y, dtypes=["bool", dtype])


def test_numbers_as_choices_and_a_compare_as_condition():
    x, w = make((33, 65))
    t = Tester("vector")
    a = t.load(x)
    t.store_expect(t.select(t.greater(a, 0.5), a, 0.0), np.where(w > 0.5, w, 0))
    t.store_expect(t.select(t.greater(a, 0.5), -1, a), np.where(w > 0.5, -1, w))
    t.run_check()


def test_a_scalar_condition_chooses_the_whole():
    (x, a), (y, b) = make((13, 31)), make((13, 31), seed=1)
    for condition in (True, False):
        one(
            "vector",
            lambda t, p, q, r: t.select(p, q, r),
            a if condition else b,
            np.full((1, 1), condition),
            x,
            y,
            dtypes=["bool", "float32"],
        )
        one("vector", lambda t, p, q, c=condition: t.select(t.full(c, [1], "bool"), p, q), a if condition else b, x, y)


def test_what_is_not_chosen_does_not_matter():
    x = np.array([np.nan, np.inf, 1.0, 2.0], np.float32)
    t = Tester("vector")
    a = t.load(x)
    t.store_expect(t.select(t.isfinite(a), a, 0.0), [0, 0, 1, 2])
    t.run_check()


def test_int64_at_the_ends_of_both_halves():
    values = np.array([2**63 - 1, -(2**63), 2**31, -(2**31), 2**32, 2**32 - 1, -(2**32), 2**53 + 1, 0, -1], np.int64)
    c = np.arange(10) % 2 == 0
    one(
        "vector",
        lambda t, p, q, r: t.select(p, q, r),
        np.where(c, values, values[::-1]),
        c,
        values,
        values[::-1].copy(),
        dtypes=["bool", "int64"],
    )
    one("vector", lambda t, p, q: t.select(p, q, 2**53 + 1), np.where(c, values, 2**53 + 1), c, values, dtypes=["bool", "int64"])
