"""broadcast and full: leading, row and several axes, every dtype, numbers given at the call, tiles by hand."""

import numpy as np
import pytest
from dvm_kit import BF16, make, one

from dvm_core.tester import Tester

DTYPES = ("float32", "float16", "int32", "int64", "bool")
SHAPES = [
    ((1, 512), (32, 512)),
    ((32, 1), (32, 512)),
    ((1, 1), (13, 131)),
    ((131,), (13, 131)),
    ((16, 1, 24, 1), (16, 8, 24, 33)),
    ((1, 8, 1, 33), (16, 8, 24, 33)),
    ((3, 1, 1, 5, 1), (3, 4, 6, 5, 7)),
    ((555555, 1), (555555, 16)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, wanted", SHAPES, ids=str)
def test_broadcast(shape, wanted, dtype):
    x, w = make(shape, dtype, -9, 9)
    one("vector", lambda t, a: t.broadcast(a, list(wanted)), np.broadcast_to(w, wanted), x, dtypes=[dtype])


@pytest.mark.parametrize("dtype", BF16)
@pytest.mark.parametrize("shape, wanted", SHAPES[:6], ids=str)
def test_broadcast_of_bfloat16_and_a_sum(shape, wanted, dtype):
    (x, w), (y, v) = make(shape, dtype), make(wanted, dtype)
    t = one("vector", lambda t, a: t.broadcast(a, list(wanted)), np.broadcast_to(w, wanted), x, dtypes=[dtype], eps=0)
    a, b = t.load(x, dtype), t.load(y, dtype)
    t.store_expect(t.mul(t.broadcast(a, list(wanted)), b), w * v, 5e-3)
    t.run_check()


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("shape, wanted", SHAPES[:7], ids=str)
def test_an_op_broadcasts_by_itself(shape, wanted, dtype):
    (x, w), (y, v) = make(shape, dtype, -9, 9), make(wanted, dtype, -9, 9)
    one(
        "vector", lambda t, a, b: [t.add(a, b), t.sub(b, a)], [w + v, v - w], x, y, dtypes=[dtype], eps=None if dtype != "float16" else 2e-3
    )


def test_minus_one_keeps_an_extent():
    x, w = make((5, 1, 7))
    one("vector", lambda t, a: t.broadcast(a, [3, -1, 4, -1]), np.broadcast_to(w, (3, 5, 4, 7)), x)


def test_a_number_fills_a_shape():
    t = Tester("vector")
    t.store_expect(t.add(t.full(0.25, [7, 9], "float32"), t.full(2, [9], "float32")), np.full((7, 9), 2.25))
    t.store_expect(t.broadcast(-3, [4, 5], "int32"), np.full((4, 5), -3))
    t.run_check()


@pytest.mark.parametrize("value", [0.0, 0.2, True, False, 3])
def test_a_number_fills_bools(value):
    t = Tester("vector")
    t.store_expect(t.full(value, [13, 7], "bool"), np.full((13, 7), bool(value)))
    t.run_check()


@pytest.mark.parametrize("value", [0x100000000, -0x100000000, 2**63 - 1, -(2**63)])
def test_a_scalar_of_64_bits_keeps_them(value):
    t = Tester("vector")
    s = t.scalar("int64")
    t.input(s, value)
    t.store_expect(t.full(s, [5, 6], "int64"), np.full((5, 6), value))
    t.store_expect(t.add(t.load(np.zeros((5, 6), np.int64)), s), np.full((5, 6), value))
    t.run_check()


def test_a_scalar_may_change_between_runs():
    t = Tester("vector:dyn")
    s = t.make_float(0.0)
    store = t.store(t.mul(t.load(np.ones((3, 5), np.float32)), s))
    for value in (0.5, -2.0, 3):
        t.input(s, value)
        t.codegen()
        t.run()
        np.testing.assert_array_equal(t.output(store), np.full((3, 5), value, np.float32))


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_manual_tiles_and_a_broadcast_that_is_stored(digits):
    shape = tuple([3, 4, 5, 6, 8][-1 - digits :])
    x, w = make((shape[0], *[1] * digits))
    t = Tester("vector")
    wide = t.broadcast(t.load(x), list(shape))
    t.store_expect(wide, np.broadcast_to(w, shape))
    t.store_expect(t.exp(wide), np.exp(np.broadcast_to(w, shape)))
    for axis in range(digits):
        t.tile(axis, axis, 2)
    t.run_check()


def test_a_column_repeated_sixteen_times_and_reduced_rows():
    x, w = make((4099, 1))
    one("vector", lambda t, a: t.max(t.broadcast(a, [4099, 16]), [1]), w[:, 0], x)


@pytest.mark.parametrize("cols", [5, 7, 33])
def test_short_rows_carry_no_padding_into_the_output(cols):
    (x, w), (y, v) = make((1000, cols)), make((1000, 1))
    one("vector", lambda t, a, b: t.mul(a, t.broadcast(b, [1000, cols])), w * v, x, y)
