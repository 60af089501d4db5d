"""A training loop in small: one captured function, called until somebody stops it."""
import sys
import time

import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(x, w):
    h = x * w
    s = h + 1.5
    y = s / (s.max() + 1)
    return y


def main(steps):
    x = dvm.tensor(np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 4))
    w = dvm.tensor(np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4))
    for _ in range(steps):
        y = forward(x, w)
        loss = float(y.numpy().sum())
        time.sleep(0.002)
    print("loss", loss)


if __name__ == "__main__":
    if "listen" in sys.argv:
        print("port", dvm.debug.listen(("127.0.0.1", 0))[1], flush=True)
        dvm.debug.wait_for_client()
    main(100000)
