"""Hot reload on the wire: the commands, and what a reload needs to know of this process."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import dvm_wire

from .. import _core, hotreload
from ..frontends import reloadable
from ..hotreload.sources import read
from . import python_stop
from .commands import Answer, Arguments, Reply, command, need
from .connection import hidden_thread

if TYPE_CHECKING:
    from .session import Session

_MOST_FRAMES = 50  # of a recursion; each carries a text


def make_reloader(session: Session, book: hotreload.SourceBook) -> hotreload.Reloader:
    """The session's reloader; what it has to tell after its answers becomes `reload` events."""
    host = hotreload.Host(reloadable, _core.programs, step=reloadable.step, stopped=lambda: session.stops.looking,
                          capturing=reloadable.calling, swapped=lambda path: python_stop.code_changed(),
                          settle=dvm_wire.settle)

    def news(report: hotreload.Report) -> None:
        session.connection.event("reload", **report.message())

    return hotreload.Reloader(book, host, news, lambda run: hidden_thread(run, "dvm-reload"))


@command("reload", later=True)
def reload(session: Session, arguments: Arguments, reply: Reply) -> None:
    """path; text: the new text, default what is on disk; settled: nobody writes to the file any more. Answered when the new code is in
    force, or refused, or waits for the call that the program is stopped in."""
    path, text, settled = need(arguments, "path", str), need(arguments, "text", str, None), need(arguments, "settled", bool, False)
    session.reloader.reload(path, text, lambda report: reply(report.message()), settled)


@command("undoReload", later=True)
def undo_reload(session: Session, arguments: Arguments, reply: Reply) -> None:
    """path: the file whose last reload is taken back, default the last of all. Refused if a later reload of another file needs it."""
    session.reloader.undo(lambda report: reply(report.message()), need(arguments, "path", str, None))


@command("texts")
def texts(session: Session, arguments: Arguments) -> Answer:
    """path. The text in force and the one on disk, if they differ and both can be read."""
    path = need(arguments, "path", str)
    in_force = session.reloader.book.get(path)
    try:
        disk = read(path) if in_force is not None else None
    except (OSError, SyntaxError, ValueError):
        disk = None
    return {} if disk is None or disk == in_force else {"inForce": in_force, "disk": disk}


@command("outdated")
def outdated(session: Session, arguments: Arguments) -> Answer:
    """thread: ident. Its frames that run code from before a reload, innermost first, each with the text its lines are numbered in."""
    frame = sys._current_frames().get(need(arguments, "thread", int))
    found = session.reloader.outdated.on(frame) if session.reloader.last is not None else []
    return {"frames": [{"path": frame.f_code.co_filename, "line": frame.f_lineno, "function": frame.f_code.co_name, "text": text}
                       for frame, text in found[:_MOST_FRAMES]]}
