"""What the front ends notice of captured functions besides what the core counts (`dvm.stats()["functions"]`). For advice."""
from __future__ import annotations

import collections
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
timed = False  # whether ops that the framework runs are timed (`dvm doctor --coverage`)

_FUNCTIONS = 1024  # told apart; names may be without end


@dataclass
class Observed:
    """Of the functions of one name. Times are in microseconds, of sampled calls (`dvm run --advise`)."""

    fallbacks: collections.Counter[str] = field(default_factory=collections.Counter)  # op -> times the framework ran it
    seconds: collections.Counter[str] = field(default_factory=collections.Counter)  # op -> in those, while they are timed
    recordings: int = 0  # calls whose Python body ran
    operations: int = 0  # of the framework, in those
    traces: int = 0  # of graph mode
    untraceable: str = ""  # why the last recording cannot be done again without its body
    changes: bool = False  # a tensor from outside was changed in place
    gradients: bool = False  # one was wanted
    calls: int = 0
    captured: list[float] = field(default_factory=list)
    native: list[float] = field(default_factory=list)
    uncompared: str = ""  # why no call was made by the framework


    def elsewhere(self, op: str, run: Callable[[], T]) -> T:
        """Runs an op by the framework, and times it if that is asked for."""
        if not timed:
            return run()
        start = time.perf_counter()
        try:
            return run()
        finally:
            self.seconds[op] += time.perf_counter() - start  # type: ignore[assignment]


_functions: dict[str, Observed] = {}


def of(name: str) -> Observed:
    """The entry of a function; one for all that come after the first thousand names."""
    found = _functions.get(name)
    if found is None:
        found = _functions.setdefault(name if len(_functions) < _FUNCTIONS else "(other functions)", Observed())
    return found


def functions() -> dict[str, Observed]:
    """All entries by name (a copy of the list)."""
    return dict(_functions)
