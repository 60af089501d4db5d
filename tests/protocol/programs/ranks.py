"""A program of several processes; which kind is named by the argument. Each computes a step with the tensor engine and says how it went."""
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np

import dvm_core as dvm


@dvm.jit
def forward(x):
    h = x * 2
    s = h + 1  # in every process
    return s


def work(number=0):
    y = forward(dvm.tensor(np.full((4,), number, np.float32))).numpy()
    print(f"worker {number} {float(y.sum())}\n", end="", flush=True)  # in one piece: ranks share a pipe
    return float(y.sum())


def fork():
    pid = os.fork()
    if not pid:
        work(1)
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def multiprocess():
    process = multiprocessing.get_context("fork").Process(target=work, args=(1,))
    process.start()
    process.join()
    print("ended", process.exitcode, flush=True)


def launcher():
    """As msrun and mpirun do it: a process for each rank, with its number in the environment, and msrun's scheduler."""
    told = [{"MS_ROLE": "MS_SCHED", "RANK_ID": "0"}, {"RANK_ID": "0"}, {"OMPI_COMM_WORLD_RANK": "1"}]
    ranks = [subprocess.Popen([sys.executable, __file__, "rank"], env={**os.environ, **one}) for one in told]
    print("ended", *[process.wait() for process in ranks], flush=True)


def free():
    """Two ranks that do not wait for each other, until there is a file of that name."""
    command = [sys.executable, __file__, "loop", sys.argv[2]]
    ranks = [subprocess.Popen(command, env={**os.environ, "RANK": str(number)}) for number in range(2)]
    print("ended", *[process.wait() for process in ranks], flush=True)


def loop():
    while not os.path.exists(sys.argv[2]):
        forward(dvm.tensor(np.full((4,), 1, np.float32))).numpy()
        time.sleep(0.01)


def rank():
    work(len(sys.argv))


def torchrun():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    mine = torch.tensor([work(dist.get_rank())])
    dist.all_reduce(mine)
    print(f"sum {mine.item()}\n", end="", flush=True)
    dist.destroy_process_group()


class Numbers:
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return work(number)


def loader():
    from torch.utils.data import DataLoader

    print("loaded", sum(float(batch.sum()) for batch in DataLoader(Numbers(), batch_size=2, num_workers=1)), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
