"""One add kernel, called with shapes and ranks that change from call to call. Nothing is declared about them and nothing is rebuilt.

    dvm run examples/kernels/add_dynamic.py
"""
import dvm
import numpy as np


@dvm.kernel
def add(k, x, y):
    a = k.load(x, dvm.float32)
    b = k.load(y, dvm.float32)
    return k.store(k.add(a, b))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for left, right in (([32, 32], [32, 32]), ([32, 1], [32, 512]), ([7], [3, 5, 7]), ([2, 3, 4, 5], [4, 1])):
        x, y = (rng.standard_normal(shape, dtype=np.float32) for shape in (left, right))
        np.testing.assert_allclose(add(x, y), x + y, rtol=1e-6)
        print(f"{left} + {right} = {list(add(x, y).shape)}")
    print(add.dump(), end="")
    print("agrees with NumPy")
