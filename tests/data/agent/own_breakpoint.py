"""A captured function that stops itself."""
import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(x):
    h = x * 2
    dvm.debug.breakpoint()
    s = h + 1  # stops here
    return s


print(forward(dvm.tensor(np.ones((2, 3), np.float32))).numpy().sum())
