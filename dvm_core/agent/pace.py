"""What the commands that ranks take an edit by need of who serves them."""
from __future__ import annotations

import time
from typing import Protocol

from ..frontends import reloadable
from ..hotreload import Pact, Reloader
from .connection import Connection

_RATED = 0.2  # seconds over which the pace is taken


class Pace:
    """How many steps a second the program makes, lately."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._since, self._step = 0.0, 0

    @property
    def step(self) -> int:
        return reloadable.step()

    def look(self) -> None:
        """To be called now and then."""
        now = time.monotonic()
        if now - self._since >= _RATED:
            self.rate = (self.step - self._step) / (now - self._since)
            self._since, self._step = now, self.step


class Reloading(Protocol):
    """A session, or a rank under `dvm run --watch` (together.Spoken)."""

    connection: Connection
    reloader: Reloader
    pacts: dict[str, Pact]
    pace: Pace
