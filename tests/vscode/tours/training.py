"""The program of tours without a framework: steps until the file `finish` is there; with a file `poison` a logarithm has no value."""
import sys
import time
from pathlib import Path

import numpy as np

import dvm_core as dvm

RATE = 0.1


@dvm.jit
def update(w, x, shift):
    h = (x @ w).tanh()
    logs = (h + shift).log()
    return w - RATE * logs.mean()


if "--listen" in sys.argv:
    dvm.debug.listen(("127.0.0.1", int(sys.argv[-1])))
w = dvm.tensor(np.full((16, 4), 0.1, np.float32))
x = dvm.tensor(np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16))
while not Path("finish").exists():
    poison = Path("poison").exists()
    shift = dvm.tensor(np.full((1, 1), -3.0 if poison else 3.0, np.float32))
    w = (update(w, x, shift), w)[poison]  # a poisoned step leaves w: whenever somebody begins to look, the next NaN is the logarithm's
    w.numpy()
    time.sleep(0.05)
