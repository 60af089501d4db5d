"""`dvm.debug`: what a program says to be debugged without being started by the debugger."""
from __future__ import annotations

import os
import sys
import time
from typing import Any

from ..errors import Error
from ..frontends import notices
from . import connected, python_stop, remember_sources

listening: tuple[str, int] | None = None  # where `listen` waits for a debugger
_AGENT_WAIT = 5.0  # seconds for the adapter to bring up the tensor engine after Python's debugger is attached


def _debugpy() -> Any:
    # Its advice about frozen modules, four lines on stderr, is for who debugs the standard library.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    try:
        import debugpy
    except ImportError:
        raise Error("dvm.debug needs the package debugpy: pip install dvm-live[adapter]") from None
    return debugpy


def listen(address: tuple[str, int] | int = ("127.0.0.1", 5678)) -> tuple[str, int]:
    """Opens a port for an attach configuration with "connect". Gives the (host, port) it listens on; port 0 picks one. Once per process.

    The program runs at full speed until a debugger attaches, and after it has gone."""
    global listening
    from .tracing import TRACING

    book = remember_sources()
    found: tuple[str, int] = _debugpy().listen(address)
    try:
        python_stop.prepare_with_client(book.get)
        TRACING.settle()
    except python_stop.Incompatible as error:  # it listens all the same, and the session says so once more
        notices.notice(str(error), category="error")
    listening = found
    return found


def wait_for_client() -> None:
    """Blocks until a debugger has attached, and its tensor engine is connected."""
    _debugpy().wait_for_client()
    remember_sources()
    end = time.monotonic() + _AGENT_WAIT
    while not connected() and time.monotonic() < end:  # a plain Python debugger never brings it: go on without
        time.sleep(0.01)


def breakpoint() -> None:
    """Stops at the next line of the caller if a debugger is attached, else does nothing. Inside a captured function everything recorded
    before that line is computed first, and can be looked at."""
    frame = python_stop.top_user_frame(sys._getframe())
    if frame is not None:
        python_stop.stop_at_next_line(frame)
