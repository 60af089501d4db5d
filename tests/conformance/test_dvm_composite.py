"""Functions made of many ops: tanh, GELU, layer normalisation."""

import math

import numpy as np
import pytest
from dvm_kit import HALVES, make, one


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_tanh_from_exponentials(dtype):
    x, w = make((32, 1025), dtype, -3, 3)

    def body(t, a):
        wider = t.cast(a, "float32")
        e = t.exp(t.mul(wider, -2.0))
        return t.cast(t.div(t.sub(1.0, e), t.add(e, 1.0)), dtype)

    one("vector", body, np.tanh(w), x, dtypes=[dtype], eps={"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}[dtype])


def test_gelu_in_eight_ops():
    x, w = make((32, 1025), low=-4, high=4)
    root = math.sqrt(2 / math.pi)

    def body(t, a):
        inner = t.mul(t.add(a, t.mul(t.pow(a, 3), 0.044715)), -2 * root)
        return t.div(a, t.add(t.exp(inner), 1.0))

    one("vector", body, 0.5 * w * (1 + np.tanh(root * (w + 0.044715 * w**3))), x)


def test_layer_norm_of_one_kernel():
    (x, w), (g, gamma), (b, beta) = make((65, 770)), make((770,), seed=1), make((770,), seed=2)

    def body(t, a, scale, shift):
        mean = t.mul(t.sum(a, [-1], True), 1 / 770)
        centred = t.sub(a, mean)
        variance = t.mul(t.sum(t.mul(centred, centred), [-1], True), 1 / 770)
        return t.add(t.mul(t.div(centred, t.sqrt(t.add(variance, 1e-5))), scale), shift)

    expected = (w - w.mean(-1, keepdims=True)) / np.sqrt(w.var(-1, keepdims=True) + 1e-5) * gamma + beta
    one("split", body, expected, x, g, b, eps=1e-4)
