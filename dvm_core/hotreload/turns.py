"""Short turns: while a save is worked on, threads that run Python hand the GIL to one another ten times as often."""
from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator

SHORT = 500  # microseconds that the training thread waits for the GIL at most while the reload's has it, and the other way round
LONG = 1_000_000  # longer than a swap takes: no other thread runs in between

_lock = threading.Lock()
_short = _whole = 0  # who wants short turns, and who wants none but its own
_ours: int | None = None  # what was set for them; None: the interval is the program's
_before = 0  # the program's
_without = _within = 0  # who wants no collection, and who of them wants it for a while
_uncollected = False  # whether it is off for them


def interval() -> int:
    """The interpreter's switch interval in microseconds, in which it keeps it."""
    return round(sys.getswitchinterval() * 1e6)


def set_interval(microseconds: int) -> None:
    sys.setswitchinterval((microseconds + 0.5) / 1e6)  # what is left of a microsecond is cut off


def _turn(short: int = 0, whole: int = 0) -> None:
    """Counts who wants what, in any order and from any thread, and sets what follows from it. An interval that is not the one set
    here is the program's, whenever it set it: that one comes back in the end."""
    global _short, _whole, _ours, _before
    with _lock:
        _short, _whole = _short + short, _whole + whole
        if (now := interval()) != _ours:
            _before = now
        wanted = LONG if _whole else min(SHORT, _before) if _short else _before
        if wanted != now:
            set_interval(wanted)
        _ours = wanted if _short or _whole else None


def begin() -> None:
    """Short turns until the matching `end`; any thread may call either. A shorter interval of the program's own is left alone."""
    _turn(short=+1)


def end() -> None:
    _turn(short=-1)


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    begin()
    try:
        yield
    finally:
        end()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """No other thread runs Python inside, unless this one waits."""
    _turn(whole=+1)
    try:
        yield
    finally:
        _turn(whole=-1)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic collection inside: syntax trees are many objects at once, and the full collection they set off holds every thread, also
    the training thread, for as long as the whole heap takes."""
    _collect(+1, 0)
    try:
        yield
    finally:
        _collect(-1, 0)


@contextlib.contextmanager
def collection() -> Iterator[None]:
    """Inside of `no_collection`: for work of the program's own, which may take long."""
    _collect(0, +1)
    try:
        yield
    finally:
        _collect(0, -1)


def _collect(without: int, within: int) -> None:
    """Counts who wants no collection, and who of them wants it for a while; any thread may."""
    global _without, _within, _uncollected
    with _lock:
        _without, _within = _without + without, _within + within
        if _without and not _within and not _uncollected:
            _uncollected = gc.isenabled()  # else the program has turned it off, and it stays so
            gc.disable()
        elif _uncollected and (_within or not _without):
            _uncollected = False
            gc.enable()


def _in_child() -> None:
    """A forked child has no thread that reloads: what was set for one ends."""
    global _lock, _short, _whole, _uncollected, _without, _within
    _lock = threading.Lock()
    _turn(-_short, -_whole)
    _without = _within = 0
    if _uncollected:
        _uncollected = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
