"""The active captures of every thread: what is recording right now, for the front ends, the debugger and hot reload."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._core import Graph


class Capture:
    """One call of a captured function while it records. A front end subclasses it and says how its tensors are found and filled."""

    front_end = ""  # "mindspore", "array"
    inspected = False  # a debugger has shown its tensors, and may hold them longer than the program would
    mode = "stream"  # "stream": the Python body runs on every call; "graph": a trace is replayed without it

    def __init__(self, graph: Graph, function: str, step: int) -> None:
        self.graph = graph
        self.function = function  # qualified name of the captured function
        self.step = step  # number of the outermost call, from 1
        self.thread = threading.get_ident()

    def flush_all(self) -> None:
        """Runs what is pending and keeps every value. Another thread may call it while the capturing thread is suspended."""
        raise NotImplementedError

    def find(self, tensor: Any) -> int | None:
        """The graph's value id of a framework tensor, None if this capture does not know it."""
        raise NotImplementedError

    def name_of(self, value: int) -> str:
        """The framework's own name for an input, such as a parameter's; "" if it has none."""
        return ""


class _Top(threading.local):
    capture: Capture | None = None  # innermost one of this thread
    replayed: Capture | None = None


_top = _Top()
_live: dict[int, list[Capture]] = {}  # thread ident -> its captures, outermost first
_lock = threading.Lock()


def active() -> Capture | None:
    """The innermost capture of the calling thread."""
    return _top.capture


@contextlib.contextmanager
def replaying(capture: Capture) -> Iterator[None]:
    """Inside, the calling thread runs more of this capture's graph after its call has ended: its backward program."""
    before, _top.replayed = _top.replayed, capture
    try:
        yield
    finally:
        _top.replayed = before


def launching() -> Capture | None:
    """The capture whose graph the calling thread is running: the active one, or the one whose backward program it is."""
    return _top.capture or _top.replayed


def captures() -> dict[int, list[Capture]]:
    """All live captures: thread ident -> captures of that thread, outermost first (a copy)."""
    with _lock:
        return {thread: list(stack) for thread, stack in _live.items()}


def push(capture: Capture) -> None:
    """Makes a capture the active one of the calling thread."""
    capture.thread = threading.get_ident()
    with _lock:
        _live.setdefault(capture.thread, []).append(capture)
    _top.capture = capture


def pop(capture: Capture) -> None:
    """Ends it; captures begun after it and left behind by an exception end with it."""
    with _lock:
        stack = _live.get(capture.thread, [])
        if capture in stack:
            del stack[stack.index(capture):]
        if not stack:
            _live.pop(capture.thread, None)
        below = stack[-1] if stack else None
    _top.capture = below
