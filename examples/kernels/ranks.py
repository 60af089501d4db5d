"""A layer split over ranks: each multiplies its part of the inner axis, an allreduce joins the parts, bias and ReLU run behind it.

    dvm run examples/kernels/ranks.py
"""
import dvm
import numpy as np
from dvm.tester import CommScope

RANKS = 2


@dvm.kernel
def layer(k, x, w, bias):
    part = k.matmul(k.load(x, "float32"), k.load(w, "float32"), False, False)
    return k.store(k.maximum(k.add(k.allreduce("sum", part), k.load(bias, "float32")), 0.0))


def reference(x, w, bias):
    return np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for rows, inner, columns in ((32, 64, 128), (77, 130, 33)):
        x = rng.standard_normal((rows, inner), dtype=np.float32)
        w, bias = rng.standard_normal((inner, columns), dtype=np.float32), rng.standard_normal(columns, dtype=np.float32)
        with CommScope(RANKS) as comm:
            mine = slice(comm.rank * inner // RANKS, (comm.rank + 1) * inner // RANKS)
            found = layer(x[:, mine], w[mine], bias)
            np.testing.assert_allclose(found, reference(x, w, bias), rtol=1e-4, atol=1e-4)
        print(f"[{rows}, {inner}] @ [{inner}, {columns}] on {RANKS} ranks")
    print("agrees with NumPy")
