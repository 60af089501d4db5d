"""Capture "all": a standing capture of every instruction of every program, one launch in so many."""
from __future__ import annotations

import contextlib
import threading
from typing import Any

from .. import _core
from . import naming
from .commands import Answer
from .hooks import clear_hook
from .places import place
from .watches import wire_snapshot


class Sampling:
    """One hook number for all instructions; off until `start`. The adapter knows its snapshots by their having no watch."""

    def __init__(self, hook: int) -> None:
        self._hook = hook
        self._wanted: tuple[int, int] | None = None  # (every n-th launch, bytes of a value)
        # Programs are made on capturing threads while the agent's thread switches: none may be hooked after it was switched off.
        self.lock = threading.Lock()
        self._hooked: dict[int, int] = {}  # program -> its instructions

    def start(self, every: int, limit: int) -> None:
        """In force for all programs from their next launch. The same again changes nothing: the count of launches goes on."""
        if self._wanted == (every, limit):
            return
        self.stop()
        with self.lock:
            self._wanted = every, limit
        for program in _core.programs():
            self.new_program(program)

    def stop(self) -> None:
        with self.lock:
            self._wanted = None
            for program, count in self._hooked.items():
                for index in range(count):
                    clear_hook(program, index, _core.HOOK_CAPTURE, self._hook)
            self._hooked.clear()

    def new_program(self, program: Any) -> None:
        """On the capturing thread, before the program's first launch."""
        with self.lock:
            if self._wanted is None or program.id in self._hooked:
                return
            every, limit = self._wanted
            self._hooked[program.id] = count = len(program.instructions)
            for index in range(count):
                _core.set_hook(program.id, index, _core.HOOK_CAPTURE, self._hook, every, limit)

    def snapshot(self, event: dict[str, Any]) -> Answer | None:
        """The wire's `snapshot` for an event of the core, None if it is another hook's or sampling has ended."""
        if event["hook"] != self._hook or self._wanted is None:
            return None
        index, name, backward = event["instruction"], "", False
        with contextlib.suppress(_core.Error):  # the core may have forgotten the program since; the bytes are still good
            program = _core.program(event["program"])
            name = naming.of_program(program).get(index, "")
            backward = place(program.instructions[index].place).backward
        return wire_snapshot(event, None, name or naming.number(index, 0), backward)
