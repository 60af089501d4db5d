"""Python's debugger enters a process that runs already, and leaves it as it was: what is asked of pydevd for that.

A debugger attached this way is connected to a debugpy adapter that waits for it, with a token of its own; no port is opened here. When it
has gone, nothing is traced, and children of the program are not led to it any more; pydevd's own wrappers around starting processes and
threads stay where they are, and do nothing."""
from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

from .. import agent
from . import debug, python_stop, remember_sources
from .python_stop import _module, _need
from .tracing import TRACING

_GOING = 10.0  # seconds for the debugger that was here to be gone, once it goes
_CONNECT = 10.0  # seconds for who waits to take the connection


class Refused(Exception):
    """This process cannot be attached to; the text says why, in a sentence without its subject."""


def debugged() -> bool:
    """Whether a debugger's client is attached."""
    return python_stop.attached()


def listens() -> list[Any] | None:
    """[host, port] where `dvm.debug.listen` waits for a debugger."""
    return list(debug.listening) if debug.listening else None


def attach(host: str, port: int, token: str, environment: dict[str, str], *, subprocesses: bool) -> None:
    """Connects the agent to the adapter, by the variables it would have given a program it starts, and Python's debugger of this process to
    the debugpy that waits at host:port. Raises Refused, errors.Error (no debugpy), OSError, with the process as it was."""
    book = remember_sources()
    _wait_until_gone()
    if python_stop.debugger(attached=False) is not None:
        raise Refused("has a debugger already")
    # First: where nobody waits any more, nothing has been touched.
    with contextlib.ExitStack() as undo:
        client = undo.enter_context(socket.create_connection((host, port), _CONNECT))
        client.settimeout(None)
        debugpy = debug._debugpy()
        _module("debugpy.server.api")  # makes its pydevd known, and the protocol that pydevd speaks
        pydevd = _module("pydevd")
        undo.callback(_restore, {name: os.environ.get(name) for name in reversed(environment)})  # the address first, which was set last
        before = {name: os.environ.get(name) for name in ("DVM_DEVICE",)}
        os.environ.update(environment)
        if not agent.connected():
            undo.callback(agent.leave)
        # Before Python's debugger: a breakpoint may be hit as soon as that is there. A device is chosen only if this debugger named one.
        agent.start(environment.get("DVM_DEVICE", ""), before)
        _gate_children()
        undo.callback(_leave, pydevd)
        # From an attachment before: children would be sent to a port that is closed.
        _need(pydevd, "SetupHolder").setup = None
        with TRACING.alone(), _connected(pydevd, client):
            pydevd.settrace(
                host=host, port=port, suspend=False, patch_multiprocessing=subprocesses, wait_for_ready_to_run=False,
                block_until_connected=True, access_token=token, notify_stdin=False,
                dont_trace_start_patterns=(os.path.dirname(os.path.abspath(debugpy.__file__)),),
                dont_trace_end_patterns=("debugpy_launcher.py",))
        undo.pop_all()  # it is in: from here its leaving undoes this
    python_stop.prepare_with_client(book.get)
    TRACING.settle()


@contextlib.contextmanager
def _connected(pydevd: Any, client: socket.socket) -> Iterator[None]:
    """Inside, pydevd takes that connection for the one it would open. A process forked meanwhile opens its own."""
    connect, here = _need(pydevd, "start_client"), os.getpid()
    pydevd.start_client = lambda *where: client if os.getpid() == here else connect(*where)
    try:
        yield
    finally:
        pydevd.start_client = connect


def _leave(pydevd: Any) -> None:
    """Takes out a debugger that came in only in part."""
    if python_stop.debugger(attached=False) is not None:
        _need(pydevd, "stoptrace")()
    _need(pydevd, "SetupHolder").setup = None


def _restore(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _wait_until_gone() -> None:
    """A debugger whose client has gone ends on threads of its own, and one that came meanwhile would take it for alive."""
    end = time.monotonic() + _GOING
    while (here := python_stop.debugger(attached=False)) is not None and _going(here) and time.monotonic() < end:
        time.sleep(0.01)


def _going(pydevd: Any) -> bool:
    return debug.listening is None and (_need(pydevd, "pydb_disposed") or not _need(pydevd, "is_attached")())


def _gate_children() -> None:
    """pydevd sends children of this process to its client; not any more when there is none."""
    monkey = _module("_pydev_bundle.pydev_monkey")
    original = _need(monkey, "_get_apply_arg_patching")
    if getattr(original, "gated", False):
        return

    def apply() -> Any:
        return python_stop.debugger(attached=False) is not None and original()

    apply.gated = True  # type: ignore[attr-defined]
    monkey._get_apply_arg_patching = apply
