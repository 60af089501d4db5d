"""What is asked at the process's door: to be debugged, or to reload a file. The frames are those of dvm_wire.doors."""
from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import dvm_wire

from .. import _core, agent
from ..frontends import capture, reloadable
from ..hotreload import REFUSED, Host, Reloader, Report, SourceBook
from ..hotreload.report import FOREIGN
from ..hotreload.sources import read
from . import attach
from .connection import hidden, hidden_thread

_MOST_BYTES = 64 << 10  # of a request
_PATIENCE = 5.0  # seconds for a request to arrive
_RELOAD = 60.0  # seconds for the new code to come into force
_LEADING = (dvm_wire.ENV_ADDRESS, dvm_wire.ENV_TOKEN, "DVM_DEVICE")  # what a debugger may set of the environment
_reloader: Reloader | None = None

Answer = dict[str, Any]


class Refused(Exception):
    """The request cannot be done; the text says why."""


def hide_this_thread() -> None:
    """From the debugger that may come: it would list the door's thread, and trace it."""
    hidden(threading.current_thread())


def receive(sock: socket.socket, token: str) -> None:
    """Serves a visitor. One that is not this user, or does not know the token, gets no answer at all."""
    sock.settimeout(_PATIENCE)
    try:
        message = dvm_wire.read_frame(sock, _MOST_BYTES) if _same_user(sock) else None
    except (OSError, dvm_wire.WireError):
        message = None
    if message is None or not dvm_wire.token_matches(token, message.get("token")):
        sock.close()
        return
    serve = _SERVED.get(str(message.get("cmd")))
    if serve is _reload:  # may take long, and what forks must not wait for it
        hidden_thread(lambda: _answer(sock, _reload, message), "dvm-door").start()
    else:
        _answer(sock, serve or _unknown, message)


def _answer(sock: socket.socket, serve: Callable[[Answer], Answer], message: Answer) -> None:
    with sock:
        try:
            answer = {"ok": True, **serve(message)}
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
    return {"pid": os.getpid(), "python": list(sys.version_info[:2]), "debugged": attach.debugged(), "listens": attach.listens()}


def _attach(message: Answer) -> Answer:
    host, port, access, given = (message.get(name) for name in ("host", "port", "access", "environment"))
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(access, str) or not isinstance(given, dict):
        raise Refused("attach needs host, port, access and environment, the debugger's")
    environment = {name: str(given[name]) for name in _LEADING if name in given}
    attach.attach(host, port, access, environment, subprocesses=bool(message.get("subProcess", True)))
    return {}


def _reload(message: Answer) -> Answer:
    """path: default all files of the program that were saved since. Answers with the reports, as saves are answered."""
    path = message.get("path")
    if not (path is None or isinstance(path, str)):
        raise Refused("reload needs a path, or none for all that was saved")
    session = agent.current()
    reloader = session.reloader if session is not None else _own_reloader()
    if path is None:
        return {"reports": [_reloaded(reloader, file) for file in _saved(agent.remember_sources())]}
    report = _reloaded(reloader, path)
    return {"reports": [{**report, "outcome": REFUSED} if FOREIGN in report["reasons"] else report]}


def _saved(book: SourceBook) -> list[str]:
    found = []
    for path in sorted(book.files()):
        try:
            if read(path) != book.get(path):
                found.append(path)
        except (OSError, SyntaxError, ValueError):
            found.append(path)  # the reload says what is wrong with it
    return found


def _reloaded(reloader: Reloader, path: str) -> Answer:
    told: list[Report] = []
    came = threading.Event()

    def reply(report: Report) -> None:
        told.append(report)
        came.set()

    reloader.reload(path, None, reply)
    if not came.wait(_RELOAD):
        raise Refused(f"the new code of {path} is not in force after {_RELOAD:.0f} s: the captured call that runs has not ended")
    return told[0].message()


def _own_reloader() -> Reloader:
    """Where no session is connected. Its book is the one a session will have."""
    global _reloader
    if _reloader is None:
        host = Host(reloadable, _core.programs, step=reloadable.step, capturing=lambda: bool(capture.captures()), settle=dvm_wire.settle)
        _reloader = Reloader(agent.remember_sources(), host, thread=lambda run: hidden_thread(run, "dvm-reload"))
    return _reloader


def _unknown(message: Answer) -> Answer:
    raise Refused(f"unknown request {message.get('cmd')!r}")


_SERVED: dict[str, Callable[[Answer], Answer]] = {"hello": _hello, "attach": _attach, "reload": _reload}
