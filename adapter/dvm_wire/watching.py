"""Folders watched for saves. The packages that tell of them are loaded by who watches: the rest of dvm_wire is standard library only."""
from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Iterable

from .saves import SETTLED, UNTOLD

LOOK_ANYWAY = 500  # milliseconds between looks at the files when no event comes
# Linux tells when a writer has closed a file; elsewhere it is known to be whole only when it has rested.
PACKAGE = "asyncinotify" if sys.platform == "linux" else "watchfiles"
_STEP = 20  # milliseconds between watchfiles' looks at its events


def available() -> bool:
    """Whether a package is there that tells of saves; PACKAGE is the one to install."""
    return _there(PACKAGE) or _there("watchfiles")


def _there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # a module that was put there by hand
        return sys.modules.get(package) is not None


def tells_of_ends() -> bool:
    """Whether it is told that a writer has closed its file."""
    return PACKAGE == "asyncinotify" and _there(PACKAGE)


def rest() -> float:
    """Seconds that a file must stay the same before it is read, of whose end nobody has told."""
    return UNTOLD if tells_of_ends() else SETTLED


def happened(folders: Iterable[str], ended: asyncio.Event) -> AsyncGenerator[frozenset[str], None]:
    """Yields when something has happened in these folders, and every LOOK_ANYWAY ms, until `ended` is set: the files that their writer has
    closed or that were moved to their name, where the system tells. Raises ImportError unless `available()`."""
    return _closed(folders, ended) if tells_of_ends() else _changed(folders, ended)


async def _changed(folders: Iterable[str], ended: asyncio.Event) -> AsyncGenerator[frozenset[str], None]:
    import watchfiles

    async for _ in watchfiles.awatch(*folders, recursive=False, debounce=50, step=_STEP, stop_event=ended, rust_timeout=LOOK_ANYWAY,
                                     yield_on_timeout=True):
        yield frozenset()


async def _closed(folders: Iterable[str], ended: asyncio.Event) -> AsyncGenerator[frozenset[str], None]:
    import asyncinotify

    with asyncinotify.Inotify() as inotify:
        for folder in folders:
            with contextlib.suppress(OSError):  # gone meanwhile, or no watch is left: looked at every LOOK_ANYWAY ms all the same
                inotify.add_watch(folder, asyncinotify.Mask.CLOSE_WRITE | asyncinotify.Mask.MOVED_TO)
        over = asyncio.ensure_future(ended.wait())
        told = asyncio.ensure_future(inotify.get())
        try:
            while not ended.is_set():
                await asyncio.wait((over, told), timeout=LOOK_ANYWAY / 1000, return_when=asyncio.FIRST_COMPLETED)
                path = told.result().path if told.done() else None
                if told.done():
                    told = asyncio.ensure_future(inotify.get())
                if not ended.is_set():
                    yield frozenset([str(path)] if path else [])
        finally:
            over.cancel()
            told.cancel()
            await asyncio.gather(over, told, return_exceptions=True)
