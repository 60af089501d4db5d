"""Hot reload on the wire: the commands, and what a reload needs to know of this process.

Of ranks that take an edit together (hotreload.pact): `prepare`, `arm`, `decide`, and the events `vote` and `settled`."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dvm_wire.saves import read

from .. import agent, hotreload
from . import python_stop, together
from .commands import Answer, Arguments, CommandError, Reply, command, need
from .connection import hidden_thread
from .pace import Reloading

if TYPE_CHECKING:
    from .session import Session

_MOST_FRAMES = 50  # of a recursion; each carries a text


def make_reloader(session: Session, book: hotreload.SourceBook) -> hotreload.Reloader:
    """The session's reloader; what it has to tell after its answers becomes `reload` events."""
    def news(report: hotreload.Report) -> None:
        if session.connection.closed:
            agent.tell(report)
        else:
            session.connection.event("reload", **report.message())

    made: hotreload.Reloader = agent.make_reloader(book, news, lambda run: hidden_thread(run, "dvm-reload"),
                                                   stopped=lambda: session.stops.looking, swapped=lambda path: python_stop.code_changed())
    return made


@command("reload", later=True)
def reload(session: Session, arguments: Arguments, reply: Reply) -> None:
    """path; text: the new text, default what is on disk; settled: nobody writes to the file any more. Answered when the new code is in
    force, or refused, or waits for the call that the program is stopped in. A rank asks the others, where it can."""
    path, text, settled = need(arguments, "path", str), need(arguments, "text", str, None), need(arguments, "settled", bool, False)
    if text is None and together.ask_all(path, False, reply):
        return
    session.reloader.reload(path, text, lambda report: reply(report.message()), settled)


@command("begunAs")
def begun_as(session: Session, arguments: Arguments) -> Answer:
    """path, text: of the script, when the program was started. What was saved since, before this process had an agent, is a save."""
    session.reloader.book.begun_as(need(arguments, "path", str), need(arguments, "text", str))
    return {}


@command("undoReload", later=True)
def undo_reload(session: Reloading, arguments: Arguments, reply: Reply) -> None:
    """path: the file whose last reload is taken back, default the last of all. Refused if a later reload of another file needs it.
    ticket: of a rank, the edit that is taken back here alone, if it is in force."""
    path, ticket = need(arguments, "path", str, None), need(arguments, "ticket", str, None)
    if ticket is not None or not together.ask_all(path, True, reply):
        session.reloader.undo(lambda report: reply(report.message()), path, ticket=ticket)


@command("prepare", later=True)
def prepare(session: Reloading, arguments: Arguments, reply: Reply) -> None:
    """ticket: of all that comes after it; path, text: as for `reload`; or undo: true. Answered with `ready`: whether code is exchanged
    (`meaningful`), and the report of what it waits for; or with the report that ends it."""
    ticket, text = need(arguments, "ticket", str), need(arguments, "text", str, None)
    path, undo = need(arguments, "path", str, None), need(arguments, "undo", bool, False)
    connection, pacts = session.connection, session.pacts

    def ready(meaningful: bool, report: Answer) -> None:
        reply({**report, "ready": {"meaningful": meaningful}})

    def ended(report: hotreload.Report) -> None:
        pacts.pop(ticket, None)
        if connection.closed:
            agent.tell(report)
        elif pact.was_ready:
            connection.event("settled", ticket=ticket, **report.message())
        else:
            reply(report.message())

    pact = pacts[ticket] = hotreload.Pact(ready, lambda ok, reason, step: connection.event(
        "vote", ticket=ticket, ok=ok, reason=reason, step=step), ticket)
    if undo:
        session.reloader.undo(ended, path or None, pact)
    else:
        session.reloader.reload(path or "", text, ended, pact=pact)


@command("pace")
def pace(session: Reloading, arguments: Arguments) -> Answer:
    """`step` and `rate` of steps a second, and the `calls` of each captured function (pace.Pace.message)."""
    return session.pace.message()


@command("arm", later=True)
def arm(session: Reloading, arguments: Arguments, reply: Reply) -> None:
    """ticket; number: of the call before which the swap is made, counted in those `of` a captured function, default in all. Answered with
    `armed`, false if it has begun."""
    number, of = need(arguments, "number", int), need(arguments, "of", str, "")
    _pact(session, arguments).arm(number, lambda armed: reply({"armed": armed}), of)


@command("decide")
def decide(session: Reloading, arguments: Arguments) -> None:
    """ticket; keep: whether all ranks take it; reason: why not. Nothing if what it is about has ended."""
    pact = session.pacts.get(need(arguments, "ticket", str))
    if pact is not None:
        pact.decide(need(arguments, "keep", bool), need(arguments, "reason", str, ""))


def _pact(session: Reloading, arguments: Arguments) -> hotreload.Pact:
    found = session.pacts.get(need(arguments, "ticket", str))
    if found is None:
        raise CommandError(f"no edit has the ticket {arguments['ticket']}, or it has ended")
    return found


@command("reloadListings")
def reload_listings(session: Session, arguments: Arguments) -> Answer:
    """What the last reload that is in force changed of the bytecode: path, step, programs with their instructions before and now."""
    return session.reloader.listings()


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
    found = session.reloader.outdated.on(frame)
    return {"frames": [{"path": frame.f_code.co_filename, "line": frame.f_lineno, "function": frame.f_code.co_name, "text": text}
                       for frame, text in found[:_MOST_FRAMES]]}
