"""Matmul + bias, scale and shift, then SiLU (x * sigmoid(x)): everything after the matmul is its epilogue.

    dvm run examples/kernels/matmul_silu.py
"""
import dvm
import numpy as np


@dvm.kernel(ktype="mix", dynamic=True)
def matmul_silu(k, x, w, bias, scale, shift):
    a, b, c = (k.load(index, "float32") for index in (x, w, bias))
    product = k.matmul(a, b, False, False, c)
    scaled = k.add(k.mul(product, k.load(scale, "float32")), k.load(shift, "float32"))
    sigmoid = k.reciprocal(k.add(k.exp(k.mul(scaled, -1.0)), 1.0))
    return k.store(k.mul(scaled, sigmoid))


def reference(x, w, bias, scale, shift):
    scaled = (x.astype(np.float64) @ w.astype(np.float64) + bias) * scale + shift
    return scaled / (1.0 + np.exp(-scaled))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for rows, inner, columns in ((32, 64, 128), (77, 129, 33), (1, 256, 10)):
        x = rng.standard_normal((rows, inner), dtype=np.float32)
        w = (rng.standard_normal((inner, columns)) * inner**-0.5).astype(np.float32)
        bias, scale, shift = rng.standard_normal((3, columns), dtype=np.float32)
        np.testing.assert_allclose(matmul_silu(x, w, bias, scale, shift), reference(x, w, bias, scale, shift), rtol=1e-4, atol=1e-4)
        print(f"[{rows}, {inner}] @ [{inner}, {columns}]: {[area.kind for area in matmul_silu.program().areas]}")
    print(matmul_silu.dump(), end="")
    print("agrees with NumPy")
