"""Split and eager kernels: where a graph may be cut, joins, bias, outputs over inputs."""

import numpy as np
import pytest
from dvm_kit import make, one

from dvm_core.tester import Tester

KINDS = ["split", "split:dyn", "split:unify_ws", "split:priv1", "eager", "eager:unify_ws"]


def graphs():
    """name -> (body, expected): ends, middles and joins of a graph at which fusing has to stop."""
    return {
        "sum at the end": (lambda t, a, b: t.sum(t.mul(a, b), [1]), lambda w, v: (w * v).sum(1)),
        "sum in the middle": (lambda t, a, b: t.mul(t.sum(a, [1], True), b), lambda w, v: w.sum(1, keepdims=True) * v),
        "sums that join": (
            lambda t, a, b: t.add(t.sum(a, [1], True), t.max(b, [0], True)),
            lambda w, v: w.sum(1, keepdims=True) + v.max(0, keepdims=True),
        ),
        "a value used on both sides of a cut": (
            lambda t, a, b: t.mul(t.exp(a), t.sum(t.exp(a), [0], True)),
            lambda w, v: np.exp(w) * np.exp(w).sum(0, keepdims=True),
        ),
        "parts that do not touch": (lambda t, a, b: [t.exp(a), t.sum(b, [0, 1])], lambda w, v: [np.exp(w), v.sum()]),
        "reshape in the middle": (
            lambda t, a, b: t.sum(t.reshape(t.exp(a), [-1]), [0]),
            lambda w, v: np.exp(w).sum(),
        ),
        "a permuted branch": (lambda t, a, b: t.add(t.permute(t.exp(a), [1, 0]), t.permute(b, [1, 0])), lambda w, v: np.exp(w).T + v.T),
        "matmul with work on every side": (
            lambda t, a, b: t.exp(t.mul(t.matmul(t.abs(a), t.mul(b, 0.5), False, True), 0.1)),
            lambda w, v: np.exp(np.abs(w) @ (v * 0.5).T * 0.1),
        ),
        "matmul of a sum": (
            lambda t, a, b: t.matmul(t.sub(a, t.max(a, [1], True)), b, False, True),
            lambda w, v: (w - w.max(1, keepdims=True)) @ v.T,
        ),
        "two matmuls and a softmax between": (
            lambda t, a, b: t.matmul(
                t.div(t.exp(t.matmul(a, b, False, True)), t.sum(t.exp(t.matmul(a, b, False, True)), [1], True)), b, False, False
            ),
            lambda w, v: np.exp(w @ v.T) / np.exp(w @ v.T).sum(1, keepdims=True) @ v,
        ),
        "a diamond": (lambda t, a, b: t.mul(t.add(t.exp(a), b), t.sub(t.exp(a), b)), lambda w, v: (np.exp(w) + v) * (np.exp(w) - v)),
        "the same tensor twice": (lambda t, a, b: t.add(t.mul(a, a), t.mul(b, b)), lambda w, v: w * w + v * v),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", graphs())
def test_graph(name, kind):
    body, expected = graphs()[name]
    (x, w), (y, v) = make((40, 40), low=-1, high=1), make((40, 40), low=-1, high=1, seed=1)
    one(kind, body, expected(w, v), x, y, eps=1e-4)


def test_a_matmul_with_bias_and_1979_columns():
    (x, w), (y, v), (b, u) = make((13, 64), low=-1, high=1), make((64, 1979), low=-1, high=1), make((1979,))
    one("split", lambda t, p, q, r: t.matmul(p, q, False, False, r), w @ v + u, x, y, b, eps=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_over_an_input(kind):
    x, w = make((65, 65))
    t = Tester(kind)
    a = t.load(x)
    store = t.store(t.add(t.permute(a, [1, 0]), a))
    t.set_store_inplace(store)
    buffer = x.copy()
    t.input(a, buffer), t.set_output(store, buffer)
    for _ in range(3):
        t.run()
        w = w.T + w
        np.testing.assert_allclose(buffer, w, rtol=1e-5, atol=1e-5)


def test_two_outputs_over_each_others_inputs():
    (x, w), (y, v) = make((9, 33)), make((9, 33), seed=1)
    t = Tester("split")
    a, b = t.load(x), t.load(y)
    t.set_output(t.store(t.exp(b)), x)
    t.set_output(t.store(t.mul(a, 2.0)), y)
    t.run()
    np.testing.assert_allclose(x, np.exp(v), rtol=1e-5)
    np.testing.assert_allclose(y, 2 * w, rtol=1e-6)


def test_what_is_no_store_is_refused():
    t = Tester("split")
    a = t.load([3], "float32")
    for call in (t.set_store_inplace, t.set_store_temp, t.clear_store_memory):
        with pytest.raises(ValueError, match=r"takes what k.store\(...\) gives"):
            call(a)
