"""Many inputs and outputs, stores out of order, more loads than events, hundreds of ops, awkward extents."""

import numpy as np
import pytest
from dvm_kit import make, one

from dvm_core.tester import Tester


def test_many_ins_and_outs_over_wide_rows():
    (x, w), (y, v), (z, u) = (make((8, 32000), low=0.5, high=2.0, seed=i) for i in range(3))

    def body(t, a, b, c):
        quotient = t.div(a, b)
        return [quotient, t.log(quotient), t.mul(t.log(quotient), c), t.mul(a, c)]

    one("vector", body, [w / v, np.log(w / v), np.log(w / v) * u, w * u], x, y, z)


def test_stores_in_another_order_than_their_producers():
    (x, w), (y, v) = make((64, 1000)), make((64, 1000), seed=1)
    t = Tester("vector")
    a, b = t.load(x), t.load(y)
    first = t.sub(a, b)
    second = t.sub(first, a)
    third = t.sub(second, b)
    for item, expected in ((third, -2 * v), (first, w - v), (second, -v)):
        t.store_expect(item, expected)
    t.run_check()


@pytest.mark.parametrize("count", [9, 16, 40])
def test_more_loads_than_events(count):
    pairs = [make((33, 257), seed=i) for i in range(count)]

    def body(t, *loads):
        total = loads[0]
        for item in loads[1:]:
            total = t.add(total, item)
        return total

    one("vector", body, sum(w for _, w in pairs), *[x for x, _ in pairs], eps=1e-5 * count)


def test_short_rows_that_are_stored_and_used_again():
    x, w = make((500, 7))

    def body(t, a):
        b = t.add(a, 1.0)
        return [b, t.mul(b, t.max(b, [1], True)), t.exp(t.mul(b, 0.5))]

    one("vector", body, [w + 1, (w + 1) * (w + 1).max(1, keepdims=True), np.exp((w + 1) / 2)], x)


@pytest.mark.parametrize("length", [200, 1000])
def test_a_kernel_of_very_many_ops(length):
    x, w = make((16, 257), low=-0.5, high=0.5)

    def body(t, a):
        value = a
        for i in range(length):
            value = t.add(value, a) if i % 2 else t.mul(value, 0.99)
        return value

    expected = w
    for i in range(length):
        expected = expected + w if i % 2 else expected * 0.99
    one("split", body, expected, x, eps=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_exponentials_summed_over_an_extent_that_divides_by_nothing(axis):
    # a sixteenth of the published [2048, 32001]
    shape = (128, 32001) if axis else (32001, 100)
    x, w = make(shape, low=-1, high=1)
    one("vector", lambda t, a: t.sum(t.exp(a), [axis]), np.exp(w).sum(axis), x, eps=1e-4)


def test_a_row_of_one_number_each_in_a_long_chain():
    (x, w), (y, v) = make((1, 1, 41850, 1)), make((2, 5, 41850, 4), seed=1)

    def body(t, a, b):
        value = b
        for i in range(6):
            value = t.add(t.mul(value, a), 0.5 * i)
        return value

    expected = v
    for i in range(6):
        expected = expected * w + 0.5 * i
    one("vector", body, expected, x, y, eps=1e-4)
