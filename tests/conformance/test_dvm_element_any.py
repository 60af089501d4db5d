"""element_any: one number that says whether any element is not zero."""

import numpy as np
import pytest
from dvm_kit import make, one

from dvm_core.tester import Tester


@pytest.mark.parametrize("shape", [(1,), (31,), (33, 65), (3, 5, 1000), (128, 777)], ids=str)
@pytest.mark.parametrize("where", ["nowhere", "first", "last", "middle", "everywhere"])
def test_element_any_of_a_mask(shape, where):
    x = np.full(shape, float(where == "everywhere"), np.float32)
    place = {"first": 0, "last": -1, "middle": x.size // 2}.get(where)
    if place is not None:
        x.flat[place] = 1
    one("vector", lambda t, a: t.element_any(a), [float(x.any())], x)


def test_element_any_counts_whatever_is_not_zero():
    for value in (-1.0, 1e-30, np.nan, np.inf, -0.0):
        x = np.zeros((9, 33), np.float32)
        x[4, 5] = value
        one("vector", lambda t, a: t.element_any(a), [float(value != 0)], x)


def test_element_any_among_other_ops():
    x, w = make((33, 65))
    t = Tester("split")
    a = t.load(x)
    t.store_expect(t.element_any(t.cast(t.greater(a, 3.0), "float32")), [0.0])
    t.store_expect(t.mul(a, t.element_any(a)), w)
    t.run_check()
