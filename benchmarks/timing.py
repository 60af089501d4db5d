"""Interleaved timing: every contender of a row runs in turn, many times, in one process; medians and ratios are what is reported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Row:
    """One line of the table. `times`: seconds per call (median) by contender; `ours`: the contender judged; `aim`: the figure to beat."""

    name: str
    times: dict[str, float] = field(default_factory=dict)
    ours: str = "dvm"
    aim: str = ""

    def ratio(self, peer: str) -> float:
        """How many times faster than that peer we are (above 1: faster)."""
        return self.times[peer] / self.times[self.ours]


def interleave(contenders: dict[str, Callable[[], object]], seconds: float = 2.0, warm: int = 3, rounds: int = 9) -> dict[str, float]:
    """Median seconds per call of each contender.

    Each is warmed up, then timed in `rounds` bursts taken in turn; a burst repeats the call for about seconds / rounds / contenders.
    The order of the contenders is turned round every other time, so that none always follows the same neighbour.
    """
    bursts: dict[str, int] = {}
    for name, call in contenders.items():
        for _ in range(warm):
            call()
        start = time.perf_counter()
        call()
        once = max(time.perf_counter() - start, 1e-7)
        bursts[name] = max(1, int(seconds / rounds / len(contenders) / once))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            call, count = contenders[name], bursts[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            samples[name].append((time.perf_counter() - start) / count)
    return {name: statistics.median(values) for name, values in samples.items()}


def show(seconds: float) -> str:
    """A duration with three significant digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
