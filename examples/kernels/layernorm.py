"""Layer normalisation over the last axis: both reductions stay inside a tile, so the whole kernel is one area.

    dvm run examples/kernels/layernorm.py
"""
import dvm
import numpy as np


@dvm.kernel
def layernorm(k, x, gamma, beta, per_element):
    data = k.load(x, "float32")
    n = k.scalar(per_element)
    mean = k.mul(k.sum(data, [-1], True), n)
    centred = k.sub(data, mean)
    variance = k.mul(k.sum(k.mul(centred, centred), [-1], True), n)
    normal = k.div(centred, k.sqrt(k.add(variance, 1e-5)))
    return k.store(k.add(k.mul(normal, k.load(gamma, "float32")), k.load(beta, "float32")))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for shape in ((8, 128), (2, 33, 1025), (4096, 64)):
        x = rng.normal(1.0, 2.0, shape).astype(np.float32)
        gamma, beta = rng.standard_normal((2, shape[-1]), dtype=np.float32)
        wide = x.astype(np.float64)
        expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * gamma + beta
        np.testing.assert_allclose(layernorm(x, gamma, beta, 1.0 / shape[-1]), expected, rtol=1e-4, atol=1e-4)
        print(f"{list(shape)}: {len(layernorm.program().areas)} area")
    print(layernorm.das(), end="")
    print("agrees with NumPy")
