"""Short ways to record and run instructions of the native core, for the tests of capture, launches, memory and hooks."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dvm_core import _core

OP = {name: code for name, code, *_ in _core.OPS}
CODE = {name: code for name, code, _ in _core.DTYPES}
F32, I32, BOOL = CODE["float32"], CODE["int32"], CODE["bool"]


class Recorder:
    """A graph with an op per method: `r.add(a, b)`, `r.sum(a, attrs=(0, 1))`."""

    def __init__(self, name: str = "test") -> None:
        self.graph = _core.Graph(name)

    def input(self, array: np.ndarray, cls: str = "") -> int:
        strides = tuple(s // array.itemsize for s in array.strides)
        return self.graph.input(array.ctypes.data, array.shape, CODE[array.dtype.name], strides, array, cls)

    def __getattr__(self, name: str):
        opcode = OP[name.upper()]
        return lambda *operands, **rest: self.graph.op(opcode, operands, **rest)

    def array(self, value: int) -> np.ndarray:
        array = self.graph.array(value)
        assert array is not None, f"value {value} is not in memory"
        return array


def place(line: int, backward: bool = False) -> int:
    return _core.place("model.py", line, function="forward", backward=backward)


def arange(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


class Counters:
    """How much each counter of stats() grew since this was made."""

    def __init__(self) -> None:
        self.before = _core.stats()

    def __getattr__(self, name: str) -> int:
        return _core.stats()[name] - self.before[name]


@contextmanager
def stop_handler(handler) -> Iterator[None]:
    _core.set_stop_handler(handler)
    try:
        yield
    finally:
        _core.set_stop_handler(None)
        _core.set_check(0)
        _core.clear_hooks()


def drain() -> list[dict]:
    """The events that wait, none left behind."""
    _core.synchronize_copies()
    events: list[dict] = []
    while more := _core.poll_events():
        events += more
    return events
