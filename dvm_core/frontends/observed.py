"""What the front ends notice of captured functions besides what the core counts (`dvm.stats()["functions"]`). For advice."""
from __future__ import annotations

import collections
from dataclasses import dataclass, field

_FUNCTIONS = 1024  # told apart; names may be without end


@dataclass
class Observed:
    """Of the functions of one name. Times are in microseconds, of sampled calls (`dvm run --advise`)."""

    fallbacks: collections.Counter[str] = field(default_factory=collections.Counter)  # op -> times the framework ran it
    recordings: int = 0  # calls whose Python body ran
    operations: int = 0  # of the framework, in those
    traces: int = 0  # of graph mode
    untraceable: str = ""  # why the last recording cannot be done again without its body
    gradients: bool = False  # one was wanted
    calls: int = 0
    captured: list[float] = field(default_factory=list)
    native: list[float] = field(default_factory=list)
    uncompared: str = ""  # why no call was made by the framework


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
