"""`dvm run --watch`: what a save does without an editor or adapter. A thread looks for saves of the program's own files, reloads them and
prints every answer. A rank of a job asks all ranks, and who speaks for them prints the answer (agent.together)."""
from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Collection
from pathlib import Path

import dvm_wire
from dvm_wire import watching

from . import agent
from .agent import reload, speaker, together  # noqa: F401 - reload declares commands
from .errors import ArgumentError
from .frontends.notices import notice
from .hotreload import Reloader, turns

_END_WAIT = 5.0  # seconds for the thread to end


class OnSave:
    """Reloads on save between `start` and `stop`. The text on disk at `start` is the one the script runs."""

    def __init__(self, script: Path) -> None:
        if not watching.available():
            raise ArgumentError(f"--watch needs the package {watching.PACKAGE}: pip install {watching.PACKAGE}")
        self._book = agent.remember_sources()
        self._book.remember(str(script))
        self._saves = dvm_wire.Saves()
        self._saves.rest = watching.rest()
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._reloader: Reloader = agent.make_reloader(self._book, agent.tell)
        self._others = together.Others(self._reloader) if speaker.launcher() else None
        self._thread = threading.Thread(target=self._run, name="dvm-watch", daemon=True)

    def start(self) -> None:
        self._look()
        self._thread.start()
        if self._others is not None:
            self._others.join()

    def stop(self) -> None:
        """A thread inside a native library must not be there when the interpreter goes."""
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(_END_WAIT)
        if self._others is not None:
            self._others.stop()

    def _look(self, closed: Collection[str] = ()) -> None:
        with turns.short_turns() if closed else contextlib.nullcontext():
            self._reload(closed)

    def _reload(self, closed: Collection[str]) -> None:
        self._book.scan()
        for path, stamp in self._book.stamps().items():
            self._saves.was(path, stamp)
        self._saves.files = self._book.files()
        for path in self._saves.look(closed):
            if self._others is None:
                self._reloader.reload(path, None, agent.tell, settled=True)
            else:
                self._others.saved(path)

    def _run(self) -> None:
        try:
            with contextlib.closing(self._loop):
                self._loop.run_until_complete(self._watch())
        except Exception as error:  # the program must not end for it, and must not go on unwatched in silence
            notice(f"saves are not looked for any more: {type(error).__name__}: {error}", category="reload")

    async def _watch(self) -> None:
        while not self._ended.is_set():
            watched = dvm_wire.folders(self._saves.files)
            async with contextlib.aclosing(watching.happened(watched, self._ended)) as told:
                async for closed in told:  # also from time to time, for modules imported since and the save that fell between two watches
                    self._look(closed)
                    while self._saves.moving and not self._ended.is_set():
                        await asyncio.sleep(dvm_wire.SETTLED)
                        self._look()
                    if dvm_wire.folders(self._saves.files) != watched:
                        break


def watched(script: Path) -> OnSave | None:
    """Begins to watch. None where a debugger is connected: it has a watcher of its own."""
    if agent.connected():
        notice("--watch is left to the debugger, which reloads on save by itself", category="reload")
        return None
    made = OnSave(Path(os.path.abspath(script)))
    made.start()
    return made
