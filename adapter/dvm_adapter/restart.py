"""`restart`: the program ends and starts anew, with everything that the client has asked for still in force."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from . import lifecycle
from .config import Config
from .errors import RequestError
from .registry import Body, request

if TYPE_CHECKING:
    from .session import Session


@request("restart", runs=True, supportsRestartRequest=True)
async def restart(session: Session, arguments: Body) -> Body:
    """`arguments`: the launch configuration as it is by now, if the client sends one; else the one the session began with."""
    if not session.config.launched:
        raise RequestError("this session has attached to a program that others have started: end the session, start the program, "
                           "and attach again", show=True)
    if session.terminated or session.debuggee.exited:
        raise RequestError("the program has ended: start another session")
    if session.restarting is not None or not (session.started or session.config.no_debug):
        raise RequestError("the program is just being started: restart it once it runs")
    given = arguments.get("arguments") or session.config.arguments
    if not isinstance(given, dict):
        raise RequestError(f'"arguments" of restart must be a launch configuration, not {given!r}', show=True)
    config = Config.read("launch", given)
    lifecycle.check_program(config)  # what cannot be meant is refused while there is a program still
    session.restarting = asyncio.current_task()
    session.configurable.clear()
    try:
        await _end(session)
        return await _begin(session, config)
    except BaseException:
        session.python_events.all_over({})  # also where the client takes the request back: there is no program any more
        raise
    finally:
        session.restarting = None
        session.configurable.set()


async def _end(session: Session) -> None:
    threads, stopped = session.python_events.threads, session.stops.stopped
    await session.end_program()
    if stopped:
        session.event("continued", {"threadId": min(threads, default=1), "allThreadsContinued": True})
    for thread in sorted(threads):
        session.event("thread", {"reason": "exited", "threadId": thread})
    session.event("dvm/restarted")
    session.tracing.begin_anew()
    session.watches.begin_anew()


async def _begin(session: Session, config: Config) -> Body:
    configuring = asyncio.ensure_future(_configure(session))
    beginning = asyncio.ensure_future(lifecycle.begin(session, config))
    try:
        await asyncio.wait({configuring, beginning}, return_when=asyncio.FIRST_COMPLETED)
        if not beginning.done():
            configuring.result()
        return await beginning  # without debugging there is nothing to configure, and nothing that asks for it
    finally:
        configuring.cancel()
        beginning.cancel()
        await asyncio.gather(configuring, beginning, return_exceptions=True)


async def _configure(session: Session) -> None:
    """What a client does between `initialized` and `configurationDone`."""
    await session.python_events.ready
    await session.breakpoints.begin_anew()
    session.configurable.set()
    await lifecycle.configuration_done(session, {})
