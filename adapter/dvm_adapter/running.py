"""Requests that make the program run, or stop it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RequestError
from .references import is_ours
from .registry import Body, Needs, passes, request
from .stack import TensorFrame, python_below

if TYPE_CHECKING:
    from .session import Session


@request("continue", runs=True)
async def continue_(session: Session, arguments: Body) -> Body:
    return await session.stops.resume(arguments)


@request("next", runs=True, supportsSteppingGranularity=True)
async def next_(session: Session, arguments: Body) -> Body:
    return await session.stops.step("next", arguments)


@request("stepIn", runs=True)
async def step_in(session: Session, arguments: Body) -> Body:
    return await session.stops.step("stepIn", arguments)


@request("stepOut", runs=True)
async def step_out(session: Session, arguments: Body) -> Body:
    return await session.stops.step("stepOut", arguments)


@request("pause", runs=True)
async def pause(session: Session, arguments: Body) -> Body:
    session.tracing.pausing(True)
    session.stops.pausing()
    return await session.python.ask("pause", arguments)


@request("goto", runs=True, needs=Needs.STOPPED, supportsGotoTargetsRequest=True)
async def goto(session: Session, arguments: Body) -> Body:
    stop = session.stops.current
    if stop is not None and stop.vm is not None:
        raise RequestError("a tensor program stands at an instruction: jumping out of it would leave its results half made. Continue first",
                           show=True)
    return await session.python.ask("goto", arguments)


@request("stepInTargets", needs=Needs.STOPPED, supportsStepInTargetsRequest=True)
async def step_in_targets(session: Session, arguments: Body) -> Body:
    """Of the tensor line those of Python's frame below it, as long as steps there are Python's."""
    reference = arguments.get("frameId")
    if is_ours(reference):
        frame = session.references.get(reference, object)
        below = await python_below(session, frame) if isinstance(frame, TensorFrame) and frame.stop.vm is None else None
        if below is None:
            return {"targets": []}
        arguments = {**arguments, "frameId": below["id"]}
    return await session.python.ask("stepInTargets", arguments)


passes("gotoTargets")
