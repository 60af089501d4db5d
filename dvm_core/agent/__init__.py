"""The debuggee's side of the debugger: connects to the adapter named in the environment and serves it from a thread of its own."""
from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

_lock = threading.Lock()
_making = threading.Lock()  # held while the book is made
_session: Any = None
_book: Any = None
_done: Any = None
_registered = False


def start(device: str | None = None, before: dict[str, str | None] | None = None) -> bool:
    """Connects as DVM_AGENT and DVM_TOKEN say, unless a session is there already. False if there is no debugger to connect to.

    device: the one to choose, "" for the one in use, None for what DVM_DEVICE says. before: what the environment gets back of other
    variables once the adapter has gone.

    A debugger that cannot be reached is said on stderr and costs nothing more: the program must run without it."""
    global _session, _registered
    with _lock:
        if _session is not None:
            if not _session.connection.closed:
                return True
            _session.connection.wait_until_gone()  # what it takes out must not be the next one's
        try:
            from .. import devices
            from . import connection, session

            unfit = ""
            if device := os.environ.get("DVM_DEVICE", "") if device is None else device:
                unfit = _choose(device)
            found = connection.Connection.open(devices.device())
        except Exception as error:
            print(f"dvm: no debugger: {error}", file=sys.stderr)
            _forget_address(before or {})
            return False
        if found is None:
            return False
        found.before = before or {}
        _session = session.Session(found, _the_book())
        _session.start()
        if unfit:
            _session.notice(unfit, category="error")  # at once: the program may be short
        if not _registered:
            _registered = True
            os.register_at_fork(after_in_child=_after_fork)
        return True


def _forget_address(before: dict[str, str | None]) -> None:
    """A debugger that this program was not started by, and that cannot be reached, is not looked for by its children either."""
    import dvm_wire

    if not dvm_wire.launched():
        dvm_wire.forget(os.environ, before)


def _choose(device: str) -> str:
    """Chooses the device asked for. One that cannot be had leaves the one in use, and is told of; it takes no debugger away."""
    from .. import devices

    try:
        devices.set_device(device)
    except Exception as error:  # whatever a vendor's library raises: the debugger stays
        return f"{error}; the program runs on {devices.device()}"
    return ""


def remember_sources() -> Any:
    """Takes the files of all modules loaded now as the text in force: what a later reload is compared with. Gives the book of them."""
    book = _the_book()
    book.scan()
    return book


def _the_book() -> Any:
    """One of a process: the door's thread and a session's may ask for it at the same time."""
    global _book
    from ..hotreload import SourceBook
    from .places import LIBRARIES

    with _making:
        if _book is None:
            from .. import _core
            from ..frontends import names

            _book = SourceBook(LIBRARIES)
            names.in_force = _book.get
            _core.tell_modules(_book.imported)
            atexit.register(_core.tell_modules, None)
        return _book


def done() -> Any:
    """What reloads have brought in (hotreload.Done), through the door and in all sessions."""
    global _done
    from ..hotreload import Done

    with _making:
        if _done is None:
            _done = Done()
        return _done


def make_reloader(book: Any, news: Any, thread: Any = None, **host: Any) -> Any:
    """A hotreload.Reloader of this process: all of them share the list for undo. book, news, thread: as it has them; host: what else its
    hotreload.Host has to know."""
    import dvm_wire

    from .. import _core
    from ..frontends import attempts, reloadable
    from ..hotreload import Host, Reloader

    known = Host(reloadable, _core.programs, step=reloadable.step, capturing=attempts.calling, settle=dvm_wire.settle, **host)
    return Reloader(book, known, news, thread, done())


def tell(report: Any) -> None:
    """Tells the user on the program's own stderr what came of a reload (hotreload.Report), where nobody else hears it."""
    import dvm_wire

    from ..frontends.notices import notice

    notice(dvm_wire.outcome(report.message()), category="reload")


def connected() -> bool:
    """Whether a debugger is connected."""
    return _session is not None and not _session.connection.closed


def current() -> Any:
    """The session (session.Session), None if there is none."""
    return _session if connected() else None


def leave() -> None:
    """Ends the session, if there is one, and returns when nothing of it is left; the program runs on."""
    if _session is not None and not _session.connection.closed:
        _session.connection.close()
        _session.connection.wait_until_gone()


def _after_fork() -> None:
    # The thread that served the parent's connection does not exist here, and the socket is the parent's: the child gets its own.
    global _session, _lock, _making
    _lock, _making = threading.Lock(), threading.Lock()
    old, _session = _session, None
    if old is not None:
        from .tracing import TRACING

        TRACING.forked()
    if old is not None and not old.connection.closed:
        old.connection.abandon()
        old.forked()
        old.end()
        start(before=old.connection.before)
