"""Batch normalisation over the first axis: two column reductions and what follows them, with 1/batch as a number given at each call.

    dvm run examples/kernels/batchnorm.py
"""
import dvm
import numpy as np


@dvm.kernel
def batchnorm(k, x, gamma, beta, per_row, epsilon):
    data = k.load(x, "float32")
    scale, shift = k.load(gamma, "float32"), k.load(beta, "float32")
    n, eps = k.scalar(per_row), k.scalar(epsilon)
    mean = k.mul(k.sum(data, [0], True), n)
    centred = k.sub(data, mean)
    variance = k.mul(k.sum(k.mul(centred, centred), [0], True), n)
    normal = k.div(centred, k.sqrt(k.add(variance, eps)))
    y = k.add(k.mul(normal, scale), shift)
    return k.store(y), k.store(mean), k.store(variance)


def reference(x, gamma, beta, epsilon):
    x = x.astype(np.float64)
    mean, variance = x.mean(0, keepdims=True), x.var(0, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta, mean, variance


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for batch, features in ((64, 256), (100, 256), (3, 1000)):
        x = rng.normal(2.0, 3.0, (batch, features)).astype(np.float32)
        gamma, beta = rng.standard_normal((2, features), dtype=np.float32)
        found = batchnorm(x, gamma, beta, 1.0 / batch, 1e-5)
        for got, expected in zip(found, reference(x, gamma, beta, 1e-5), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
        print(f"[{batch}, {features}]: mean and variance per feature, normalised")
    print("agrees with NumPy")
