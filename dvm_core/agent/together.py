"""A rank under `dvm run --watch`: saves go to all ranks of its job at the same step, or to none."""
from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from dvm_wire.ranks import rank_of, size_of

from .. import agent
from ..frontends.notices import notice
from ..hotreload import REFUSED, Pact, Reloader, Report
from . import commands, speaker
from .connection import Connection, hidden_thread
from .pace import Pace

_SERVED = ("prepare", "pace", "arm", "decide", "undoReload")  # of the agent's commands
_JOINS = 5.0  # seconds that a request waits for the other ranks to be joined
_RETURNS = 5  # how often the ranks are joined anew without a save in between
_ALONE = "run the ranks under `dvm run --watch`, or debug the program that starts them"
_DEBUGGED = "the debugger of the program that started them brings saved files into all of them"
_JOINING = "the others are being looked for: try again"
_GONE = {"ok": False, "gone": True, "error": "the process that takes edits to all ranks has ended: try again"}

Answer = dict[str, Any]
Reply = Callable[[Answer], None]


def ask_all(path: str | None, undo: bool, reply: Reply) -> bool:
    """Whether this process takes no edit by itself: reply then gets what came of it in all ranks, on any thread."""
    if not speaker.launcher():
        return False
    spoken = _others.joined(_JOINS) if _others is not None else None
    if spoken is None:
        how = _JOINING if _others is not None else _DEBUGGED if agent.connected() else _ALONE
        why = f"this is rank {rank_of()} of {size_of()}, and all ranks take an edit, or none does: {how}"
        reply(Report(REFUSED, path or "", reasons=[why]).message())
        return True

    def answered(answer: Answer) -> None:
        body = answer.get("body")
        why = str(answer.get("error") or "this rank has left its job")
        reply(body if isinstance(body, dict) else Report(REFUSED, path or "", reasons=[why]).message())

    spoken.ask("undo" if undo else "reload", answered, path=path or "")
    return True


class Spoken:
    """One connection to the speaker; what the commands of a reload need of a session (pace.Reloading)."""

    def __init__(self, connection: Connection, reloader: Reloader, gone: Callable[[], None]) -> None:
        self.connection, self.reloader = connection, reloader
        self.pacts: dict[str, Pact] = {}
        self.pace = Pace()
        self._asked: dict[int, Reply] = {}
        self._last = 0
        self._lock = threading.Lock()
        self._told_gone = gone
        connection.on_message, connection.on_tick, connection.on_gone = self.heard, self.pace.look, self._gone

    @property
    def gone(self) -> bool:
        return self.connection.closed

    def ask(self, command: str, reply: Reply, **arguments: Any) -> None:
        """`saved`, `reload` or `undo`, with a path. reply(answer): with `gone` if the speaker has ended."""
        with self._lock:
            self._last += 1
            number, self._asked[self._last] = self._last, reply
        self.connection.send({**arguments, "id": number, "cmd": command})
        if self.gone:
            self._answered({"re": number, **_GONE})

    def heard(self, message: Answer) -> None:
        """A frame of the speaker's."""
        if message.get("cmd") in _SERVED:
            commands.run(self, message, self.connection.send)
        elif isinstance(message.get("re"), int):
            self._answered(message)
        elif message.get("ev") == "said":
            notice(str(message.get("text")), category="reload")

    def _answered(self, message: Answer) -> None:
        with self._lock:
            reply = self._asked.pop(message["re"], None)
        if reply is not None:
            reply(message)

    def _gone(self) -> None:
        for pact in list(self.pacts.values()):
            pact.decide(False, "the process that takes edits to all ranks has ended")
        for number in list(self._asked):
            self._answered({"re": number, **_GONE})
        self._told_gone()


class Others:
    """The other ranks, as a rank sees them that takes saves to them; joined beside the program, and anew when the connection was lost."""

    def __init__(self, reloader: Reloader) -> None:
        global _others
        self._reloader = reloader
        self._saved: dict[str, None] = {}  # what waits until they are joined
        self._spoken: Spoken | None = None
        self._returns = 0  # how often they were joined anew since the last save
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        _others = self

    def saved(self, path: str) -> None:
        """Tells of a save, now or when they are joined. That they cannot be is told to the user."""
        with self._lock:
            self._saved[path] = None
            self._returns = 0
        self.join()

    def join(self) -> None:
        """Begins to, unless that is done or being done."""
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = hidden_thread(self._run, "dvm-join")
                self._thread.start()

    def joined(self, patience: float) -> Spoken | None:
        """The connection, None if there is none within so many seconds."""
        end = time.monotonic() + patience
        while (found := self._spoken) is None or found.gone:
            if time.monotonic() > end or self._ended.is_set():
                return None
            self.join()
            time.sleep(0.02)
        return found

    def stop(self) -> None:
        self._ended.set()
        if self._spoken is not None:
            self._spoken.connection.close()

    def forked(self) -> None:
        """In a child: the connection is the parent's, and ends with it."""
        if self._spoken is not None:
            self._spoken.connection.abandon()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._join()
            except speaker.Unjoined as error:
                self._refuse(str(error))
            except Exception as error:  # saves must not be passed over in silence
                self._refuse(f"{type(error).__name__}: {error}")
            with self._lock:
                if not self._saved:
                    self._thread = None
                    return

    def _join(self) -> None:
        spoken = self._spoken
        if spoken is None or spoken.gone:
            connection, heard = speaker.enter(self._ended)
            spoken = self._spoken = Spoken(connection, self._reloader, self._parted)
            for message in heard:
                spoken.heard(message)
            connection.start()
            if self._ended.is_set():
                connection.close()
        for path in self._take():
            spoken.ask("saved", functools.partial(self._answered, path), path=path)

    def _answered(self, path: str, answer: Answer) -> None:
        if answer.get("gone"):
            with self._lock:
                self._saved[path] = None  # to who comes next; what was done before is done
        elif not answer.get("ok") and not self._ended.is_set():
            notice(f"{os.path.basename(path)} refused: {answer.get('error')}", category="reload")

    def _take(self) -> list[str]:
        with self._lock:
            taken, self._saved = list(self._saved), {}
        return taken

    def _refuse(self, why: str) -> None:
        for path in self._take() or [""]:
            if not self._ended.is_set():
                notice(f"{os.path.basename(path)} refused: {why}" if path else f"saves will be refused: {why}", category="reload")

    def _parted(self) -> None:
        if self._ended.is_set():
            return
        with self._lock:
            self._returns += 1
            again = self._returns <= _RETURNS
        notice(f"the process that takes edits to all ranks has ended; {'another is' if again else 'the next save has another'} started",
               category="reload")
        if again:
            self.join()


_others: Others | None = None  # of a rank under the watch


def _after_fork() -> None:
    global _others
    left, _others = _others, None
    if left is not None:
        left.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
