"""Snapshots of watches that are kept in the program: views ask for parts of them, and those of earlier steps stay for a while."""
from __future__ import annotations

import collections
import functools
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import devices
from ..dtypes import BY_CODE
from .commands import Answer, CommandError
from .places import Place
from .tensors import Tensor

MOST_BYTES = 128 << 20  # of all; of more the oldest go
_EVERY = 0.015  # seconds between two events about one watch: more than a screen can show


@dataclass
class Snapshot:
    """One that is kept. number: counts up within its watch."""
    number: int
    step: int
    device: str
    tensor: Tensor
    bytes: int

    def told(self) -> Answer:
        return {"snapshot": self.number, "step": self.step, "device": self.device}


@dataclass
class _Shelf:
    """What is kept of one watch, oldest first, and what its events wait for."""
    limit: int
    snapshots: collections.deque[Snapshot] = field(default_factory=collections.deque)
    bytes: int = 0  # of these
    told: float = 0.0  # when its last event went out
    waiting: Answer | None = None

    def put(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self.bytes += snapshot.bytes
        while len(self.snapshots) > self.limit:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        self.bytes -= self.snapshots.popleft().bytes

    @property
    def history(self) -> int:
        """Bytes of those that may go: all but the newest."""
        return self.bytes - self.snapshots[-1].bytes if self.snapshots else 0


class Kept:
    """By watch. The agent's thread only."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._shelves: dict[int, _Shelf] = {}

    def keep(self, watch: int, limit: int) -> None:
        self._shelves[watch] = _Shelf(limit)

    def forget(self, watch: int) -> None:
        self._shelves.pop(watch, None)

    def clear(self) -> None:
        self._shelves.clear()

    def takes(self, watch: int) -> bool:
        return watch in self._shelves

    def add(self, watch: int, name: str, event: dict[str, Any], place: Place | None) -> int:
        """The number of the snapshot in the core's event, whose bytes are held from now on."""
        held, code, shape, data = self._shelves[watch], event["dtype"], tuple(event["shape"]), event["data"]
        tensor = Tensor(name, code, shape, functools.partial(array_of, data, code, shape), place,
                        extra={"program": event["program"], "instruction": event["instruction"]})
        held.put(Snapshot(next(self._numbers), event["step"], devices.device(), tensor, len(data)))
        self._shrink()
        return held.snapshots[-1].number

    def _shrink(self) -> None:
        """The longest history gives first; every watch keeps its newest."""
        while sum(held.bytes for held in self._shelves.values()) > MOST_BYTES:
            longest = max(self._shelves.values(), key=lambda held: held.history)
            if len(longest.snapshots) < 2:
                return
            longest.drop_oldest()

    def due(self, watch: int, event: Answer) -> bool:
        """Whether an event about this watch goes out now. One that does not waits, and only the newest goes out later."""
        held, now = self._shelves[watch], time.monotonic()
        if now - held.told < _EVERY:
            held.waiting = event
            return False
        held.told, held.waiting = now, None
        return True

    def waiting(self) -> list[Answer]:
        """Events whose time has come, taken out."""
        now, due = time.monotonic(), []
        for held in self._shelves.values():
            if held.waiting is not None and now - held.told >= _EVERY:
                due.append(held.waiting)
                held.told, held.waiting = now, None
        return due

    def all(self, watch: int) -> list[Answer]:
        held = self._shelves.get(watch)
        return [snapshot.told() for snapshot in held.snapshots] if held else []

    def get(self, watch: Any, number: int | None) -> Snapshot:
        """By its number; None means the newest. Raises CommandError."""
        held = self._shelves.get(watch) if isinstance(watch, int) else None
        if held is None:
            raise CommandError(f"watch {watch!r} keeps no snapshots")
        if not held.snapshots:
            raise CommandError("no snapshot of it has been taken yet")
        if number is None:
            return held.snapshots[-1]
        for snapshot in held.snapshots:
            if snapshot.number == number:
                return snapshot
        raise CommandError(f"snapshot {number} is not kept any more: the {len(held.snapshots)} newest are")


def array_of(data: bytes, code: int, shape: tuple[int, ...]) -> np.ndarray:
    """Bytes in index order as an array of the core's own dtypes (bfloat16: its bits)."""
    kind = BY_CODE[code].numpy
    return np.frombuffer(data, kind).reshape(shape)
