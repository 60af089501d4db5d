"""What the adapter asks of a stop: what stands, steps, going on, filters, expressions."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from . import naming
from .commands import Answer, Arguments, CommandError, Reply, command, need
from .evaluate import AS_METHODS, ATTRIBUTES, METHODS, Refused, evaluate
from .lookup import Names
from .stepping import TARGETS

if TYPE_CHECKING:
    from .session import Session


@command("pythonStop")
def python_stopped(session: Session, arguments: Arguments) -> Answer:
    """thread: ident, default the main thread. found: what a numeric filter says of the instructions that were run for this stop."""
    ident = need(arguments, "thread", int, threading.main_thread().ident)
    tensor = session.stops.python_stopped(ident)
    return {"tensor": tensor, "found": session.stops.found} if session.stops.found else {"tensor": tensor}


@command("frames")
def frames(session: Session, arguments: Arguments) -> Answer:
    stop = session.stops.current
    return {"tensor": session.stops.frame(stop) if stop is not None else None}


@command("step", later=True)
def step(session: Session, arguments: Arguments, reply: Reply) -> None:
    kind = need(arguments, "kind", str)
    if kind not in TARGETS:
        raise CommandError(f"there is no step {kind!r}; there are {', '.join(TARGETS)}")
    if session.stops.require().launch is None:
        raise CommandError("Python stands on this line, not the tensor program: the step is Python's")
    if kind == "tile":
        session.stops.check_enterable()
    reply({})  # first: the event that follows belongs to what happens next
    try:
        session.stops.step(kind)
    except Exception as error:
        # The launch itself will raise it for the user when it goes on.
        session.notice(f"the step failed: {error}", category="error")
        session.connection.event("vmdone")


@command("go")
def go(session: Session, arguments: Arguments) -> Answer:
    """thread: ident of the one whose stop is over, default the one looked at."""
    session.stops.go(need(arguments, "thread", int, None))
    return {}


@command("select")
def select(session: Session, arguments: Arguments) -> Answer:
    """thread: ident of the one whose stop the user looks at from now on."""
    return {"tensor": session.stops.select(need(arguments, "thread", int))}


@command("filters")
def filters(session: Session, arguments: Arguments) -> Answer:
    """conditions: by filter its condition, "" for what it means by itself. Those set before are gone; none set costs nothing."""
    conditions = need(arguments, "conditions", dict)
    if not all(isinstance(text, str) for text in conditions.values()):
        raise CommandError("conditions: a filter's condition is a text")
    return session.set_filters(conditions)


@command("members")
def members(session: Session, arguments: Arguments) -> Answer:
    """What may follow the dot after an expression that is a tensor; nothing for anything else."""
    names = Names(session.stops.require().view, session)
    text = need(arguments, "expression", str).strip()
    try:
        value = evaluate(naming.spelled(text), names)
    except Refused:
        return {"methods": [], "attributes": []}
    tensor = isinstance(value, (np.ndarray, np.generic))
    return {"methods": sorted({*METHODS, *AS_METHODS}) if tensor else [], "attributes": sorted(ATTRIBUTES) if tensor else []}


@command("evaluate")
def evaluate_at_stop(session: Session, arguments: Arguments) -> Answer:
    """A tensor, or {"result": text} for a number or a text."""
    stop = session.stops.require()
    expression = need(arguments, "expression", str)
    names = Names(stop.view, session)
    listed = names.tensor(expression.strip())
    if listed is None:
        if naming.is_number(expression.strip()):
            raise CommandError(f"there is no {expression.strip()} in what this stop shows; %i0, %i1 are inputs of its program, "
                               f"%1 is the result of its first instruction")
        try:
            value = evaluate(naming.spelled(expression), names)
        except Refused as error:
            raise CommandError(str(error)) from None
        listed = names.as_tensor(expression.strip(), value)
        if listed is None:
            return {"result": str(value)}
    # A large tensor's statistics are asked for by themselves: a hover over its name comes at once.
    return {**listed.describe(with_stats=not listed.large), "ref": session.references.add(listed)}
