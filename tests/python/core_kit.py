"""Short ways to record and run instructions of the native core, for the tests of capture, launches, memory and hooks."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

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


def softmax(x: np.ndarray):
    """Of rows, as five instructions: (result, launch)."""
    r = Recorder()
    a = r.input(x)
    e = r.exp(r.sub(a, r.max(a, attrs=(1, 1))))
    result = r.div(e, r.sum(e, attrs=(1, 1)))
    launch = r.graph.flush([result])
    return r.array(result).copy(), launch


def in_threads(count: int, body: Callable[[int], None]) -> list[BaseException]:
    """What body(0), body(1), ... raised, each in a thread."""
    failed: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            body(i)
        except BaseException as error:  # shown by whoever asked
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def run_python(code: str, **environment: str) -> str:
    """What the code prints in a process of its own, which finds the test modules."""
    env = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_at(level: str, code: str) -> None:
    """Runs code at a SIMD level; skips the test where the processor has not got it."""
    if run_python(f"{code}\nfrom dvm_core import _core\nprint(_core.simd_level())", DVM_SIMD=level).split()[-1] != level:
        pytest.skip(f"this processor has no {level}")
