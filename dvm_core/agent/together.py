"""A rank under `dvm run --watch`, and how it finds the others: saves go to all ranks of the job at the same step, or to none.

Rank 0 starts the process that speaks for the job (dvm_adapter.together), and leaves its address and token beside the doors, in a file that
only this user can read. It is named after the process that started the ranks."""
from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import dvm_wire
from dvm_wire import doors
from dvm_wire.ranks import rank_of, size_of

from .. import agent
from ..errors import Error
from ..frontends import reloadable
from ..frontends.notices import notice
from ..hotreload import REFUSED, Pact, Reloader, Report
from . import commands
from .connection import Connection, hidden_thread

FIND = 60.0  # seconds for rank 0 to have left the address
_BEGIN = 20.0  # seconds for the process that speaks for the job to listen
_WELCOME = 5.0  # seconds for it to answer
_LOOK = 0.1
_MOST_SAID = 1 << 16  # bytes of its complaint
_RATED = 0.2  # seconds over which the pace is taken
_SERVED = ("prepare", "arm", "decide", "undoReload")  # of the agent's commands
_MODULE = "dvm_adapter.together"
_GONE = {"ok": False, "gone": True, "error": "what speaks for the ranks has ended: try again"}
_ALONE = "run the ranks under `dvm run --watch`, or debug the program that starts them"
_DEBUGGED = "the debugger of the program that started them brings saved files into all of them"

Answer = dict[str, Any]


class Unjoined(Error):
    """The other ranks cannot be spoken to; the text says why."""


def ranks() -> int:
    """How many ranks this process's job has, 0 in one that is no rank among several. A rank's own children have its environment, too."""
    size, rank = size_of() or 0, rank_of()
    return size if rank is not None and size > 1 and rank_of(doors.environment_of(os.getppid())) != rank else 0


def current() -> Together | None:
    """The connection that this rank has, if it has one."""
    return _current if _current is not None and not _current.gone else None


def ask_all(path: str | None, undo: bool, reply: Callable[[Answer], None]) -> bool:
    """Whether this process takes no edit by itself: reply then gets what came of it in all ranks."""
    size = ranks()
    if not size:
        return False
    spoken = current()
    if spoken is None:
        how = _DEBUGGED if agent.connected() else _ALONE
        why = f"this is rank {rank_of()} of {size}, and all ranks take an edit, or none does: {how}"
        reply(Report(REFUSED, path or "", reasons=[why]).message())
        return True

    def answered(answer: Answer) -> None:
        body = answer.get("body")
        reply(body if isinstance(body, dict) else Report(REFUSED, path or "", reasons=[str(answer.get("error"))]).message())

    spoken.ask("undo" if undo else "reload", answered, path=path or "")
    return True


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
    """What the commands that ranks take an edit by need: a session has it, and a rank under `dvm run --watch`."""

    connection: Connection
    reloader: Reloader
    pacts: dict[str, Pact]
    pace: Pace


_current: Together | None = None
_process: subprocess.Popen[bytes] | None = None  # who speaks for the job, where this rank has started it


class Together:
    """One connection to who speaks for the job; what the commands of a reload need of a session (Reloading)."""

    def __init__(self, connection: Connection, reloader: Reloader, gone: Callable[[], None]) -> None:
        self.connection, self.reloader = connection, reloader
        self.pacts: dict[str, Pact] = {}
        self.pace = Pace()
        self._asked: dict[int, Callable[[Answer], None]] = {}
        self._last = 0
        self._lock = threading.Lock()
        self._told_gone = gone
        connection.on_message, connection.on_tick, connection.on_gone = self._heard, self.pace.look, self._gone

    @property
    def gone(self) -> bool:
        return self.connection.closed

    def ask(self, command: str, reply: Callable[[Answer], None] = lambda answer: None, **arguments: Any) -> None:
        """`saved`, `reload` or `undo`, with a path. reply(answer): on the connection's thread, with `ok` false if it has gone."""
        with self._lock:
            self._last += 1
            number, self._asked[self._last] = self._last, reply
        if self.gone:
            self._answered({"re": number, **_GONE})
        else:
            self.connection.send({**arguments, "id": number, "cmd": command})

    def _heard(self, message: Answer) -> None:
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
            pact.decide(False, "who speaks for the ranks has gone")
        for number in list(self._asked):
            self._answered({"re": number, **_GONE})
        self._told_gone()


def _after_fork() -> None:
    """The connection is the parent's, and ends with it."""
    global _current
    left, _current = _current, None
    if left is not None:
        left.connection.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Others:
    """The other ranks, as a rank sees them that takes saves to them; joined beside the program, and anew when the connection was lost."""

    def __init__(self, reloader: Reloader) -> None:
        self._reloader = reloader
        self._saved: dict[str, None] = {}  # what waits until they are joined
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def saved(self, path: str) -> None:
        """Tells of a save, now or when they are joined. That they cannot be is told to the user."""
        with self._lock:
            self._saved[path] = None
        self.join()

    def join(self) -> None:
        """Begins to, unless that is done or being done."""
        with self._lock:
            if self._thread is None:
                self._thread = hidden_thread(self._run, "dvm-join")
                self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if (joined := current()) is not None:
            joined.connection.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                joined = current() or _join(self._reloader, self._parted, self._ended)
            except Unjoined as error:
                self._refuse(str(error))
            except Exception as error:  # saves must not be passed over in silence
                self._refuse(f"{type(error).__name__}: {error}")
            else:
                for path in self._take():
                    joined.ask("saved", functools.partial(self._answered, path), path=path)
            with self._lock:
                if not self._saved:
                    self._thread = None
                    return

    def _answered(self, path: str, answer: Answer) -> None:
        if answer.get("gone"):
            self.saved(path)  # to who comes next; what it had done before it went is done
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
        if not self._ended.is_set():
            notice("what speaks for the ranks has ended; the next save starts it again", category="reload")


def _join(reloader: Reloader, gone: Callable[[], None], give_up: threading.Event) -> Together:
    """gone: called when the connection ends. give_up: set to end the wait for rank 0. Raises Unjoined."""
    global _current
    from . import reload  # noqa: F401 - declares the commands

    parent = os.getppid()
    end = time.monotonic() + FIND
    made = False
    while not give_up.is_set():
        told = doors.job(parent)
        if told is not None and (entered := _enter(told, parent)) is not None:
            connection, heard = entered
            _current = Together(connection, reloader, gone)
            for message in heard:
                connection.on_message(message)
            connection.start()
            return _current
        if rank_of() == 0:
            if made:
                raise Unjoined("what speaks for the ranks cannot be reached")
            _begin(parent)
            made = True
        elif time.monotonic() > end:
            raise Unjoined(f"no rank 0 of this job runs under `dvm run --watch` on this machine (looked for {FIND:.0f} s)")
        else:
            give_up.wait(_LOOK)
    raise Unjoined("the program ends")


def _enter(told: Answer, parent: int) -> tuple[Connection, list[Answer]] | None:
    """With what was heard before the welcome. None if nobody is there, any more or yet."""
    with contextlib.suppress(OSError, dvm_wire.WireError):
        sock = dvm_wire.connect({dvm_wire.ENV_ADDRESS: told["address"]})
        if sock is not None:
            dvm_wire.write_frame(sock, {"type": "rank", "token": told["token"], "pid": os.getpid(), "rank": rank_of(), "size": size_of(),
                                        "job": parent})
            dvm_wire.write_frame(sock, {"id": 0, "cmd": "joined"})
            heard: list[Answer] = []
            while (message := dvm_wire.read_frame(sock, seconds=_WELCOME)) is not None:
                if message.get("re") == 0:
                    sock.settimeout(None)
                    return Connection(sock), heard
                heard.append(message)
            sock.close()
    return None


def _begin(parent: int) -> None:
    """Starts who speaks for the job, and writes down where it is. Raises Unjoined."""
    global _process
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DVM_DOOR")}
    try:
        # A session of its own: Ctrl-C, and a launcher that ends its ranks by their group, do not meet it. It ends by itself.
        _process = subprocess.Popen([sys.executable, "-m", _MODULE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=environment, start_new_session=True)
        timer = threading.Timer(_BEGIN, _process.kill)
        timer.daemon = True
        timer.start()
        assert _process.stdout is not None and _process.stderr is not None
        with _process.stdout, _process.stderr:  # not the ranks' own: they end, and who reads what they say waits for no one else
            line = _process.stdout.readline()
            timer.cancel()
            if not line:
                raise OSError(_process.stderr.read(_MOST_SAID).decode(errors="replace").strip().rpartition("\n")[2] or "it says nothing")
        told = json.loads(line)
        doors.leave_job(parent, {"address": str(told["address"]), "token": str(told["token"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unjoined(f"`{sys.executable} -m {_MODULE}`, which speaks for the ranks, does not run: {error}") from None
