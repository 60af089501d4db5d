"""Rows over calls: what a call, an op and a launch cost beside their kernels; the second core; growth; shapes patched into .msbc bytes.

    python benchmarks/calls.py [--quick]
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import command
import numpy as np
from timing import Row, Sweep, interleave

import dvm_core as dvm
from dvm_core import _core, msbc
from dvm_core.msbc.layout import CODES as OP

Call = Callable[[], Any]


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_grad_enabled(False)
    return torch


def _of_one(times: dict[str, float], count: int) -> dict[str, float]:
    return {name: t / count for name, t in times.items()}


def small_matmul(seconds: float) -> Row:
    """1,000 calls of [16, 16] @ [16, 16]; the time of all of them."""
    a, b = _normal(16, 16), _normal(16, 16, seed=1)
    x, y = dvm.tensor(a), dvm.tensor(b)
    product = dvm.jit(lambda u, v: u @ v, mode="graph")

    def ours() -> None:
        for _ in range(1000):
            product(x, y)

    contenders: dict[str, Call] = {"dvm": ours}
    if torch := _torch():
        u, v = torch.from_numpy(a), torch.from_numpy(b)
        out = torch.empty(16, 16)

        def theirs() -> None:
            for _ in range(1000):
                torch.mm(u, v, out=out)

        contenders["torch"] = theirs
    return Row("1,000 calls of a 16 x 16 matmul", interleave(contenders, seconds, clock=time.thread_time), aim="≤ 1.0 ms")


def recorded(seconds: float) -> Row:
    """One elementwise op recorded by arrays, and by a graph: of 64 in a row, then thrown away."""
    x, y = dvm.tensor(_normal(8, 64)), dvm.tensor(_normal(8, 64, seed=1))
    a = x.numpy()
    count, add = 64, OP["ADD"]

    @dvm.jit
    def chain(x: Any, y: Any) -> Any:
        for _ in range(count):
            x = x + y
        return x

    def graph() -> None:
        recording = _core.Graph("recorded")
        value = first = recording.input(a.ctypes.data, a.shape, 1)
        record = recording.op
        for _ in range(count):
            value = record(add, (value, first))

    def arrays() -> None:
        z = x
        for _ in range(count):
            z = z + y
        z.numpy()

    contenders = {"dvm": graph, "through arrays, run": arrays, "in a captured call, run": lambda: chain(x, y)}
    return Row("one op recorded (of 64)", _of_one(interleave(contenders, seconds, clock=time.thread_time), count), aim="≤ 130 ns")


def own_tensors(seconds: float) -> Row:
    """x * y + z on three arrays of 64 elements, computed by each call."""
    a, b, c = (_normal(64, seed=i) for i in range(3))
    x, y, z = map(dvm.tensor, (a, b, c))
    fused = dvm.jit(lambda x, y, z: x * y + z, mode="graph")
    # What no call that makes an array goes below: one of the core with one argument, on memory that is there.
    contenders: dict[str, Call] = {"dvm": lambda: fused(x, y, z), "numpy": lambda: a * b + c, "an array made": lambda: _core.array_alias(x)}
    if torch := _torch():
        u, v, w = map(torch.from_numpy, (a, b, c))
        out = torch.empty(64)
        contenders["torch"] = lambda: torch.addcmul(w, u, v, out=out)
    times = interleave(contenders, seconds, clock=time.thread_time)
    return Row("a call on our own tensors, x * y + z of 64 elements", times, aim="≤ 100 ns")


def foreign_arrays(seconds: float) -> list[Row]:
    """The same launch on NumPy arrays and on torch tensors, results as such."""
    a, b, c = (_normal(64, seed=i) for i in range(3))
    fused, tensor = dvm.jit(lambda x, y, z: x * y + z, mode="graph"), dvm.tensor
    contenders: dict[str, Call] = {"dvm": lambda: fused(tensor(a), tensor(b), tensor(c)).numpy(), "numpy": lambda: a * b + c}
    rows = [Row("a cached launch on three NumPy arrays", interleave(contenders, seconds, clock=time.thread_time), aim="≤ 1.5 µs")]
    if torch := _torch():
        u, v, w = map(torch.from_numpy, (a, b, c))
        contenders = {"dvm": lambda: fused(tensor(u), tensor(v), tensor(w)), "torch": lambda: torch.addcmul(w, u, v)}
        rows.append(Row("a cached launch on three torch tensors", interleave(contenders, seconds, clock=time.thread_time), aim="≤ 1.5 µs"))
    return rows


def _formula(x: Any) -> Any:
    return (0.5 * x * (1.0 + (0.7978845608 * (x + 0.044715 * x * x * x)).tanh())).softmax(-1)


def _alternately(contenders: dict[str, Call], seconds: float, clock: Call = time.perf_counter,
                 prepare: dict[str, Call] | None = None) -> tuple[dict[str, float], dict[str, float]]:
    """Medians and means over many short bursts in turn, so that what else the machine does falls on all alike. The one that begins is
    another in every turn. prepare: what is done before a contender's burst, off the clock."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for call in contenders.values():
        call()
    end = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < end or turn < 10:
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            if prepare:
                prepare[name]()
            start = clock()
            contenders[name]()
            samples[name].append(clock() - start)
        turn += 1
    return {n: statistics.median(t) for n, t in samples.items()}, {n: statistics.fmean(t) for n, t in samples.items()}


def second_core(seconds: float, quick: bool) -> Iterator[Sweep]:
    """GELU and softmax of many sizes on all cores against one, alone and beside a process that computes without end. One core takes part a
    second time: what it shows against itself is the machine's noise."""
    function = dvm.jit(_formula, mode="graph")
    for beside in ("", ", beside a busy process"):
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if beside else None
        found: dict[str, tuple[list[Row], list[Row]]] = {"median": ([], []), "mean": ([], [])}
        try:
            for rows in (1, 4, 16, 64, 256, 1024, 4096) if not quick else (4, 256):
                for cols in (100, 512, 768):
                    x = dvm.tensor(_normal(rows, cols))
                    count = max(1, 1_000_000 // (rows * cols))  # a burst is one to two milliseconds: helpers wake within 50 us

                    def run(times: int = count, x: Any = x) -> None:
                        for _ in range(times):
                            function(x)

                    def at(threads: int, run: Call = run) -> Call:
                        def prepare() -> None:
                            _core.set_threads(threads)
                            run(1)
                        return prepare
                    before = {"dvm": at(0), "one core": at(1), "once more": at(1)}
                    told = _alternately(dict.fromkeys(before, run), seconds, prepare=before)
                    for (cells, noise), times in zip(found.values(), told, strict=True):
                        each = _of_one(times, count)
                        again = each.pop("once more")
                        cells.append(Row(f"{rows} x {cols}", each))
                        noise.append(Row(f"{rows} x {cols}", {"dvm": again, "one core": each["one core"]}))
        finally:
            _core.set_threads(0)
            if busy:
                busy.kill()
                busy.wait()
        for what, (cells, noise) in found.items():
            yield Sweep(f"all cores against one{beside}, {what}", cells, aim="never under 0.97")
            yield Sweep(f"one core against itself{beside}, {what}", noise, aim="the noise")


def growth(quick: bool) -> list[Row | Sweep]:
    """Nanoseconds of one core per element from 1 MB to 1 GB, against a copy of as many bytes (the ceiling), and per op from 100 to 10,000
    ops: `dvm` is the largest, the peers the smaller ones."""
    _core.set_threads(1)
    function = dvm.jit(lambda x: (x * 1.5 + 2.0).sqrt(), mode="graph")
    sizes = {"1 MB": 20, "16 MB": 24, "128 MB": 27} | ({} if quick else {"1 GB": 30})
    cells = []
    for name, bits in sizes.items():
        n = 1 << (bits - 2)
        a = np.ones(n, np.float32)
        x, out = dvm.tensor(a), np.ones(n, np.float32)
        contenders: dict[str, Call] = {"dvm": lambda x=x: function(x), "a copy": lambda a=a, out=out: np.copyto(out, a)}
        cells.append(Row(name, _of_one(_alternately(contenders, 0.5, time.thread_time)[0], n)))
        del a, x, out, contenders
    _core.set_threads(0)
    times = {cell.name: cell.times["dvm"] for cell in cells}
    largest = list(times)[-1]
    rows: list[Row | Sweep] = [Row(f"time per element of 3 ops, {largest}", {"dvm": times.pop(largest), **times}, aim="flat"),
                               Sweep("3 ops against a copy of the same bytes", cells, aim="the ceiling above the caches")]
    compiled: dict[str, float] = {}
    for count in (100, 1000, 10_000):
        samples = []
        for repeat in range(3):
            graph = _core.Graph(f"growth {count} {repeat}")
            a = _normal(8, 64)
            value = first = graph.input(a.ctypes.data, a.shape, 1)
            for i in range(count):
                value = graph.op(OP["ADD"] if i % 3 else OP["SUM"], (value, first) if i % 3 else (value,), () if i % 3 else (1, 1))
            start = time.thread_time()
            graph.flush((value,))
            samples.append((time.thread_time() - start) / count)
        compiled[f"{count} ops"] = min(samples)
    rows.append(Row("first flush per op, 10,000 ops", {"dvm": compiled.pop("10000 ops"), **compiled}, aim="linear"))
    return rows


def patched(seconds: float) -> Row:
    """1 % of 100,000 instructions get another shape: patched in place, against a symbol table evaluated and written anew."""
    count = 100_000
    graph = _core.Graph("patched")
    a = _normal(32, 64)
    value = first = graph.input(a.ctypes.data, a.shape, 1)
    add = OP["ADD"]
    for _ in range(count):
        value = graph.op(add, (value, first))
    launch = graph.flush((value,))
    data = bytearray(msbc.dump(launch.program))
    chosen = np.arange(0, count, 100)
    dimensions, values = np.zeros(len(chosen), np.int64), np.full(len(chosen), 48, np.int64)

    def patch() -> None:
        msbc.patch_shapes(data, (chosen, dimensions, values))

    # What a compiler with a symbol table does: every instruction's dimensions are looked up by name and written.
    symbols = {"batch": 48, "width": 64}
    names = ["batch", "width"] * count
    places = np.arange(2 * count) * 4

    def rebuild() -> None:
        made = np.fromiter(map(symbols.__getitem__, names), np.uint32, len(names)).byteswap()
        out = np.zeros(2 * count, np.uint32)
        out[places // 4] = made

    return Row("1 % of 100,000 instructions' shapes in .msbc bytes", interleave({"dvm": patch, "symbol table": rebuild}, seconds),
               aim="≥ 25 ×, ≤ 0.8 ms")


def measured(seconds: float, quick: bool) -> Iterator[Row | Sweep]:
    yield small_matmul(seconds)
    yield recorded(seconds)
    yield own_tensors(seconds)
    yield from foreign_arrays(seconds)
    yield patched(seconds)
    yield from growth(quick)
    yield from second_core(seconds / 4 if quick else 2 * seconds, quick)


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, lambda quick: measured(0.1 if quick else 1.0, quick)))
