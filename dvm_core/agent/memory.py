"""The memory view's data: which buffers lived when, and where the peak was."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _core, memory_plan
from ..dtypes import BY_CODE
from . import naming
from .commands import Answer, Arguments, CommandError, command, need
from .places import place

if TYPE_CHECKING:
    from .session import Session


@command("memory")
def memory(session: Session, arguments: Arguments) -> Answer:
    """Buffers alive in steps a..b (default: all that the log holds), the peak over them, and the process's copy counters.

    The log is bounded: the oldest buffers of a long run are forgotten. With `program`: that program's memory plan instead."""
    if "program" in arguments:
        return {"plan": _plan(need(arguments, "program", int))}
    steps = arguments.get("steps")
    if steps is not None and not (isinstance(steps, list) and len(steps) == 2 and all(isinstance(s, int) for s in steps)):
        raise CommandError(f"steps is {steps!r}; it must be the first and the last step")
    events = _core.memory_events()
    if steps is not None:
        events = _alive_in(events, *steps)
    stats = _core.stats()
    made = {number: _instructions(number) for number in {event["program"] for event in events}}
    buffers = [_buffer(event) | _type(event, made[event["program"]]) for event in events]
    return {"buffers": buffers, "peak": peak(events), "step": session.step(), "copies": stats.get("copies", 0),
            "copiesAvoided": stats.get("copies_avoided", 0),
            "bytesLive": stats.get("bytes_live", 0), "bytesPeak": stats.get("bytes_peak", 0)}


@command("memoryFlow")
def memory_flow(session: Session, arguments: Arguments) -> Answer:
    """Instructions of a program that made the operands of one of them, and those that read its result."""
    number, index = need(arguments, "program", int), need(arguments, "instruction", int)
    try:
        program = _core.program(number)
    except _core.Error:
        raise CommandError(f"there is no program {number}") from None
    instructions, inputs = program.instructions, len(program.input_shapes)
    if not 0 <= index < len(instructions):
        raise CommandError(f"program {number} has no instruction {index}")
    return {"op": instructions[index].name, "operands": [o - inputs for o in dict.fromkeys(instructions[index].operands) if o >= inputs],
            "readers": [i.index for i in instructions if index + inputs in i.operands]}


def _plan(number: int) -> Answer:
    try:
        program = _core.program(number)
    except _core.Error:
        raise CommandError(f"there is no program {number}") from None
    plan, names = memory_plan.plan(program), naming.of_program(program)
    steps = [{"op": step.op, "area": step.area, "value": step.value, "instruction": step.instruction, "bytes": step.bytes,
              "aligned": step.aligned, "where": step.where, "offset": step.offset, "inPlaceOf": step.in_place_of,
              "name": names.get(step.instruction, "")} for step in plan.steps]
    return {"steps": steps, "workspaceBytes": plan.workspace_bytes, "unsharedBytes": plan.unshared_bytes, "resultBytes": plan.result_bytes,
            "peakBytes": plan.peak_bytes, "copies": plan.copies, "copiedBytes": plan.copied_bytes, "copiesAvoided": plan.copies_avoided,
            "avoidedBytes": plan.avoided_bytes}


def _alive_in(events: list[dict[str, Any]], first: int, last: int) -> list[dict[str, Any]]:
    begun = min((event["born"] for event in events if event["step"] >= first), default=0)
    return [event for event in events
            if event["step"] <= last and (event["step"] >= first or event["freed"] < 0 or event["freed"] >= begun)]


def _buffer(event: dict[str, Any]) -> Answer:
    where = place(event["place"])
    told = {key: event[key] for key in ("id", "name", "bytes", "address", "step", "born", "program", "instruction")}
    told["name"] = told["name"] or _name(event["program"], event["instruction"])
    told.update({"class": event["cls"], "reuses": event["reuse"], "freed": event["freed"] if event["freed"] >= 0 else None,
                 "inPlaceOf": event["in_place_of"], "bornNs": event["born_ns"], "freedNs": event["freed_ns"]})
    if where.path:
        told["place"] = where.message()
    return told


def _instructions(number: int) -> list[Any]:
    try:
        return _core.program(number).instructions if number > 0 else []
    except _core.Error:  # forgotten
        return []


def _type(event: dict[str, Any], made: list[Any]) -> Answer:
    """dtype and shape, where the last launch's are those of a buffer of that size."""
    index = event["instruction"]
    if not 0 <= index < len(made):
        return {}
    dtype, shape = BY_CODE[made[index].dtype], list(made[index].shape)
    return {"dtype": dtype.short, "shape": shape} if math.prod(shape) * dtype.itemsize == event["bytes"] else {}


def _name(program: int, instruction: int) -> str:
    """The variable's name for what that instruction made, "" if it has none."""
    if program <= 0 or instruction < 0:
        return ""
    try:
        return naming.of_program(_core.program(program)).get(instruction, "")
    except _core.Error:
        return ""


def peak(events: list[dict[str, Any]]) -> Answer:
    """The moment (counter over instructions run) with the most bytes alive, and the place of the largest buffer alive then."""
    changes: dict[int, int] = {}
    for event in events:
        changes[event["born"]] = changes.get(event["born"], 0) + event["bytes"]
        if event["freed"] >= 0:
            changes[event["freed"]] = changes.get(event["freed"], 0) - event["bytes"]
    live = most = at = 0
    for moment in sorted(changes):
        live += changes[moment]
        if live > most:
            most, at = live, moment
    alive = [e for e in events if e["born"] <= at and (e["freed"] < 0 or e["freed"] > at) and e["place"]]
    largest = max(alive, key=lambda e: e["bytes"], default=None)
    told: Answer = {"bytes": most, "at": at}
    if largest is not None:
        told["place"] = {**place(largest["place"]).message(), "name": largest["name"] or _name(largest["program"], largest["instruction"])}
    return told
