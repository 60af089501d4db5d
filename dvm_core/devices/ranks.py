"""Ranks: processes forked from this one that exchange arrays through shared memory, so that kernels with collectives run on one machine, or
separate programs with a communicator of their own."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import ArgumentError, DeviceError
from .communicators import Communicator, find

T = TypeVar("T")

MOST = 32
_CHUNK = 1 << 20  # bytes a rank puts out at a time
_HEAD = 64  # before a rank's chunk: how many bytes it brings in all
_PATIENCE = 60.0  # seconds until a rank that does not arrive is an error


@dataclass
class World:
    """This process among its ranks."""

    rank: int
    size: int
    memory: mmap.mmap | None = None
    barrier: Any = None
    children: list[int] = field(default_factory=list)
    others: Communicator | None = None  # of ranks that are programs of their own


_world: World | None = None


def world() -> World | None:
    """The ranks this process belongs to, None before `fork` or `init`."""
    return _world


def init(rank: int, size: int, how: Any = "dummy") -> None:
    """One rank alone (0 of 1), whose collectives are copies, or one of several programs that have a communicator (communicators.find: also
    what it raises). Raises ArgumentError where this is one of other ranks already."""
    global _world
    if _world is None or _world.children or _world.memory is not None or (_world.rank, _world.size) != (rank, size):
        _check_free()
    alone = (rank, size) == (0, 1) and isinstance(how, str)
    _world = World(0, 1) if alone else World(rank, size, others=find(how, rank, size))


def _check_free() -> None:
    if _world is not None and _world.size > 1:
        raise ArgumentError(f"this is rank {_world.rank} of {_world.size} already: join() first")


def fork(size: int) -> int:
    """Makes `size` ranks of this process by forking it; gives each its number. End them with `join`."""
    global _world
    _check_free()
    if not 1 <= size <= MOST:
        raise ArgumentError(f"{size} ranks; there may be 1 to {MOST}")
    memory = mmap.mmap(-1, size * (_HEAD + _CHUNK))
    barrier = multiprocessing.get_context("fork").Barrier(size, timeout=_PATIENCE)
    children: list[int] = []
    sys.stdout.flush()
    sys.stderr.flush()
    for rank in range(1, size):
        child = os.fork()
        if not child:
            _world = World(rank, size, memory, barrier)
            return rank
        children.append(child)
    _world = World(0, size, memory, barrier, children)
    return 0


def join(status: int = 0) -> None:
    """Ends every rank but 0, which waits for them. Raises DeviceError there if one of them failed."""
    global _world
    ranks, _world = _world, None
    if ranks is None or ranks.others is not None:  # programs of their own end by themselves
        return
    if status and ranks.barrier is not None:
        ranks.barrier.abort()  # nobody waits for a rank that failed
    if ranks.rank:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in ranks.children]
    failed = [f"rank {rank} ended with {code}" for rank, code in enumerate(codes, 1) if code]
    if failed and not status:
        raise DeviceError(", ".join(failed))


def barrier() -> None:
    """Waits until every rank is here."""
    if _world is not None and _world.others is not None:
        _told(_world, _world.others.barrier)
    if _world is None or _world.barrier is None:
        return
    try:
        _world.barrier.wait()
    except threading.BrokenBarrierError:
        raise DeviceError(f"rank {_world.rank} of {_world.size}: another rank failed or did not arrive within {_PATIENCE:.0f} s") from None


def gather(data: bytes | memoryview) -> list[bytes]:
    """What every rank brings, in their order."""
    ranks = _world
    if ranks is None:
        raise ArgumentError("a collective needs ranks: call fork(n) (or init_comm(0, 1) for one alone) first")
    data = memoryview(data)
    data = data.cast("B") if data.nbytes else memoryview(b"")
    if ranks.others is not None:
        others = ranks.others
        return _told(ranks, lambda: others.gather(data))
    if ranks.memory is None:
        return [bytes(data)]
    slot = _HEAD + _CHUNK
    struct.pack_into("q", ranks.memory, ranks.rank * slot, len(data))
    barrier()
    sizes = [struct.unpack_from("q", ranks.memory, rank * slot)[0] for rank in range(ranks.size)]
    found = [bytearray(size) for size in sizes]
    for start in range(0, max(sizes), _CHUNK):
        mine = data[start : start + _CHUNK]
        at = ranks.rank * slot + _HEAD
        ranks.memory[at : at + len(mine)] = bytes(mine)
        barrier()
        for rank, size in enumerate(sizes):
            count = min(_CHUNK, size - start)
            if count > 0:
                at = rank * slot + _HEAD
                found[rank][start : start + count] = ranks.memory[at : at + count]
        barrier()  # nobody writes the next chunk before all have read this one
    barrier()
    return [bytes(item) for item in found]


def _told(ranks: World, exchange: Callable[[], T]) -> T:
    """Exchanges through a communicator; its failure is a DeviceError that says whose."""
    try:
        return exchange()
    except Exception as error:  # mpi4py's and the frameworks' own have many types
        raise DeviceError(f"rank {ranks.rank} of {ranks.size}: the exchange failed: {error}") from error
