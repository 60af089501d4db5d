"""One-line messages to the user that are no errors: an op run by the framework, a retrace, a function left out of a capture."""
from __future__ import annotations

import collections
import sys
import threading
from collections.abc import Callable
from typing import Any

Sink = Callable[[dict[str, Any]], None]

_sinks: list[Sink] = []
_told: set[Any] = set()
_past: collections.deque[dict[str, Any]] = collections.deque(maxlen=1000)
_lock = threading.Lock()


def add_sink(sink: Sink) -> None:
    """From now on notices go to sinks ({"text", "path", "line", "category"}) instead of to stderr."""
    _sinks.append(sink)


def remove_sink(sink: Sink) -> None:
    """Takes a sink away again; one that is not there is no error."""
    if sink in _sinks:
        _sinks.remove(sink)


def notice(text: str, *, path: str = "", line: int = 0, category: str = "capture", once: Any = None) -> None:
    """Tells the user something. once: a key; a second notice with the same key is dropped."""
    if once is not None:
        with _lock:
            if once in _told:
                return
            _told.add(once)
    if not _sinks:
        print(f"dvm: {path}:{line}: {text}" if path else f"dvm: {text}", file=sys.stderr)
    told = {"text": text, "path": path, "line": line, "category": category}
    _past.append(told)
    for sink in list(_sinks):
        sink(told)


def past() -> list[dict[str, Any]]:
    """The last thousand, oldest first."""
    return list(_past)
