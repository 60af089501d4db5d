"""Collectives between ranks. What comes before one in a kernel is run, the arrays are exchanged, and the kernel goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..devices import ranks
from ..dtypes import bfloat16, float16, float32
from ..errors import ArgumentError, ShapeError
from . import capture as captures
from .builder_hints import Hints
from .builder_objects import NDObject, fail
from .builder_rules import Rules, tensor_of

Shape = tuple[int, ...]


_UNDIVIDED = "{} rows do not divide among {} ranks"


class Collectives(Rules):
    """Mixed into Kernel: allreduce and its kin, and the ranks they run between."""

    def allreduce(self, op: str, x: NDObject) -> NDObject:
        """ "sum" or "max" of what every rank has, taken in the order of the ranks, rounded once."""
        if op not in ("sum", "max"):
            raise fail(ArgumentError, f"takes 'sum' or 'max', got {op!r}", _core.user_place(), op="AllReduce")
        return self._collective("AllReduce", x, lambda shape, size: shape, lambda parts, _: joined(op, parts), kind=op)

    def allgather(self, x: NDObject) -> NDObject:
        """What every rank has, one below the other along the first axis."""
        return self._collective("AllGather", x, lambda shape, size: (shape[0] * size, *shape[1:]), lambda parts, _: np.concatenate(parts))

    allgatherv2 = allgather

    def reducescatter(self, x: NDObject) -> NDObject:
        """This rank's part, along the first axis, of the sum over all ranks."""
        return self._collective("ReduceScatter", x, lambda shape, size: (shape[0] // size, *shape[1:]), _own_part)

    def _collective(
        self, op: str, x: NDObject, shape: Callable[[Shape, int], Shape], join: Callable[[list[np.ndarray], int], np.ndarray], **attrs: Any
    ) -> NDObject:
        place = _core.user_place()
        dtype = tensor_of(x, op, place).dtype_

        def exchange(array: np.ndarray, dry: bool) -> np.ndarray:
            world = ranks.world()
            rank, size = (world.rank, world.size) if world is not None else (0, 1)
            if op != "AllReduce" and not array.ndim:
                raise fail(ShapeError, f"needs a first axis, got {dtype}[]", place, op=op)
            if op == "ReduceScatter" and array.shape[0] % size and dry:
                raise fail(ShapeError, _UNDIVIDED.format(array.shape[0], size), place, op=op)
            if dry:
                return np.zeros(shape(array.shape, size), array.dtype)
            with captures.set_aside():  # frameworks' communicators run ops
                brought = [text.decode() for text in ranks.gather(_described(op, attrs, dtype, array).encode())]
                if len(set(brought)) > 1:  # before the data: so every rank says so, and none waits for another
                    raise fail(ShapeError, f"the ranks bring {', '.join(brought)}; these do not go together", place, op=op)
                if op == "ReduceScatter" and array.shape[0] % size:
                    raise fail(ShapeError, _UNDIVIDED.format(array.shape[0], size), place, op=op)
                parts = [np.frombuffer(part, array.dtype) for part in ranks.gather(np.ascontiguousarray(array).data)]
            parts = [part.reshape((-1, *array.shape[1:]) if array.ndim else ()) for part in parts]
            wide = Hints.convert_from_bf16 if dtype is bfloat16 else np.asarray
            made = join([wide(part) for part in parts], rank)
            return Hints.convert_to_bf16(made) if dtype is bfloat16 else np.ascontiguousarray(made, array.dtype)

        return self._node(op, (x,), dtype, place, exchange=exchange, **attrs)

    # ---- ranks ----------------------------------------------------------------------------------------------------

    @staticmethod
    def init_comm(rank: int, size: int, how: Any = "dummy") -> None:
        """This program is one of `size` ranks that have a communicator (how: mpi4py's, PyTorch's, or a word: then the one that MPI,
        PyTorch or MindSpore has begun), or one rank alone (0 of 1)."""
        ranks.init(rank, size, how)

    @staticmethod
    def fork(size: int, comm_type: str = "") -> int:
        """Makes ranks of this process, at most 32; gives each its number. comm_type is accepted: they share memory."""
        return ranks.fork(size)

    @staticmethod
    def join() -> None:
        """Ends the ranks; rank 0 waits for them and goes on."""
        ranks.join()

    @staticmethod
    def barrier() -> None:
        """Waits until every rank is here."""
        ranks.barrier()

    @staticmethod
    def rank_id() -> int:
        """This rank's number, 0 where there are none."""
        world = ranks.world()
        return world.rank if world is not None else 0

    @staticmethod
    def rank_size() -> int:
        """How many ranks there are, at least 1."""
        world = ranks.world()
        return world.size if world is not None else 1


def _described(op: str, attrs: dict[str, Any], dtype: Any, array: np.ndarray) -> str:
    """What all ranks must bring alike: "AllReduce sum float32[4,3]". The first axis of what is gathered may differ."""
    shape = ("*", *array.shape[1:]) if op == "AllGather" else array.shape
    return f"{' '.join([op, *map(str, attrs.values())])} {dtype}[{','.join(map(str, shape))}]"


def joined(kind: str, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sum or largest, one rank after the other; halves in float32."""
    wide = float32.numpy if parts[0].dtype == float16.numpy else parts[0].dtype
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total = total + part if kind == "sum" else np.maximum(total, part)
    return total


def _own_part(parts: list[np.ndarray], rank: int) -> np.ndarray:
    rows = parts[0].shape[0] // len(parts)
    return joined("sum", [part[rank * rows : (rank + 1) * rows] for part in parts])
