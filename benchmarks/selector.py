"""The selector on workloads whose shapes change: how often code is ready, and what making it costs, anew and from a near shape.

    python benchmarks/selector.py [--quick]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator

import command
import numpy as np
from timing import Row, Share

import dvm_core as dvm
from dvm_core import _core
from dvm_core.msbc.layout import CODES as OP

WIDTH = 64
BASE = np.random.default_rng(0).standard_normal((512, 512), dtype=np.float32)

# ---- how often code is ready: each workload once through, from a cold table ------------------------------------------------------------


def _cached_step(random: np.random.Generator, count: int) -> Iterator[None]:
    """Tokens one by one, keys and values growing: sequences begin at 16 to 128 tokens and get 32 more."""
    query = dvm.tensor(BASE[:4, None, :WIDTH].copy())

    @dvm.jit
    def decode(keys: dvm.tensor, values: dvm.tensor) -> dvm.tensor:
        return (query.matmul(keys, transpose_b=True) * 0.125).softmax(-1) @ values
    for prompt in random.integers(16, 129, count):
        for length in range(prompt, prompt + 32):
            grown = dvm.tensor(np.broadcast_to(BASE[:length, :WIDTH], (4, length, WIDTH)))
            decode(grown, grown)
            yield


def _ragged(random: np.random.Generator, count: int) -> Iterator[None]:
    """Batches of 16 texts, padded to their longest; lengths as texts have them (log-normal, at most 256)."""
    gain = dvm.tensor(np.ones(WIDTH, np.float32))

    @dvm.jit
    def layer(x: dvm.tensor) -> dvm.tensor:
        return (x * ((x * x).mean(-1, keepdims=True) + 1e-6).rsqrt() * gain).sigmoid() * x
    for _ in range(count):
        longest = int(np.minimum(256, random.lognormal(3.4, 0.5, 16)).max())
        layer(dvm.tensor(np.broadcast_to(BASE[:longest, :WIDTH], (16, longest, WIDTH))))
        yield


def _experts(random: np.random.Generator, count: int) -> Iterator[None]:
    """Eight experts that share 512 rows as a gate deals them out, which differs from step to step."""
    up, down = dvm.tensor(BASE[:WIDTH, :128].copy()), dvm.tensor(BASE[:128, :WIDTH].copy())

    @dvm.jit
    def expert(rows: dvm.tensor) -> dvm.tensor:
        hidden = rows @ up
        return (hidden * hidden.sigmoid()) @ down
    for _ in range(count):
        for rows in random.multinomial(512, random.dirichlet(np.full(8, 20.0))):
            expert(dvm.tensor(BASE[:rows, :WIDTH]))
            yield


WORKLOADS: dict[str, tuple[Callable[[np.random.Generator, int], Iterator[None]], int]] = {
    "decoder with a cache": (_cached_step, 100), "ragged batches": (_ragged, 3000), "experts of mixed lengths": (_experts, 400)}


def shares(quick: bool) -> list[Share]:
    """Launches that found their code, and those that found it or a near shape's."""
    found = []
    for name, (workload, count) in WORKLOADS.items():
        before = _core.stats()
        launches = sum(1 for _ in workload(np.random.default_rng(1), count // 10 if quick else count))
        hits, joined, misses = (_core.stats()[f"selector_{what}"] - before[f"selector_{what}"] for what in ("hits", "clusters", "misses"))
        told = {"ready": hits / (hits + misses), "ready or near": (hits + joined) / (hits + misses)}
        found.append(Share(f"selector, {name}, {launches:,} launches", told, "≥ 92 % ready" if not quick else ""))
    return found


# ---- what a miss costs -----------------------------------------------------------------------------------------------------------------

Body = Callable[[Callable[..., int], int, int], int]


def _chain(op: Callable[..., int], x: int, y: int) -> int:
    for _ in range(6):
        x = op("SUB", op("SIGMOID", op("ADD", op("MUL", x, y), -1, imms=(0.5,))), y)
    return x


def _norm(op: Callable[..., int], x: int, y: int) -> int:
    centred = op("SUB", x, op("MEAN", x, attrs=(1, 1)))
    size = op("ADD", op("MEAN", op("MUL", centred, centred), attrs=(1, 1)), -1, imms=(1e-6,))
    return op("ADD", op("MUL", op("MUL", centred, op("RSQRT", size)), y), y)


def _attention(op: Callable[..., int], x: int, y: int) -> int:
    for _ in range(3):
        scores = op("MUL", op("MATMUL", x, y, attrs=(0, 1)), -1, imms=(0.125,))
        e = op("EXP", op("SUB", scores, op("MAX", scores, attrs=(1, 1))))
        mixed = op("MATMUL", op("DIV", e, op("SUM", e, attrs=(1, 1))), y, attrs=(0, 0))
        x = _norm(op, op("ADD", x, mixed), x)
    return x


def _made_in(body: Body, name: str, rows: int, cols: int) -> float:
    """Seconds of fusing, tiling and encoding in a flush."""
    def spent() -> float:
        times = _core.stats()["functions"][name]["time_us"]
        return (times["fuse"] + times["tile"] + times["encode"]) * 1e-6
    graph = _core.Graph(name)

    def op(code: str, *operands: int, **rest: object) -> int:
        return graph.op(OP[code], operands, **rest)
    x, y = (graph.input(a.ctypes.data, a.shape, 1, (512, 1), a) for a in (BASE[:rows, :cols], BASE[:rows, 200:200 + cols]))
    out = body(op, x, y)
    before = spent()
    graph.flush(keep=[out])
    return spent() - before


def miss(name: str, body: Body, shapes: list[tuple[int, int]]) -> Row:
    """Medians over shapes, each made with the code of a near shape and with its own, in turn, by two programs that are the same."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for turn, (rows, cols) in enumerate(shapes):
        for near in (True, False) if turn % 2 else (False, True):
            _core.set_clusters(near)
            times[near].append(_made_in(body, f"{name} {near}", rows, cols))
    _core.set_clusters(True)
    return Row(f"selector, a miss: {name}", {"dvm": statistics.median(times[True]), "compiled anew": statistics.median(times[False])})


def misses(quick: bool) -> list[Row]:
    shapes = [(m, n) for m in range(3, 43) for n in range(33, 37 if quick else 53)]
    return [miss("24 instructions, one area", _chain, shapes), miss("normalisation", _norm, shapes),
            miss("three layers of attention", _attention, [(m, 64) for m in range(40, 80 if quick else 240)])]


def measured(quick: bool) -> list[Row | Share]:
    return [*shares(quick), *misses(quick)]


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, measured))
