"""Shapes, ranks, axes and numbers that change from run to run of one kernel."""

import numpy as np
import pytest
from dvm_kit import make

import dvm_core as dvm
from dvm_core.tester import Tester


@pytest.mark.parametrize("kind", ["vector:dyn", "split:dyn", "eager", "split:dyn,unify_ws"])
def test_extents_change_between_runs(kind):
    t = Tester(kind)
    a, b = t.load([-1, -1], "float32"), t.load([-1, -1], "float32")
    store = t.store(t.mul(t.add(a, b), 0.5))
    for left, right in (
        ((32, 32), (32, 32)),
        ((32, 1), (32, 512)),
        ((1, 7), (9, 1)),
        ((1, 1), (1, 1)),
        ((1000, 3), (1, 3)),
        ((0, 4), (1, 4)),
    ):
        (x, w), (y, v) = make(left), make(right, seed=1)
        t.input(a, x), t.input(b, y)
        t.codegen()
        t.run()
        np.testing.assert_allclose(t.output(store), (w + v) * 0.5, rtol=1e-5, atol=1e-6)


@dvm.kernel
def scaled(k, x, y, s):
    return k.store(k.mul(k.add(k.load(x, "float32", [-1]), k.load(y, dvm.float32)), k.scalar(s)))


def test_the_rank_changes_between_calls():
    for left, right in (((32, 32), (32, 32)), ((7,), (3, 5, 7)), ((), (4,)), ((2, 3, 4, 5), (4, 1)), ((1,), (2, 2, 2, 2, 2, 2))):
        (x, w), (y, v) = make(left), make(right, seed=1)
        np.testing.assert_allclose(scaled(x, y, 1.5), (w + v) * 1.5, rtol=1e-5, atol=1e-6)


def test_a_call_does_not_see_the_one_before():
    big, small = make((64, 64))[0], make((3, 5))[0]
    first = scaled(small, small, 1.0)
    scaled(big, big, 3.0)
    np.testing.assert_array_equal(scaled(small, small, 1.0), first)


def test_axes_of_a_reduction_given_at_the_call():
    t = Tester("vector:dyn")
    a, dims = t.load([-1, -1, -1], "float32"), t.int_array()
    store = t.store(t.sum(a, dims, True))
    for shape, axes in (((4, 5, 6), [0]), ((4, 5, 6), [1, 2]), ((7, 1, 33), [0, 2]), ((2, 3, 4), [-1]), ((2, 3, 4), [])):
        x, w = make(shape)
        t.input(a, x), t.input(dims, axes)
        t.run()
        np.testing.assert_allclose(t.output(store), w.sum(tuple(axes) or None, keepdims=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [2685, 2686, 2687])
def test_column_sums_of_row_counts_that_divide_by_nothing(rows):
    x, w = make((rows, 4096), low=-1, high=1)
    t = Tester("vector:dyn")
    t.store_expect(t.sum(t.load(x), [0]), w.sum(0), 1e-3)
    t.run_check()


def test_a_broadcast_shape_given_at_the_call():
    @dvm.kernel
    def spread(k, x, shape):
        return k.store(k.broadcast(k.load(x, "float32"), k.dims(shape)))

    for shape, wanted in (((1, 4), [3, 4]), ((5, 1), [5, 6]), ((3,), [2, 2, 3])):
        x, w = make(shape)
        np.testing.assert_array_equal(spread(x, wanted), np.broadcast_to(w, wanted))


def test_a_fixed_extent_is_checked_and_an_open_one_is_not():
    @dvm.kernel(dyn_shape=True)
    def kernel(k):
        return k.store(k.exp(k.load([-1, 4], "float32")))

    for rows in (1, 9, 0):
        assert kernel(np.zeros((rows, 4), np.float32)).shape == (rows, 4)
    with pytest.raises(dvm.ShapeError, match=r"declared \[-1, 4\], called with \[2, 5\]"):
        kernel(np.zeros((2, 5), np.float32))


def test_symbols_stand_for_any_extent():
    # -1, -2, -3: extents of a symbolic kernel; equal ones are equal
    t = Tester("split:priv1")
    a, b = t.load([-1, -2], "float32"), t.load([-2], "float32")
    store = t.store(t.sum(t.mul(a, b), [1]))
    for rows, cols in ((3, 5), (64, 33), (1, 1)):
        (x, w), (y, v) = make((rows, cols)), make((cols,))
        t.input(a, x), t.input(b, y)
        t.run()
        np.testing.assert_allclose(t.output(store), (w * v).sum(1), rtol=1e-4, atol=1e-5)
    t.input(a, make((3, 5))[0]), t.input(b, make((1,))[0])
    with pytest.raises(dvm.ShapeError, match=r"extent -2 is 5 in %0.* and 1"):
        t.run()
