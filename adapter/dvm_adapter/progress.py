"""Progress of requests that take long: told from the moment they do, cancellable where they are."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session

PATIENCE = 0.5  # seconds: what is over sooner is not worth a line on the screen
UPDATE = 1.0  # seconds between two lines about the same
# request -> what the person reads
TITLES = {
    "dvm/export": "Exporting", "dvm/memory": "Reading the memory log", "dvm/device": "Switching devices", "dvm/reload": "Reloading",
    "dvm/undoReload": "Undoing the reload", "dvm/tensor": "Fetching a tensor", "dvm/program": "Listing a program",
    "evaluate": "Evaluating", "disassemble": "Disassembling", "variables": "Reading tensors", "readMemory": "Reading memory",
    "setDataBreakpoints": "Looking for what writes the data", "attach": "Attaching",
}
# What most of the time goes by with, where it is not the work itself.
_WAITING = dict.fromkeys(("dvm/reload", "dvm/undoReload"), "new code is built, and waits for the next captured call")
_WAITING["attach"] = "the program lets the debugger in between two of its instructions"
_WAITING["dvm/device"] = "waits for the captured calls that run"


class Progress:
    """One request's: a `progressStart` when it turns out to be long, `progressUpdate`s while it is, a `progressEnd` whenever it is over."""

    def __init__(self, session: Session, command: str, number: int) -> None:
        self._session, self._title, self._number = session, TITLES.get(command), number
        self._words = _WAITING.get(command, "")
        self._begun = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._told = False

    def __enter__(self) -> Progress:
        if self._title and self._session.client_arguments.get("supportsProgressReporting"):
            self._later(PATIENCE, self._start)
        return self

    @property
    def name(self) -> str:
        return f"dvm-{self._number}"

    def _start(self) -> None:
        self._told = True
        self._session.event("progressStart", {"progressId": self.name, "title": self._title, "requestId": self._number,
                                              "cancellable": True, **({"message": self._words} if self._words else {})})
        self._later(UPDATE, self._update)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, work)

    def _update(self) -> None:
        words = f"{self._words}, " if self._words else ""
        self._session.event("progressUpdate", {"progressId": self.name, "message": f"{words}{time.monotonic() - self._begun:.0f} s"})
        self._later(UPDATE, self._update)

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._told:
            self._session.event("progressEnd", {"progressId": self.name})
