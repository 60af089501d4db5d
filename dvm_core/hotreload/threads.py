"""Threads in which code of the program is parsed, compiled or imported."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_STACK = 8 << 20  # bytes

MakeThread = Callable[[Callable[[], None]], threading.Thread]


class StillRunning(Exception):
    """It takes too long to be waited for."""


def plain(run: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=run, name="dvm-reload", daemon=True)


def start(thread: threading.Thread) -> None:
    """With room for Python's parser and compiler, which recurse: a program of many threads may have asked for small stacks."""
    asked = threading.stack_size()
    if not 0 < asked < _STACK:
        thread.start()
        return
    threading.stack_size(_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(asked)


def within(seconds: float, work: Callable[[], Any], make_thread: MakeThread) -> Any:
    """The result of `work`, or what it raises. Raises StillRunning after that time: it goes on."""
    told: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            told.append((work(), None))
        except BaseException as error:  # also a module that ends the program when it is imported
            told.append((None, error))

    thread = make_thread(run)
    start(thread)
    thread.join(seconds)
    if not told:
        raise StillRunning
    value, error = told[0]
    if error is not None:
        raise error
    return value
