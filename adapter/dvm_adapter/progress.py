"""Progress of requests that take long: told from the moment they do, cancellable where they are."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session

PATIENCE = 0.5  # seconds: what is over sooner is not worth a line on the screen
# request -> what the person reads
TITLES = {
    "dvm/export": "Exporting", "dvm/memory": "Reading the memory log", "dvm/device": "Switching devices", "dvm/reload": "Reloading",
    "dvm/undoReload": "Undoing the reload", "dvm/tensor": "Fetching a tensor", "dvm/program": "Listing a program",
    "evaluate": "Evaluating", "disassemble": "Disassembling", "variables": "Reading tensors", "readMemory": "Reading memory",
    "setDataBreakpoints": "Looking for what writes the data",
}


class Progress:
    """One request's: a `progressStart` when it turns out to be long, a `progressEnd` whenever it is over."""

    def __init__(self, session: Session, command: str, number: int) -> None:
        self._session, self._title, self._number = session, TITLES.get(command), number
        self._timer: asyncio.TimerHandle | None = None
        self._told = False

    def __enter__(self) -> Progress:
        if self._title and self._session.client_arguments.get("supportsProgressReporting"):
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._start)
        return self

    @property
    def name(self) -> str:
        return f"dvm-{self._number}"

    def _start(self) -> None:
        self._told = True
        self._session.event("progressStart", {"progressId": self.name, "title": self._title, "requestId": self._number,
                                              "cancellable": True})

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._told:
            self._session.event("progressEnd", {"progressId": self.name})
