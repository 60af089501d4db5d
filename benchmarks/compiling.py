"""Rows about compiling: what it takes from a program to runnable code, for areas of 20 ops and for the programs the tests draw.

    python benchmarks/compiling.py [--quick]
"""

from __future__ import annotations

import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command
import numpy as np
from timing import Row

from dvm_core import _core
from dvm_core.msbc.layout import CODES as OP

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"
OPS = 20
UNARY = ("SIGMOID", "TANH", "EXP", "NEG", "ABS", "ERF")
BINARY = ("ADD", "SUB", "MUL", "MAXIMUM")


def _median_ns(program: Any, repeats: int = 9) -> float:
    return statistics.median(program.compile_ns() for _ in range(repeats))


def _area(random: random.Random, number: int) -> Any:
    """A program of 20 ops in one area: unary and binary ones, at times a row's sum in between; its one launch."""
    rows, cols = random.randint(2, 200), random.randint(8, 600)
    graph = _core.Graph(f"20 ops, {number}")
    data = np.ones((rows, cols), np.float32)
    x, y = (graph.input(data.ctypes.data, data.shape, 1, (cols, 1), data) for _ in range(2))
    value, sums = x, 0
    for i in range(OPS):
        if i in (6, 13) and random.random() < 0.4:
            value, sums = graph.op(OP["SUB"], (value, graph.op(OP["SUM"], (value,), (1, 1)))), sums + 1
        elif random.random() < 0.3:
            value = graph.op(OP[random.choice(UNARY)], (value,))
        else:
            value = graph.op(OP[random.choice(BINARY)], (value, random.choice((x, y))))
        if i + 1 + sums == OPS:
            break
    return graph.flush(keep=[value]).program


def areas(count: int) -> Row:
    made = [_area(random.Random(seed), seed) for seed in range(count)]
    assert all(len(p.instructions) == OPS and len(p.fused_areas()) == 1 for p in made)
    times = sorted(_median_ns(p) for p in made)
    row = Row(f"compiling {OPS} ops in one area, the middle of {count} programs", {"dvm": times[len(times) // 2] * 1e-9,
              "the slowest": times[-1] * 1e-9}, aim="≤ 5 µs")
    if importlib.util.find_spec("torch"):
        row.times["torch.compile's first call"] = _inductor()
    return row


def _inductor() -> float:
    """Seconds of the first call of as many ops, compiled with dynamic shapes, without code an earlier process left on the disk. A first
    compile of something else, which imports the compiler and starts its workers, is not counted."""
    import torch
    import torch._inductor.config as settings

    settings.force_disable_caches = True

    def body(x: Any, y: Any) -> Any:
        for _ in range(OPS // 4):
            x = torch.sigmoid(x * y + 0.5) - y
        return x
    x = torch.ones(64, 100)
    torch.compile(lambda x: x + 1, dynamic=True)(x)
    start = time.perf_counter()
    torch.compile(body, dynamic=True)(x, x)
    return time.perf_counter() - start


def drawn(count: int) -> Row:
    """The random programs of the tests: every class of op, odd shapes, one to forty instructions, some of which make no area."""
    sys.path.insert(0, str(TESTS))
    try:
        from core_programs import run
        from random_programs import random_program
    finally:
        sys.path.remove(str(TESTS))
    found = []
    with np.errstate(all="ignore"):
        for seed in range(count):
            program = random_program(seed)
            last, some = len(program.inputs) + len(program.steps) - 1, random.Random(seed)
            _, launches = run(program, sorted({last, *(some.randrange(len(program.inputs), last + 1) for _ in range(2))}))
            made = launches[-1].program
            found.append((_median_ns(made), len(made.instructions), len(made.fused_areas())))
    found.sort()
    slowest, instructions, parts = found[-1]
    return Row(f"compiling the {count} programs the tests draw, the slowest ({instructions} instructions in {parts} areas)",
               {"dvm": slowest * 1e-9, "the middle one": found[len(found) // 2][0] * 1e-9}, aim="≤ 50 µs")


def measured(quick: bool) -> Iterator[Row]:
    yield areas(20 if quick else 200)
    yield drawn(50 if quick else 300)


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, measured))
