"""Interleaved timing: every contender of a row runs in turn, many times, in one process; medians and ratios are what is reported."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Row:
    """One line of the table. `times`: seconds per call (median) by contender, or how many of another `unit`, the fewer the better; `ours`:
    the contender judged; `aim`: the figure to beat."""

    name: str
    times: dict[str, float] = field(default_factory=dict)
    ours: str = "dvm"
    aim: str = ""
    unit: str = "s"

    def ratio(self, peer: str) -> float:
        """How many times faster than that peer we are (above 1: faster)."""
        ours, theirs = self.times[self.ours], self.times[peer]
        return theirs / ours if ours else math.inf if theirs else 1.0

    def shown(self, name: str) -> str:
        """A contender's figure as text."""
        return show(self.times[name]) if self.unit == "s" else f"{self.times[name]:.4g} {self.unit}"


@dataclass(frozen=True)
class Share:
    """A line of the table that is no time: `shares` of 1 by what they are of; the first is the one judged."""

    name: str
    shares: dict[str, float]
    aim: str = ""


@dataclass(frozen=True)
class Summary:
    """Ratios over many shapes in one line. `won`: share of shapes where ours is as fast; `worst`: the lowest ratio, at `worst_at`."""

    shapes: int
    geomean: float
    won: float
    worst: float
    worst_at: str


def summarize(ratios: Mapping[str, float]) -> Summary:
    """Geometric mean, share won and worst of ratios (peer's time / ours) by shape."""
    worst_at = min(ratios, key=ratios.__getitem__)
    geomean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
    return Summary(len(ratios), geomean, sum(r >= 1 for r in ratios.values()) / len(ratios), ratios[worst_at], worst_at)


@dataclass
class Sweep:
    """One row of the table over many shapes, a cell each; `aim`: the figures to reach."""

    name: str
    cells: list[Row] = field(default_factory=list)
    aim: str = ""

    def compared(self) -> list[Row]:
        """Cells that have a peer: none where no peer is installed."""
        return [c for c in self.cells if len(c.times) > 1]

    def peers(self) -> list[str]:
        """Contenders that appear in every cell, ours left out."""
        return [p for p in self.cells[0].times if p != self.cells[0].ours and all(p in c.times for c in self.cells)]

    def against(self, peer: str | None = None) -> Summary:
        """Compared with one peer, or (None) with the best peer of each shape that has one."""
        def ratio(cell: Row) -> float:
            return cell.ratio(peer) if peer else min(cell.ratio(p) for p in cell.times if p != cell.ours)
        return summarize({cell.name: ratio(cell) for cell in self.compared()})


def interleave(
    contenders: dict[str, Callable[[], object]],
    seconds: float = 2.0,
    warm: int = 3,
    rounds: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds per call of each contender.

    clock: time.thread_time leaves other processes out of it, for contenders that compute on the calling thread alone.

    Each is warmed up, then timed in `rounds` bursts taken in turn; a burst repeats the call for about seconds / rounds / contenders.
    The order of the contenders is turned round every other time, so that none always follows the same neighbour.
    """
    bursts: dict[str, int] = {}
    for name, call in contenders.items():
        for _ in range(warm):
            call()
        start = clock()
        call()
        once = max(clock() - start, 1e-7)
        bursts[name] = max(1, int(seconds / rounds / len(contenders) / once))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            call, count = contenders[name], bursts[name]
            start = clock()
            for _ in range(count):
                call()
            samples[name].append((clock() - start) / count)
    return {name: statistics.median(values) for name, values in samples.items()}


def show(seconds: float) -> str:
    """A duration with three significant digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
