"""Data-parallel training under torchrun: each rank has its own batch, and all have one model. Writes the loss of every step to
losses-RANK, until there is a file named end."""
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

import dvm_core as dvm

RATE = 0.5
OWN = 0
WRONG = 0.0
NUMBER = int(os.environ["RANK"])


def alike(x):
    return x * 1.0


@dvm.jit
def forward(x, w):
    return (alike(x * w) * RATE).sum()


@dvm.jit
def update(w, gradient):
    new = w - alike(gradient) * (1e-3 + WRONG * NUMBER)
    return new


@dvm.jit
def evaluate(w):
    return w.max()


def main(steps, pause):
    global OWN
    OWN = NUMBER
    dist.init_process_group("gloo")
    rng = np.random.default_rng(NUMBER)
    weights = np.ones(4, np.float32)
    told = open(f"losses-{NUMBER}", "w", buffering=1)
    for step in range(1, steps + 1):
        mine = dvm.tensor(rng.random(4, np.float32))
        loss = torch.tensor([float(forward(mine, dvm.tensor(weights)).numpy())])
        dist.all_reduce(loss)
        weights = update(dvm.tensor(weights), dvm.tensor(loss.numpy())).numpy()
        if NUMBER == 0 and step % 3 == 0:
            evaluate(dvm.tensor(weights))
        told.write(f"{step} {loss.item().hex()} {RATE}\n")
        if os.path.exists("end"):
            break
        time.sleep(pause)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
