"""`dvm run --watch`: what a save does without an editor or adapter. A thread looks for saves of the program's own files, reloads them and
prints every answer."""
from __future__ import annotations

import os
import threading
from pathlib import Path

import dvm_wire

from . import _core, _library_prefixes
from .errors import ArgumentError
from .frontends import capture, reloadable
from .frontends.notices import notice
from .hotreload import Host, Reloader, Report, SourceBook

_STEP = 20  # milliseconds between the library's looks at its events; each takes the GIL for a moment
_END_WAIT = 5.0  # seconds for the thread to end


class OnSave:
    """Reloads on save between `start` and `stop`. The text on disk at `start` is the one the script runs."""

    def __init__(self, script: Path) -> None:
        try:
            import watchfiles
        except ImportError:
            raise ArgumentError("--watch needs the package watchfiles: pip install watchfiles") from None
        self._watch = watchfiles.watch
        self._book = SourceBook(tuple(_library_prefixes()))
        self._book.remember(str(script))
        self._saves = dvm_wire.Saves()
        self._ended = threading.Event()
        host = Host(reloadable, _core.programs, step=reloadable.step, capturing=lambda: bool(capture.captures()), settle=dvm_wire.settle)
        self._reloader = Reloader(self._book, host, _tell)
        self._thread = threading.Thread(target=self._run, name="dvm-watch", daemon=True)

    def start(self) -> None:
        self._look()
        self._thread.start()

    def stop(self) -> None:
        """A thread inside a native library must not be there when the interpreter goes."""
        self._ended.set()
        self._thread.join(_END_WAIT)

    def _look(self) -> None:
        self._book.scan()
        self._saves.files = self._book.files()
        for path in self._saves.look():
            self._reloader.reload(path, None, _tell)

    def _run(self) -> None:
        try:
            while not self._ended.wait(dvm_wire.SETTLED):
                watched = dvm_wire.folders(self._saves.files)
                # A timeout looks as well, for modules imported since and the save that fell between two watches.
                for _ in self._watch(*watched, recursive=False, debounce=50, step=_STEP, stop_event=self._ended,
                                     rust_timeout=dvm_wire.LOOK_ANYWAY, yield_on_timeout=True, raise_interrupt=False):
                    self._look()
                    while self._saves.moving and not self._ended.wait(dvm_wire.SETTLED):
                        self._look()
                    if dvm_wire.folders(self._saves.files) != watched:
                        break
        except Exception as error:  # the program must not end for it, and must not go on unwatched in silence
            notice(f"saves are not looked for any more: {type(error).__name__}: {error}", category="reload")


def _tell(report: Report) -> None:
    notice(dvm_wire.outcome(report.message()), category="reload")


def watched(script: Path) -> OnSave | None:
    """Begins to watch. None where a debugger is connected: it has a watcher of its own."""
    from . import agent

    if agent.connected():
        notice("--watch is left to the debugger, which reloads on save by itself", category="reload")
        return None
    made = OnSave(Path(os.path.abspath(script)))
    made.start()
    return made
