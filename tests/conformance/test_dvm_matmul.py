"""matmul: transposes, batches, bias, what runs behind it, extents that fill no block."""

import numpy as np
import pytest
from dvm_kit import HALVES, make, one

import dvm_core as dvm
from dvm_core.tester import Tester

EPS = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 1e-1}
DTYPES = ["float32", *HALVES]


def pair(m, k, n, dtype, trans_a, trans_b, batch_a=(), batch_b=()):
    scale = max(k, 1) ** -0.5
    x, w = make((*batch_a, *((k, m) if trans_a else (m, k))), dtype, -1, 1)
    y, v = make((*batch_b, *((n, k) if trans_b else (k, n))), dtype, -scale * 4, scale * 4, seed=1)
    return x, y, (w.swapaxes(-1, -2) if trans_a else w) @ (v.swapaxes(-1, -2) if trans_b else v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, k, n", [(1024, 1024, 1024), (1, 64, 1), (127, 33, 65), (16, 34816, 5), (300, 1, 7)])
def test_matmul(m, k, n, trans_a, trans_b, dtype):
    x, y, expected = pair(m, k, n, dtype, trans_a, trans_b)
    one("cube", lambda t, a, b: t.matmul(a, b, trans_a, trans_b), expected, x, y, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "batches", [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 3), (2, 3)), ((2, 1), (1, 4)), ((1, 4), (2, 4)), ((2, 3), (3,))], ids=str
)
def test_batches_broadcast(batches, dtype):
    x, y, expected = pair(17, 33, 20, dtype, False, True, *batches)
    one("cube", lambda t, a, b: t.matmul(a, b, False, True), expected, x, y, dtypes=[dtype], eps=EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n", [(64, 128), (33, 1), (5, 1979)])
def test_work_behind_a_matmul(m, n, dtype):
    x, y, product = pair(m, 72, n, dtype, False, False)
    z, u = make((n,), dtype, seed=2)

    def body(t, a, b, c):
        return t.maximum(t.mul(t.add(t.matmul(a, b, False, False), c), 0.5), 0.0)

    one("mix", body, np.maximum((product + u) * 0.5, 0), x, y, z, dtypes=[dtype], eps=max(2e-3, EPS[dtype]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(96,), (1, 96)], ids=str)
def test_bias(shape, dtype):
    x, y, product = pair(50, 40, 96, dtype, False, False)
    z, u = make(shape, dtype, seed=2)
    one("mix", lambda t, a, b, c: t.matmul(a, b, False, False, c), product + u, x, y, z, dtypes=[dtype], eps=EPS[dtype] * 2)


def test_silu_and_a_row_softmax_behind_a_matmul():
    x, y, product = pair(33, 64, 48, "float32", False, False)

    def body(t, a, b):
        p = t.matmul(a, b, False, False)
        e = t.exp(t.sub(p, t.max(p, [-1], True)))
        return [t.mul(p, t.reciprocal(t.add(t.exp(t.mul(p, -1.0)), 1.0))), t.div(e, t.sum(e, [-1], True))]

    e = np.exp(product - product.max(-1, keepdims=True))
    one("split", body, [product / (1 + np.exp(-product)), e / e.sum(-1, keepdims=True)], x, y, eps=1e-4)


@pytest.mark.parametrize("m, k, n", [(0, 5, 7), (5, 7, 0), (5, 0, 7)])
def test_matmul_of_nothing(m, k, n):
    x, y = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
    one("cube", lambda t, a, b: t.matmul(a, b, False, False), np.zeros((m, n)), x, y)


def test_random_extents_and_what_runs_behind():
    # forty draws of the published open-ended run
    rng = np.random.default_rng(5)
    for _ in range(40):
        m, k, n = (int(extent) for extent in rng.integers(1, 200, 3))
        trans_a, trans_b = (bool(flag) for flag in rng.integers(0, 2, 2))
        x, y, product = pair(m, k, n, "float32", trans_a, trans_b)
        one(
            "split", lambda t, a, b, ta=trans_a, tb=trans_b: t.exp(t.mul(t.matmul(a, b, ta, tb), 0.25)), np.exp(product / 4), x, y, eps=2e-3
        )


def test_inner_extents_that_differ_are_an_error_with_the_shapes():
    t = Tester("cube")
    t.store(t.matmul(t.load(np.zeros((3, 4), np.float32)), t.load(np.zeros((5, 6), np.float32)), False, False))
    with pytest.raises(dvm.ShapeError, match=r"\[3,4\].*\[5,6\].*4 and 5"):
        t.run()


def test_one_matmul_a_mix_kernel():
    t = Tester("mix")
    a = t.load([4, 4], "float32")
    b = t.matmul(a, a, False, False)
    with pytest.raises(dvm.ArgumentError, match="only one cube op in mix-kernel"):
        t.matmul(b, a, False, False)
