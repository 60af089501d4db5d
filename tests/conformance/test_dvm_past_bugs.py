"""What went wrong in kernels of this kind before: stale padding, reads past the end, outputs that nobody wrote, one input forgotten."""

import numpy as np
import pytest
from dvm_kit import make, one

from dvm_core.tester import Tester


@pytest.mark.parametrize("cols", [3, 17, 33, 65])
def test_a_reduction_after_one_of_longer_rows_sees_no_leftovers(cols):
    big, _ = make((64, 1000), low=50, high=60)
    t = Tester("vector:dyn")
    a = t.load([-1, -1], "float32")
    stores = [t.store(t.sum(a, [1])), t.store(t.max(t.mul(a, -1.0), [1]))]
    for x in (big, make((64, cols), low=0.5, high=1.0)[0], big[:, :cols].copy()):
        t.input(a, x)
        t.run()
        np.testing.assert_allclose(t.output(stores[0]), x.astype(np.float64).sum(1), rtol=1e-5)
        np.testing.assert_array_equal(t.output(stores[1]), (-x).max(1))


@pytest.mark.parametrize("size", [1, 7, 31, 33, 1023, 1025])
def test_a_select_reads_and_writes_only_its_own(size):
    memory = np.full(3 * size + 64, np.nan, np.float32)
    c, x, out = memory[:size], memory[size : 2 * size], memory[2 * size : 3 * size]
    c[...], x[...] = np.arange(size) % 2, np.arange(size)
    t = Tester("vector")
    a, b = t.load([size], "float32"), t.load([size], "float32")
    t.input(a, c), t.input(b, x)
    t.set_output(t.store(t.select(a, b, -1.0)), out)
    t.run()
    np.testing.assert_array_equal(out, np.where(np.arange(size) % 2, np.arange(size), -1))
    assert np.isnan(memory[3 * size :]).all()
    np.testing.assert_array_equal(x, np.arange(size))


def test_every_element_of_every_output_is_written():
    shapes = [(1,), (33, 65), (300, 7), (2, 3, 4), (1, 1), (5000, 1), (1, 5000)]
    t = Tester("split")
    outputs = []
    for i, shape in enumerate(shapes):
        x, w = make(shape, seed=i)
        a = t.load(x)
        for item, expected in ((t.exp(a), np.exp(w)), (t.concat([a, t.abs(a)], 0), np.concatenate([w, np.abs(w)])), (t.sum(a), w.sum())):
            store = t.expect(t.store(item), expected, 1e-4)
            outputs.append(np.full(np.shape(expected), np.nan, np.float32))
            t.set_output(store, outputs[-1])
    t.run_check()
    assert not any(np.isnan(output).any() for output in outputs)


def test_an_output_is_not_the_memory_of_an_input_that_went_before_it():
    # what one kernel gives out stays as it was while another reuses freed memory
    kept = []
    for i in range(50):
        x = np.full((64, 64), i, np.float32)
        t = Tester("eager")
        store = t.store(t.add(t.load(x), 0.5))
        t.run()
        kept.append(t.output(store))
        del x, t
    assert [float(array[3, 3]) for array in kept] == [i + 0.5 for i in range(50)]
    assert all((array == array[0, 0]).all() for array in kept)


def test_a_gradient_that_reads_its_output_again():
    # y = softmax(x); dx = y * (dy - sum(y * dy)): the product and its sum use one value twice
    (x, w), (g, d) = make((65, 129)), make((65, 129), seed=1)

    def body(t, a, b):
        e = t.exp(t.sub(a, t.max(a, [1], True)))
        y = t.div(e, t.sum(e, [1], True))
        return [y, t.mul(y, t.sub(b, t.sum(t.mul(y, b), [1], True)))]

    e = np.exp(w - w.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    one("split", body, [y, y * (d - (y * d).sum(1, keepdims=True))], x, g)


def test_equality_after_the_same_ops_on_both_sides():
    # x / y == x / y must hold bit for bit, fused or stored between
    (x, _), (y, _) = make((33, 65)), make((33, 65), low=0.3, seed=1)
    t = Tester("split")
    a, b = t.load(x), t.load(y)
    stored = t.div(t.exp(a), b)
    t.store(stored)
    t.store_expect(t.equal(stored, t.div(t.exp(a), b)), np.ones((33, 65), bool))
    t.run_check()


def test_layer_norm_and_a_reciprocal_in_one_kernel():
    x, w = make((40, 300), low=1, high=2)

    def body(t, a):
        mean = t.mul(t.sum(a, [1], True), 1 / 300)
        variance = t.mul(t.sum(t.pow(t.sub(a, mean), 2), [1], True), 1 / 300)
        return t.reciprocal(t.add(t.div(t.sub(a, mean), t.sqrt(t.add(variance, 1e-5))), 5.0))

    one("split", body, 1 / ((w - w.mean(1, keepdims=True)) / np.sqrt(w.var(1, keepdims=True) + 1e-5) + 5), x, eps=1e-4)
