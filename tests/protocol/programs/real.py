"""A captured loop on dvm's own arrays: quick to start, and all of the tensor engine is real."""
import sys
import time

import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(x, w, scale):
    h = x * w
    s = h + scale
    y = s.log() / 2
    return y


def train(steps, pause, scale):
    x = np.linspace(0.5, 2, 32, dtype=np.float32).reshape(8, 4)
    w = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)
    for number in range(1, steps + 1):
        y = forward(dvm.tensor(x), dvm.tensor(w), scale).numpy()
        print(f"step {number} mean {y.mean():.6f}", flush=True)
        time.sleep(pause)


if "--listen" in sys.argv:
    print("listening", dvm.debug.listen(("127.0.0.1", 0))[1], flush=True)
    dvm.debug.wait_for_client()
train(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 1.0)
