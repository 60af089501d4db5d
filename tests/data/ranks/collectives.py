"""One of several programs: begins the communicator it is told of, and runs kernels with collectives over it.

    mpiexec -n 2 python collectives.py mpi OUT
"""

import sys

import numpy as np

import dvm_core as dvm
from dvm_core.tester import Tester


def begin(kind):
    """Rank and size."""
    if kind == "torch":
        import torch.distributed as dist

        dist.init_process_group("gloo")
        return dist.get_rank(), dist.get_world_size()
    if kind == "mindspore":
        import mindspore as ms
        from mindspore import communication

        ms.set_device("CPU")
        communication.init()
        return communication.get_rank(), communication.get_group_size()
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()


def data(rank, dtype="float32"):
    return (np.random.default_rng(rank).standard_normal((6, 50)) * 4).astype(dtype)


def main(kind, out):
    rank, size = begin(kind)
    dvm.Kernel.init_comm(rank, size, "hccl")
    assert (dvm.Kernel.rank_id(), dvm.Kernel.rank_size()) == (rank, size)
    total = data(0)
    for other in range(1, size):
        total = total + data(other)
    t = Tester("vector")
    x = t.load(data(rank))
    t.store_expect(t.exp(t.mul(t.allreduce("sum", x), 0.1)), np.exp(total * np.float32(0.1)), 1e-5)
    t.store_expect(t.allreduce("max", x), np.max([data(r) for r in range(size)], axis=0))
    t.store_expect(t.reducescatter(x), total[rank * 6 // size : (rank + 1) * 6 // size])
    t.run_check()
    half = Tester("vector")
    half.store_expect(half.allgather(half.load(data(rank, "float16"), "float16")), np.concatenate([data(r, "float16") for r in range(size)]))
    half.run_check()
    dvm.Kernel.barrier()
    for wrong in ((rank, size + 1), ((rank + 1) % size, size)):
        dvm.Kernel.join()
        try:
            dvm.Kernel.init_comm(*wrong, "hccl")
        except dvm.DeviceError as error:
            assert f"this is rank {rank} of {size}" in str(error)
        else:
            raise AssertionError(wrong)
    with open(f"{out}.{rank}", "w", encoding="utf-8") as file:
        file.write("right")


if __name__ == "__main__":
    main(*sys.argv[1:])
