"""The active captures of every thread: what is recording right now, for the front ends, the debugger and hot reload."""
from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    import numpy as np

    from .._core import Graph


class Capture:
    """One call of a captured function while it records. A front end subclasses it and says how its tensors are found and filled."""

    front_end = ""  # "mindspore", "array"
    inspected = False  # a debugger has shown its tensors, and may hold them longer than the program would
    reads = False  # its code has read a value in Python
    paused = False  # the framework itself runs what is called
    replays = False  # what an earlier call has recorded; `noted` is of that one
    noted: Any = None  # what a debugger has noted of the names of its inputs
    caller: FrameType | None = None  # the frame that pushed it, until it is popped
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

    def peek(self, tensor: Any) -> tuple[np.ndarray, str] | None:
        """The elements of a framework tensor that no value stands for yet, and its dtype's name; None if it is no tensor. Looked at, not
        recorded. Elements that NumPy has no dtype for are their bits."""
        return None

    def name_of(self, value: int) -> str:
        """The framework's own name for an input, such as a parameter's; "" if it has none."""
        return ""


# Called when a captured call has read a tensor that was not made by it, with the user's frames there. Of arrays the core tells
# (set_input_handler).
on_input: Callable[[], None] | None = None
on_replay: Callable[[str], None] | None = None  # told the function's name before its trace is run instead of its Python body
names_for = 0  # the number of who wants the names of inputs, which are known while a function's Python body runs; 0: nobody


class _Top(threading.local):
    replayed: Capture | None = None
    aside = 0  # so many outer captures of this thread are set aside


_top = _Top()
_live: dict[int, list[Capture]] = {}  # thread ident -> its captures, outermost first
_lock = threading.Lock()


# The innermost capture of the calling thread. The core knows it: its arrays record there.
active: Callable[[], Capture | None] = _core.active_capture
_activate = _core.set_active_capture


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
    return active() or _top.replayed


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """Inside, the calling thread records nothing: what a person evaluates at a stop is no part of the program that stands there."""
    capture, aside = active(), _top.aside
    paused = capture.paused if capture is not None else False
    with _lock:
        _top.aside = len(_live.get(threading.get_ident(), ()))
    _activate(None, True)
    if capture is not None:
        capture.paused = True
    try:
        yield
    finally:
        _activate(None)  # what an exception left recording in here ends
        _activate(capture, True)
        _top.aside = aside
        if capture is not None:
            capture.paused = paused


def captures() -> dict[int, list[Capture]]:
    """All live captures: thread ident -> captures of that thread, outermost first (a copy)."""
    with _lock:
        return {thread: list(stack) for thread, stack in _live.items()}


def push(capture: Capture, caller: FrameType | None = None) -> None:
    """Makes a capture the active one of the calling thread. caller: the frame that the capture ends with; the calling one if None. Captures
    whose frame has ended without `pop`, as an exception from a signal handler can have it, were left behind and end here."""
    capture.thread = threading.get_ident()
    capture.caller = caller or sys._getframe(1)
    going_on(capture.caller)
    with _lock:
        _live.setdefault(capture.thread, []).append(capture)
    _activate(capture)


def going_on(frame: FrameType | None) -> bool:
    """Whether a captured call of the calling thread, whose innermost frame is `frame`, is going on. Captures left behind end here."""
    stack = _live.get(threading.get_ident())
    if not stack:
        return False
    running = set()
    while frame is not None:
        running.add(frame)
        frame = frame.f_back
    with _lock:
        stack[:] = [capture for capture in stack if capture.caller in running]
        if not stack:
            _live.pop(threading.get_ident(), None)
    below = stack[-1] if len(stack) > _top.aside else None
    if active() is not below:
        _activate(below)
    return below is not None


def pop(capture: Capture) -> None:
    """Ends it; captures begun after it and left behind by an exception end with it."""
    stack = _live.get(capture.thread, [])
    at = stack.index(capture) if capture in stack else len(stack)
    _activate(stack[at - 1] if at > _top.aside else None)  # first: a signal's exception after it leaves nothing recording
    capture.caller = None
    with _lock:
        del stack[at:]
        if not stack:
            _live.pop(capture.thread, None)
