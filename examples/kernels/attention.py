"""Attention: matmul, scale, softmax, matmul. The softmax runs behind the first matmul, on its rows, before they leave local memory.

    dvm run examples/kernels/attention.py
"""
import dvm
import numpy as np


@dvm.kernel(ktype="split", dynamic=True)
def attention(k, query, key, value, scale):
    q, kt, v = (k.load(index, "float32") for index in (query, key, value))
    scores = k.mul(k.matmul(q, kt, False, True), k.scalar(scale))
    peak = k.max(scores, [-1], True)
    weight = k.exp(k.sub(scores, peak))
    probability = k.div(weight, k.sum(weight, [-1], True))
    return k.store(k.matmul(probability, v, False, False))


def reference(q, k, v, scale):
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) * scale
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ v


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for batch, heads, length, width in ((1, 2, 64, 32), (2, 4, 129, 64), (1, 1, 1, 16)):
        q, k, v = (rng.standard_normal((batch, heads, length, width), dtype=np.float32) for _ in range(3))
        found = attention(q, k, v, width**-0.5)
        np.testing.assert_allclose(found, reference(q, k, v, width**-0.5), rtol=1e-3, atol=1e-4)
        print(f"[{batch}, {heads}, {length}, {width}]: {[area.kind for area in attention.program().areas]}")
    print("agrees with NumPy")
