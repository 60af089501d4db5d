"""How far and how fast a rank is: what the commands need by which ranks take an edit."""
from __future__ import annotations

import time
from typing import Any, Protocol

from ..frontends import reloadable
from ..hotreload import Pact, Reloader
from .connection import Connection

_RATED = 0.2  # seconds over which the pace is taken
_MOST = 100  # captured functions that are told of, the most called


class Pace:
    """How many captured calls the program makes, and has made lately."""

    def __init__(self) -> None:
        self._rate = 0.0
        self._since, self._step = 0.0, 0
        self._looked = False
        self._calls: dict[str, tuple[int, float]] = {}  # by captured function, when they were first seen to be so many, 0 if not since

    def look(self) -> None:
        """To be called now and then."""
        now = time.monotonic()
        if now - self._since >= _RATED:
            step = reloadable.step()
            self._rate = (step - self._step) / (now - self._since)
            self._since, self._step = now, step
            self._seen(now)

    def _seen(self, now: float) -> dict[str, tuple[int, float]]:
        for name, count in reloadable.calls().items():
            if self._calls.get(name, (0, now))[0] != count:
                self._calls[name] = count, now if self._looked else 0.0
        self._looked = True
        return self._calls

    def message(self) -> dict[str, Any]:
        """step; rate: steps a second; calls: by captured function [calls so far, seconds since the last one, -1 if that is not known]."""
        now = time.monotonic()
        most = sorted(self._seen(now).items(), key=lambda entry: -entry[1][0])[:_MOST]
        calls = {name: [count, now - since if since else -1] for name, (count, since) in most}
        return {"step": reloadable.step(), "rate": self._rate, "calls": calls}


class Reloading(Protocol):
    """A session, or a rank under `dvm run --watch` (together.Spoken)."""

    connection: Connection
    reloader: Reloader
    pacts: dict[str, Pact]
    pace: Pace
