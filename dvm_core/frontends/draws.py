"""Numbers Python code draws while it is traced: a replay would have those of the trace for good.

Seen are draws from `random`'s and NumPy's own generators and from those the function reads from outside its arguments, by their state
before and after. `os.urandom`, the clock and a generator made inside leave nothing that could be looked at.
"""
from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .guards import Guard

DREW = "it draws random numbers in Python, from {}: the trace would keep the first ones"


def _numpy_state() -> Any:
    generator = getattr(sys.modules.get("numpy.random"), "mtrand", None)
    if generator is None:
        return None
    kind, keys, *rest = generator._rand.get_state(legacy=True)
    return kind, keys.tobytes(), rest


def _reader(value: Any) -> Callable[[], Any] | None:
    # How the state of a generator is read; None: it is none.
    if isinstance(value, random.Random):
        return value.getstate
    if type(value).__module__.startswith("numpy.random") and hasattr(value, "bit_generator"):
        return lambda: repr(value.bit_generator.state)
    if type(value).__module__.startswith("numpy.random") and hasattr(value, "get_state"):
        return lambda: repr(value.get_state())
    return None


_STATES: dict[str, Callable[[], Any]] = {"random": random.getstate, "np.random": _numpy_state}


class Draws:
    """Whether anything is drawn from now on. read: what the function reads from outside its arguments."""

    def __init__(self, read: Sequence[Guard]) -> None:
        own = {guard.label: state for guard in read if (state := _reader(guard.value)) is not None}
        self.states = {**_STATES, **own}
        self.before = {name: state() for name, state in self.states.items()}

    def why(self) -> str:
        """Why a trace made since then cannot be replayed; "" if nothing was drawn."""
        drawn = [name for name, state in self.states.items() if state() != self.before[name]]
        return DREW.format(" and ".join(drawn)) if drawn else ""
