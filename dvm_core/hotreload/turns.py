"""Short turns: while a save is worked on, threads that run Python hand the GIL to one another ten times as often."""
from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

SHORT = 500  # microseconds that the training thread waits for the GIL at most while the reload's has it, and the other way round
LONG = 1_000_000  # longer than a swap takes: no other thread runs in between

_lock = threading.Lock()
_inside = 0
_before = 0


def interval() -> int:
    """The interpreter's switch interval in microseconds, in which it keeps it."""
    return round(sys.getswitchinterval() * 1e6)


def set_interval(microseconds: int) -> None:
    sys.setswitchinterval((microseconds + 0.5) / 1e6)  # what is left of a microsecond is cut off


def begin() -> None:
    """Until the matching `end`; any thread may call either. A shorter interval of the program's own is left alone."""
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = interval()
            set_interval(min(SHORT, _before))


def end() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside and interval() == min(SHORT, _before):  # else the program has set another one meanwhile
            set_interval(_before)


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    begin()
    try:
        yield
    finally:
        end()
