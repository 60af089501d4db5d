"""Hooks in programs that the core may have forgotten meanwhile: it keeps only the newest thousands."""
from __future__ import annotations

import contextlib
import time

from .. import _core

_AT_ONCE = 8  # changes that are made as they come
_AGAIN = 0.2  # seconds after which one more is
Hook = tuple[int, int, int, int, int, int, bool]  # program, instruction, kind, hook, every, limit, joint: as the core has them


class Changes:
    """Hooks on their way into programs, which are compiled anew for each other set of them: a few changes are made as they come; of many,
    those that come within a moment are made as one. By one thread at a time: what is set and taken out keeps its order."""

    def __init__(self) -> None:
        self._in: list[Hook] = []
        self._out: list[tuple[int, int, int, int]] = []
        self._left, self._looked = float(_AT_ONCE), time.monotonic()

    def queue(self, hooks: list[Hook]) -> None:
        """With the next `set` or `make`."""
        self._in += hooks

    def set(self, hooks: list[Hook]) -> None:
        self.queue(hooks)
        now = time.monotonic()
        self._left, self._looked = min(_AT_ONCE, self._left + (now - self._looked) / _AGAIN), now
        if self._in and self._left >= 1:
            self._left -= 1
            self.make()

    def clear(self, hooks: list[Hook]) -> None:
        """With the next `make`."""
        gone = {hook[:4] for hook in hooks}
        self._in = [hook for hook in self._in if hook[:4] not in gone]
        self._out += gone

    def make(self) -> None:
        if self._in or self._out:
            out, self._out = self._out, []
            hooks, self._in = self._in, []
            _core.change_hooks(out, hooks)


def clear_hook(program: int, instruction: int, kind: int, hook: int) -> None:
    """Takes a hook out; of a program that the core has forgotten, there is nothing to take out."""
    with contextlib.suppress(_core.Error):
        _core.clear_hook(program, instruction, kind, hook)


def program_name(number: int) -> str | None:
    """None for a program that the core has forgotten."""
    try:
        return str(_core.program(number).name)
    except _core.Error:
        return None
