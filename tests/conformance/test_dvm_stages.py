"""Work past a reduction: speculative segments, stages, sequences of kernels, mixed with matmuls."""

import numpy as np
import pytest
from dvm_kit import make, one

import dvm_core as dvm
from dvm_core.tester import Tester

SPEC = ["vector:spec", "vector:spec,priv1", "split", "split:priv1", "eager"]


def softmax(w, axis=-1):
    e = np.exp(w - w.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("kind", SPEC)
@pytest.mark.parametrize("shape", [(33, 65), (4, 7, 1000), (2, 40000), (1000, 1), (1, 3)], ids=str)
def test_softmax(shape, kind):
    x, w = make(shape, low=-4, high=4)

    def body(t, a):
        top = t.max(a, [-1], True)
        t.spec_next()
        e = t.exp(t.sub(a, top))
        total = t.sum(e, [-1], True)
        t.spec_next()
        return t.div(e, total)

    one(kind, body, softmax(w), x)


@pytest.mark.parametrize("kind", SPEC)
@pytest.mark.parametrize("axes", [[0], [1], [0, 1], [2], [0, 2]], ids=str)
def test_norm_over_any_axes(axes, kind):
    x, w = make((6, 33, 40))
    count = int(np.prod([w.shape[axis] for axis in axes]))

    def body(t, a):
        mean = t.mul(t.sum(a, axes, True), 1 / count)
        t.spec_next()
        centred = t.sub(a, mean)
        variance = t.mul(t.sum(t.mul(centred, centred), axes, True), 1 / count)
        t.spec_next()
        return [t.div(centred, t.sqrt(t.add(variance, 1e-5))), mean, variance]

    mean, variance = w.mean(tuple(axes), keepdims=True), w.var(tuple(axes), keepdims=True)
    one(kind, body, [(w - mean) / np.sqrt(variance + 1e-5), mean, variance], x, eps=1e-4)


@pytest.mark.parametrize("kind", SPEC)
def test_a_sum_that_feeds_another_domain(kind):
    (x, w), (y, v) = make((40, 65), low=-1, high=1), make((40, 9), seed=1)

    def body(t, a, b):
        total = t.sum(a, [1], True)
        t.spec_next()
        return [t.mul(b, total), t.sum(t.mul(b, total), [0])]

    total = w.sum(1, keepdims=True)
    one(kind, body, [v * total, (v * total).sum(0)], x, y, eps=1e-4)


@pytest.mark.parametrize("kind", SPEC)
def test_reduction_after_reduction(kind):
    x, w = make((12, 20, 33), low=-1, high=1)
    one(
        kind,
        lambda t, a: [t.sum(t.exp(t.sum(a, [2])), [1]), t.max(t.sum(a, [0]), [0]), t.sum(t.sum(a, [1], True), [2], True)],
        [np.exp(w.sum(2)).sum(1), w.sum(0).max(0), w.sum((1, 2), keepdims=True)],
        x,
        eps=1e-3,
    )


def test_a_split_where_the_writer_wants_it():
    x, w = make((33, 65))
    t = Tester("vector:spec,priv1")
    total = t.sum(t.exp(t.load(x)), [1], True)
    kept = t.store(total)
    t.set_store_temp(kept)
    again = t.load([33, 1], "float32")
    t.set_load_bind(again, kept)
    t.store_expect(t.div(1.0, again), 1 / np.exp(w).sum(1, keepdims=True))
    t.run_check()


def test_loads_that_cannot_be_bound_to_a_store():
    t = Tester("vector:spec,priv1")
    early = t.load([3], "float32")
    kept = t.store(t.exp(early))
    for load, text in (
        (early, "must be declared after the store"),
        (t.load([3], "int32"), "takes a load of float32"),
        (kept, "takes a load"),
    ):
        with pytest.raises(dvm.ArgumentError, match=text):
            t.set_load_bind(load, kept)


def test_a_split_in_a_decorated_kernel_is_no_argument():
    @dvm.kernel(ktype="spec")
    def kernel(k):
        a = k.load([4, 8], "float32")
        kept = k.store(k.sum(a, [1]))
        again = k.load([4], "float32")
        k.set_load_bind(again, kept)
        b = k.load([4], "float32")
        k.store(k.mul(again, b))

    (x, w), (y, v) = make((4, 8)), make((4,))
    total, product = kernel(x, y)
    np.testing.assert_allclose(total, w.sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(product, w.sum(1) * v, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kinds", [("vector", "vector"), ("vector", "mix"), ("mix", "vector", "vector"), ("vector", "cube", "vector")])
@pytest.mark.parametrize("flags", [0, dvm.F_DYN])
def test_a_sequence_of_stages(kinds, flags):
    (x, w), (y, v) = make((24, 33), low=-1, high=1), make((33, 24), low=-1, high=1)
    t = Tester("seq:dyn" if flags else "seq")
    value, expected = t.load(x), w
    other = t.load(y)
    for kind in kinds:
        t.seq_add(kind, flags)
        if kind == "vector":
            value, expected = t.mul(t.exp(t.mul(value, 0.1)), 0.5), np.exp(expected * 0.1) * 0.5
        else:
            value, expected = t.matmul(t.matmul(value, other, False, False), other, False, True), expected @ v @ v.T
    t.store_expect(value, expected, 1e-4)
    t.run_check()


def test_the_stages_of_2024():
    x, w = make((10, 7))
    t = Tester("seq")
    first = t.stage_pad_store(t.exp(t.load(x)), 3)
    t.stage_switch("vector")
    t.store_expect(t.add(t.stage_load(first), 1.0), np.pad(np.exp(w), [(0, 0), (0, 3)]) + 1)
    t.run_check()
