"""What is asked at the process's door: to be debugged, or to reload a file. The frames are those of dvm_wire.doors."""
from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import dvm_wire
from dvm_wire.paths import is_path
from dvm_wire.saves import read

from .. import agent
from ..hotreload import REFUSED, Reloader, Report, SourceBook
from ..hotreload.report import FOREIGN
from . import attach, together
from .connection import hidden, hidden_thread

_MOST_BYTES = 64 << 10  # of a request
_PATIENCE = 5.0  # seconds for a request to arrive
_RELOAD = 60.0  # seconds for the new code of all files that are asked for to come into force
_LEADING = (dvm_wire.ENV_ADDRESS, dvm_wire.ENV_TOKEN, "DVM_DEVICE")  # what a debugger may set of the environment
_reloader: Reloader | None = None

Answer = dict[str, Any]


class Refused(Exception):
    """The request cannot be done; the text says why."""


def hide_this_thread() -> None:
    """From the debugger that may come: it would list the door's thread, and trace it."""
    hidden(threading.current_thread())


def request(sock: socket.socket, token: str) -> Answer | None:
    """What a visitor asks. None for one that is not this user, does not know the token, or takes its time: it gets no answer at all."""
    try:
        message = dvm_wire.read_frame(sock, _MOST_BYTES, _PATIENCE) if _same_user(sock) else None
    except (OSError, dvm_wire.WireError):
        return None
    return message if message is not None and dvm_wire.token_matches(token, message.get("token")) else None


def serve(sock: socket.socket, message: Answer) -> None:
    """Answers a visitor's request."""
    sock.settimeout(_PATIENCE)  # for the answer to be taken
    do = _SERVED.get(str(message.get("cmd")))
    if do is not None and do in (_reload, _undo):  # may take long, and what forks must not wait for it
        hidden_thread(lambda: _answer(sock, do, message), "dvm-door").start()
    else:
        _answer(sock, do or _unknown, message)


def _answer(sock: socket.socket, do: Callable[[Answer], Answer], message: Answer) -> None:
    with sock:
        try:
            answer = {"ok": True, **do(message)}
        except (Refused, attach.Refused) as error:
            answer = {"ok": False, "error": str(error)}
        except Exception as error:
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        try:
            dvm_wire.write_frame(sock, answer)
        except OSError:
            pass  # who asked has gone


def _same_user(sock: socket.socket) -> bool:
    """The kernel's word on who knocks, where it gives one; the folder and the token are there everywhere."""
    if sock.family != getattr(socket, "AF_UNIX", None) or not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return bool(uid == os.getuid())


def _hello(message: Answer) -> Answer:
    return {"pid": os.getpid(), "python": list(sys.version_info[:2]), "debugged": attach.debugged(),
            "agent": agent.connected(), "listens": attach.listens()}


def _attach(message: Answer) -> Answer:
    host, port, access, given = (message.get(name) for name in ("host", "port", "access", "environment"))
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(access, str) or not isinstance(given, dict):
        raise Refused("attach needs host, port, access and environment, the debugger's")
    environment = {name: str(given[name]) for name in _LEADING if name in given}
    attach.attach(host, port, access, environment, subprocesses=bool(message.get("subProcess", True)))
    return {}


def _reload(message: Answer) -> Answer:
    """path: default all files of the program that were saved since. Answers with the reports, as saves are answered; not `ok` where one
    did not come in time, with those that did."""
    path = _path(message, "all that was saved")
    files = _saved(agent.remember_sources()) if path is None else [path]
    end, reports = time.monotonic() + _RELOAD, list[Answer]()
    for at, file in enumerate(files):
        report = _reloaded(file, end)
        if report is None:
            rest = f"; not tried: {', '.join(files[at + 1:])}" if files[at + 1:] else ""
            return {"ok": False, "reports": reports, "error": f"the new code of {file} is not in force after {_RELOAD:.0f} s: a captured "
                                                              f"call that runs has not ended, here or in another rank{rest}"}
        reports.append({**report, "outcome": REFUSED} if path is not None and FOREIGN in report["reasons"] else report)
    return {"reports": reports}


def _undo(message: Answer) -> Answer:
    """path: default the file of the last reload that is in force. Answers with one report, as `_reload`."""
    path = _path(message, "the last that was reloaded")
    report = _reloaded(path, time.monotonic() + _RELOAD, undo=True)
    if report is None:
        return {"ok": False, "reports": [], "error": f"the old code is not in force after {_RELOAD:.0f} s: a captured call that runs has "
                                                     "not ended, here or in another rank"}
    return {"reports": [report]}


def _path(message: Answer, default: str) -> str | None:
    path = message.get("path")
    if not (path is None or is_path(path)):
        raise Refused(f"{message['cmd']} needs a file's path, or none for {default}, not {path!r}")
    return path


def _saved(book: SourceBook) -> list[str]:
    found = []
    for path in sorted(book.files()):
        try:
            if read(path) != book.get(path):
                found.append(path)
        except (OSError, SyntaxError, ValueError):
            found.append(path)  # the reload says what is wrong with it
    return found


def _reloaded(path: str | None, end: float, undo: bool = False) -> Answer | None:
    told: list[Answer] = []
    came = threading.Event()

    def reply(report: Answer) -> None:
        told.append(report)
        came.set()

    def report(made: Report) -> None:
        reply(made.message())

    if not together.ask_all(path, undo, reply):
        session = agent.current()
        reloader: Reloader = session.reloader if session is not None else _own_reloader()
        if undo:
            reloader.undo(report, path)
        else:
            reloader.reload(path or "", None, report)
    return told[0] if came.wait(max(0.0, end - time.monotonic())) else None


def _forked() -> None:
    """In a child: the thread of the parent's reloader is not here."""
    global _reloader
    _reloader = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _own_reloader() -> Reloader:
    """Where no session is connected. Its book is the one a session will have."""
    global _reloader
    if _reloader is None:
        _reloader = agent.make_reloader(agent.remember_sources(), agent.tell, lambda run: hidden_thread(run, "dvm-reload"))
    return _reloader


def _unknown(message: Answer) -> Answer:
    raise Refused(f"unknown request {message.get('cmd')!r}")


_SERVED: dict[str, Callable[[Answer], Answer]] = {"hello": _hello, "attach": _attach, "reload": _reload, "undo": _undo}
