"""reshape: foldable and not, before and after reductions, broadcasts, permutes and matmuls; shapes given at the call."""

import numpy as np
import pytest
from dvm_kit import FLOATS, make, one

from dvm_core.tester import Tester

PLAIN = [
    ((32, 1024), (1024, 32)),
    ((32, 1024), (32768,)),
    ((6, 35), (2, 3, 5, 7)),
    ((2, 3, 5, 7), (6, 35)),
    ((4, 1, 9), (36,)),
    ((36,), (1, 6, 1, 6, 1)),
    ((1,), ()),
    ((), (1, 1)),
    ((127, 24), (24, 127)),
]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "bool"])
@pytest.mark.parametrize("shape, wanted", PLAIN, ids=str)
def test_reshape(shape, wanted, dtype):
    x, w = make(shape, dtype, -9, 9)
    one("split", lambda t, a: t.reshape(a, list(wanted)), w.reshape(wanted), x, dtypes=[dtype])


@pytest.mark.parametrize("shape, wanted", PLAIN, ids=str)
def test_work_before_and_behind(shape, wanted):
    x, w = make(shape)
    one("split", lambda t, a: t.exp(t.reshape(t.mul(a, 0.5), list(wanted))), np.exp(w * 0.5).reshape(wanted), x)


def test_one_dimension_may_be_left_open():
    x, w = make((4, 6, 10))
    one(
        "split",
        lambda t, a: [t.reshape(a, [-1]), t.reshape(a, [8, -1]), t.reshape(a, [4, -1, 10])],
        [w.reshape(-1), w.reshape(8, -1), w.reshape(4, -1, 10)],
        x,
    )


AFFINE = {
    "after a broadcast": (
        (5, 1, 8),
        lambda t, a: t.reshape(t.broadcast(a, [5, 6, 8]), [30, 8]),
        lambda w: np.broadcast_to(w, (5, 6, 8)).reshape(30, 8),
    ),
    "before a broadcast": (
        (30, 8),
        lambda t, a: t.broadcast(t.reshape(a, [5, 1, 6, 8]), [5, 3, 6, 8]),
        lambda w: np.broadcast_to(w.reshape(5, 1, 6, 8), (5, 3, 6, 8)),
    ),
    "after a row sum": ((30, 65), lambda t, a: t.reshape(t.sum(a, [1]), [5, 6]), lambda w: w.sum(1).reshape(5, 6)),
    "after a column sum": ((65, 30), lambda t, a: t.reshape(t.sum(a, [0], True), [5, 6]), lambda w: w.sum(0).reshape(5, 6)),
    "before a row sum": ((30, 65), lambda t, a: t.sum(t.reshape(a, [6, 325]), [1]), lambda w: w.reshape(6, 325).sum(1)),
    "between two sums": (
        (12, 35),
        lambda t, a: t.sum(t.reshape(t.sum(a, [1]), [3, 4]), [0]),
        lambda w: w.sum(1).reshape(3, 4).sum(0),
    ),
    "twice": (
        (12, 35),
        lambda t, a: t.abs(t.reshape(t.add(t.reshape(a, [20, 21]), 1.0), [420])),
        lambda w: np.abs(w.reshape(20, 21) + 1).reshape(420),
    ),
    "there and back": (
        (12, 35),
        lambda t, a: t.mul(t.reshape(t.exp(t.reshape(a, [420])), [12, 35]), a),
        lambda w: np.exp(w) * w,
    ),
    "after a permute": (
        (4, 6, 10),
        lambda t, a: t.reshape(t.permute(a, [2, 0, 1]), [10, 24]),
        lambda w: w.transpose(2, 0, 1).reshape(10, 24),
    ),
    "before a permute": (
        (24, 10),
        lambda t, a: t.permute(t.reshape(a, [4, 6, 10]), [1, 2, 0]),
        lambda w: w.reshape(4, 6, 10).transpose(1, 2, 0),
    ),
    "two branches": (
        (12, 35),
        lambda t, a: t.add(t.reshape(t.exp(a), [420]), t.reshape(t.abs(a), [420])),
        lambda w: (np.exp(w) + np.abs(w)).reshape(420),
    ),
    "of a slice": ((12, 35), lambda t, a: t.reshape(t.slice(a, [2, 5], [6, 10]), [60]), lambda w: w[2:8, 5:15].reshape(60)),
}


@pytest.mark.parametrize("kind", ["split", "vector:spec", "eager"])
@pytest.mark.parametrize("case", AFFINE)
def test_reshape_among_other_ops(case, kind):
    shape, body, expected = AFFINE[case]
    x, w = make(shape, low=-1, high=1)
    one(kind, body, expected(w), x, eps=1e-4)


def test_behind_a_matmul():
    (x, w), (y, v) = make((24, 33), low=-1, high=1), make((33, 20), low=-1, high=1)
    one(
        "split",
        lambda t, a, b: t.exp(t.reshape(t.matmul(a, b, False, False), [4, 6, 20])),
        np.exp((w @ v).reshape(4, 6, 20)),
        x,
        y,
        eps=1e-4,
    )


@pytest.mark.parametrize("shape, wanted", [((10,), [2, 5]), ((20, 40), [10, 80])], ids=str)
def test_a_shape_given_at_the_call(shape, wanted):
    t = Tester("vector:dyn")
    dims = t.int_array()
    x, w = make(shape)
    t.input(dims, wanted)
    t.store_expect(t.mul(t.reshape(t.load(x), dims), 2.0), 2 * w.reshape(wanted))
    t.run_check()
