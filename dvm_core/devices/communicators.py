"""Ranks of separate programs exchange arrays through the communicator these programs have: MPI's (mpi4py), PyTorch's or MindSpore's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import DeviceError, UnsupportedError

_AT_ONCE = 1 << 30  # bytes of a rank in one message: MPI counts in 32 bits
_MPI_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # in the environment of what mpiexec starts


class Communicator(Protocol):
    """What collectives need of the ranks."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Waits until every rank is here."""

    def gather(self, data: memoryview) -> list[bytes]:
        """What every rank brings (bytes, of any number), in their order."""


class _Alike:
    """A communicator that takes as many elements of every rank."""

    size: int

    def gather(self, data: memoryview) -> list[bytes]:
        return _in_parts(np.frombuffer(data, np.uint8) if data.nbytes else np.empty(0, np.uint8), self.alike, self.size)

    def alike(self, array: np.ndarray) -> np.ndarray:
        """Each rank's elements, a row for each."""
        raise NotImplementedError


class Mpi(_Alike):
    """A communicator of mpi4py. A rank that ends by an exception ends the others, which would wait for it."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, int(comm.Get_rank()), int(comm.Get_size())
        if self.size > 1 and hasattr(comm, "Abort"):
            _end_all_by(comm.Abort)

    def barrier(self) -> None:
        self.comm.Barrier()

    def alike(self, array: np.ndarray) -> np.ndarray:
        found = np.empty((self.size, array.size), array.dtype)
        self.comm.Allgather(array, found)
        return found


def _end_all_by(abort: Callable[[int], None]) -> None:
    if getattr(sys.excepthook, "dvm_ends_all", False):
        return
    before = sys.excepthook

    def hook(kind: Any, error: Any, traceback: Any) -> None:
        before(kind, error, traceback)
        sys.stdout.flush()
        sys.stderr.flush()
        abort(1)

    hook.dvm_ends_all = True  # type: ignore[attr-defined]
    sys.excepthook = hook


class Torch(_Alike):
    """A process group of torch.distributed."""

    def __init__(self, group: Any) -> None:
        import torch.distributed as dist

        self.dist, self.group, self.rank, self.size = dist, group, dist.get_rank(group), dist.get_world_size(group)

    def barrier(self) -> None:
        self.dist.barrier(self.group)

    def alike(self, array: np.ndarray) -> np.ndarray:
        import torch

        found = torch.empty((self.size, array.size), dtype=torch.from_numpy(array[:0].copy()).dtype)
        self.dist.all_gather(list(found), torch.from_numpy(np.array(array)), group=self.group)
        return found.numpy()


class MindSpore(_Alike):
    """The communication that mindspore.communication.init() has begun."""

    def __init__(self) -> None:
        from mindspore import communication

        self.rank, self.size = int(communication.get_rank()), int(communication.get_group_size())

    def barrier(self) -> None:
        from mindspore.mint import distributed

        distributed.barrier()

    def alike(self, array: np.ndarray) -> np.ndarray:
        from mindspore import Tensor
        from mindspore.mint import distributed

        found = [Tensor(np.empty_like(array)) for _ in range(self.size)]
        distributed.all_gather(found, Tensor(array))
        return np.stack([tensor.asnumpy() for tensor in found])


def _in_parts(data: np.ndarray, alike: Callable[[np.ndarray], np.ndarray], size: int) -> list[bytes]:
    """gather, by one that takes as many elements of every rank (and gives one row for each)."""
    sizes = alike(np.array([data.size], np.int64)).reshape(-1)
    found = [bytearray() for _ in range(size)]
    for start in range(0, int(sizes.max()), _AT_ONCE):
        count = min(_AT_ONCE, int(sizes.max()) - start)
        mine = np.zeros(count, np.uint8)
        part = data[start : start + count]
        mine[: part.size] = part
        for rank, row in enumerate(alike(mine)):
            found[rank] += row[: max(0, min(count, int(sizes[rank]) - start))].tobytes()
    return [bytes(item) for item in found]


# ---- finding one ------------------------------------------------------------------------------------------------------


def _mpi() -> Communicator | None:
    if "mpi4py.MPI" not in sys.modules and not any(name in os.environ for name in _MPI_LAUNCHERS):
        return None
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise UnsupportedError(f"the program was started by mpiexec, but mpi4py is not there ({error}): pip install mpi4py") from None
    return Mpi(MPI.COMM_WORLD)


def _torch() -> Communicator | None:
    dist = sys.modules.get("torch.distributed")
    return Torch(None) if dist is not None and dist.is_available() and dist.is_initialized() else None


def _mindspore() -> Communicator | None:
    communication = sys.modules.get("mindspore.communication")
    if communication is None:
        return None
    try:
        return MindSpore() if int(communication.get_group_size()) > 1 else None
    except RuntimeError:  # init() has not been called
        return None


class Way(NamedTuple):
    """A kind of communicator: how programs come to one, and the one this program has."""

    begin: str
    find: Callable[[], Communicator | None]


WAYS: Sequence[Way] = (
    Way('torch.distributed.init_process_group("gloo") under torchrun', _torch),
    Way("mindspore.communication.init() under msrun", _mindspore),
    Way("mpi4py, the program started by mpiexec", _mpi),
)


def find(how: Any, rank: int, size: int) -> Communicator:
    """The communicator of this program with that many ranks, in which it has that number. how: one of mpi4py, a process group of
    torch.distributed, or a word. Raises UnsupportedError where there is none, DeviceError where its ranks are others."""
    found: Communicator | None
    try:
        if hasattr(how, "Allgather"):
            found = Mpi(how)
        elif type(how).__module__.startswith("torch."):
            found = Torch(how)
        else:
            found = next((each for way in WAYS if (each := way.find()) is not None), None)
    except UnsupportedError:
        raise
    except (RuntimeError, ValueError) as error:  # of a communicator without this rank, or that has ended
        raise DeviceError(f"rank {rank} of {size}: this communicator cannot be used: {error}") from error
    if found is None:
        raise UnsupportedError(
            f"rank {rank} of {size} by {how!r}: this program has no communicator. There are: {'; '.join(way.begin for way in WAYS)}; "
            f"fork({size}) makes ranks of this program alone"
        )
    if (found.rank, found.size) != (rank, size):
        raise DeviceError(f"init_comm({rank}, {size}): the program's communicator says that this is rank {found.rank} of {found.size}")
    return found
