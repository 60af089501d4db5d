"""A loop that spends its time in a library's function called by the user's, and in a captured one. Argument: `listen` opens a port."""
import random
import sys

import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(x):
    h = x * 2
    return h + 1


def once(numbers, x):
    random.shuffle(numbers)  # in the library
    y = forward(dvm.tensor(x)).numpy()  # after it
    return float(y.sum())


def train():
    numbers, x = list(range(20000)), np.ones((8, 4), np.float32)
    while True:
        once(numbers, x)  # again
        print("step", flush=True)


if __name__ == "__main__":
    if "listen" in sys.argv:
        print("listening", dvm.debug.listen(("127.0.0.1", 0))[1], flush=True)
    train()
