"""The end of the program: what was saved right before it is answered all the same."""
from __future__ import annotations

import atexit
import contextlib
import os
import threading

WAIT = 0.5  # seconds that the program's end is held for answers at most

_begun = threading.Event()
_changed = threading.Condition()
_owed = 0  # answers
_registered = False


def has_begun() -> bool:
    """Whether the interpreter is at its end, where only exit handlers of the program's own may still make calls."""
    return _begun.is_set()


def owe() -> None:
    """An answer, until the matching `paid`; from any thread."""
    global _owed, _registered
    with _changed:
        _owed += 1
        if not _registered:
            _registered = True
            atexit.register(_wait)  # now: what answers go through was registered before, and ends after it


def paid() -> None:
    global _owed
    with _changed:
        _owed -= 1
        _changed.notify_all()


def _wait() -> None:
    _begun.set()
    with contextlib.suppress(KeyboardInterrupt), _changed:
        _changed.wait_for(lambda: _owed <= 0, WAIT)


def _in_child() -> None:
    """A forked child has no thread that answers, and an end of its own."""
    global _begun, _changed, _owed
    _begun, _changed, _owed = threading.Event(), threading.Condition(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
