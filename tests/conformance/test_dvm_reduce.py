"""Reductions: over rows, columns, several and all axes, odd extents, many rows, one order whatever the tiles."""

import numpy as np
import pytest
from dvm_kit import make, one

from dvm_core.tester import Tester

REFERENCE = {"sum": np.sum, "max": np.max, "min": np.min}
DTYPES = [("sum", "float32"), ("max", "float32"), ("min", "float32")]
DTYPES += [(name, dtype) for name in ("max", "min") for dtype in ("float16",)]
SHAPES = [
    ((64, 256), [1]),
    ((64, 251), [1]),
    ((251, 64), [0]),
    ((256, 251), [0]),
    ((511, 1024), [0]),
    ((511, 1024), [0, 1]),
    ((35053,), [0]),
    ((120, 1), [0]),
    ((120, 1), [1]),
    ((3, 4, 120, 136), [0, 2, 3]),
    ((11, 6000), [1]),
    ((2, 3, 4, 5, 3, 4, 2), [0, 2, 4, 6]),
    ((2, 3, 4, 5, 3, 4, 2), [1, 3, 5]),
    ((1, 3, 1, 4, 1, 5, 1, 6, 1, 7), [1, 4, 7, 9]),
    ((16, 17), []),
    ((16, 17), [-1]),
    ((5, 6, 7), [-3, -1]),
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape, dims", SHAPES, ids=str)
@pytest.mark.parametrize("name, dtype", DTYPES)
def test_reduce(name, dtype, shape, dims, keepdims):
    x, w = make(shape, dtype, -1, 1)
    expected = REFERENCE[name](w, axis=tuple(dims) or None, keepdims=keepdims)
    # 1e-4 as published, more only where a sum of thousands of both signs nearly vanishes
    eps = 0 if name != "sum" else 1e-4 * max(1.0, (w.size / max(expected.size, 1)) ** 0.5 / 30)
    one("vector", lambda t, a: getattr(t, name)(a, dims, keepdims), expected, x, dtypes=[dtype], eps=eps)


@pytest.mark.parametrize("shape, dims", [((64, 251), [1]), ((4000, 33), [0]), ((3, 4, 120, 13), [0, 2, 3])], ids=str)
def test_work_before_and_after_a_sum(shape, dims):
    x, w = make(shape)
    total = (w * w).sum(tuple(dims), keepdims=True)
    one("split", lambda t, a: t.div(a, t.sqrt(t.sum(t.mul(a, a), dims, True))), w / np.sqrt(total), x, eps=1e-4)


def test_several_reductions_of_one_input():
    x, w = make((120, 77))
    one(
        "split",
        lambda t, a: [t.sum(a, [1]), t.max(a, [1]), t.min(a, [0]), t.sum(a, [0], True), t.max(a)],
        [w.sum(1), w.max(1), w.min(0), w.sum(0, keepdims=True), w.max()],
        x,
        eps=1e-4,
    )


@pytest.mark.parametrize("name", REFERENCE)
def test_rows_and_columns_with_one_nan(name):
    x, w = make((33, 65))
    x[7, 9] = w[7, 9] = np.nan
    one(
        "vector",
        lambda t, a: [getattr(t, name)(a, [1]), getattr(t, name)(a, [0])],
        [REFERENCE[name](w, 1), REFERENCE[name](w, 0)],
        x,
        eps=1e-4,
    )


@pytest.mark.parametrize("name", ["max", "min"])
def test_identities_do_not_show_in_ragged_rows(name):
    # rows of one sign, of an extent that fills no vector: padding would win if it were looked at
    for sign in (-1, 1):
        x, w = make((9, 21), low=0.5, high=1.0)
        one("vector", lambda t, a: getattr(t, name)(a, [1]), REFERENCE[name](sign * w, 1), sign * x, eps=0)


@pytest.mark.parametrize("tiles", [1, 2, 3, 7, 16])
def test_manual_tiles_with_a_tail_give_the_same_bits(tiles):
    x, w = make((23, 1000))
    found = []
    for manual in (False, True):
        t = Tester("vector")
        store = t.expect(t.store(t.sum(t.exp(t.load(x)), [1])), np.exp(w).sum(1), 1e-4)
        if manual:
            t.tile(1, 1, tiles)
        t.run_check()
        found.append(t.output(store))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.usefixtures("strict")
def test_determinism_is_no_switch():
    x, w = make((3001, 129), low=-1, high=1)
    found = []
    for enabled in (False, True, False):
        t = Tester("vector")
        t.set_deterministic(enabled)
        store = t.expect(t.store(t.sum(t.load(x), [0])), w.sum(0), 1e-4)
        t.run_check()
        found.append(t.output(store).tobytes())
    assert found[0] == found[1] == found[2]


def test_an_axis_of_no_elements():
    x = np.zeros((0, 5), np.float32)
    one("vector", lambda t, a: [t.sum(a, [0]), t.sum(a, [1])], [np.zeros(5), np.zeros(0)], x)
