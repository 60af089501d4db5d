"""Data breakpoints: stop where a tensor is written, where it changes, where it becomes what a condition says.

A dataId is a text that says what finds the tensor again (its name and function, or its shape): it holds over hot reloads and sessions."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .channel import Message
from .conditions import wrong_expression, wrong_hits
from .errors import RequestError
from .references import is_ours
from .registry import Body, Needs, request
from .variables import Tensor, Values

if TYPE_CHECKING:
    from .session import Session

_FIELDS = {"name": str, "part": str, "shape": list, "dtype": int, "path": str, "function": str, "program": str}


def data_id(told: Message) -> str:
    return json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def read_id(text: object) -> Message:
    """What a dataId says. Raises RequestError for a text that is none of ours."""
    try:
        told = json.loads(str(text))
    except ValueError:
        told = None
    if not isinstance(told, dict) or not told.get("name") or not all(
            isinstance(told.get(name), kind) for name, kind in _FIELDS.items() if name in told):
        raise RequestError(f"{text!r} is no dataId of this debugger")
    return {name: told[name] for name in _FIELDS if name in told}


@request("dataBreakpointInfo", needs=Needs.STOPPED, supportsDataBreakpoints=True)
async def data_breakpoint_info(session: Session, arguments: Body) -> Body:
    """By variable, or by expression (`h`, `net.fc.weight`, `h[0]`). What cannot be watched has no dataId and a reason."""
    # A refusal is an answer without a dataId: an error keeps editors from opening the menu they ask for.
    try:
        told = await _described(session, arguments["name"], arguments.get("variablesReference"))
    except RequestError as error:
        return {"dataId": None, "description": str(error)}
    shown = f"{told['name']}[{told['part']}]" if told.get("part") else told["name"]
    origin = told.get("function") or told.get("program")
    origin = f" of {origin}" if origin else ""
    return {"dataId": data_id(told), "description": f"{shown}{origin}", "accessTypes": ["write"], "canPersist": True}


async def _described(session: Session, name: str, reference: int | None) -> Message:
    """What the tensor engine says of a variable or expression. Raises RequestError for what cannot be watched."""
    where: Message = {"name": name}
    if reference and not is_ours(reference):
        raise RequestError(f"{name} is a Python value: what can be watched are tensors, in the scope Tensors")
    if reference:
        thing = session.references.get(reference, object)
        if isinstance(thing, Values):
            where = {"name": name, "ref": thing.tensor.ref, "index": [*thing.prefix, int(name)] if name.isdecimal() and thing.shape else []}
        elif isinstance(thing, Tensor):
            where = {"name": name, "ref": thing.ref}
    if not session.has_agent:
        raise RequestError("the tensor engine is not running in this program")
    told: Message = (await session.tensors.ask("dataInfo", **where))["data"]
    return told


@request("setDataBreakpoints")
async def set_data_breakpoints(session: Session, arguments: Body) -> Body:
    """Replaces all. A mistake in one is an answer about that one."""
    points = session.breakpoints
    before = {data_id(read_id(item["dataId"])): item["id"] for item in points.data}
    answers: list[Message] = []
    items: list[Message] = []
    for asked in arguments.get("breakpoints") or []:
        answer: Message = {"verified": False}
        answers.append(answer)
        try:
            told = read_id(asked.get("dataId"))
        except RequestError as error:
            answer.update(id=points.new_id(), reason="failed", message=str(error))
            continue
        answer["id"] = before.pop(data_id(told), None) or points.new_id()
        why = wrong_hits(asked.get("hitCondition")) or wrong_expression(asked.get("condition"))
        if asked.get("accessType") not in (None, "write"):
            why = f"a tensor is watched for writes; {asked.get('accessType')!r} is not seen"
        if why:
            answer.update(reason="failed", message=why)
            continue
        points.alone(answer["id"])
        items.append({"id": answer["id"], **told, "dataId": asked["dataId"], "condition": asked.get("condition"),
                      "hitCondition": asked.get("hitCondition")})
    points.data = items
    await points.answered("dataBreakpoints", items, answers)
    return {"breakpoints": answers}
