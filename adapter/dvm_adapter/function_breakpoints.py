"""Function breakpoints: a name in capitals is an op of the virtual machine, which the agent knows; any other is a Python function."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .channel import Message
from .conditions import wrong_expression, wrong_hits
from .registry import Body, request

if TYPE_CHECKING:
    from .session import Session

_OP = re.compile(r"[A-Z][A-Z0-9_]*")  # as listings of programs write them


@request("setFunctionBreakpoints", supportsFunctionBreakpoints=True)
async def set_function_breakpoints(session: Session, arguments: Body) -> Body:
    asked: list[Message] = arguments.get("breakpoints") or []
    ops = [_OP.fullmatch(str(one.get("name"))) is not None for one in asked]
    functions = [one for one, is_op in zip(asked, ops, strict=True) if not is_op]
    session.tracing.functions(functions)
    python = iter(await session.breakpoints.set_functions({**arguments, "breakpoints": functions}))
    tensor = iter(await _set_ops(session, [one for one, is_op in zip(asked, ops, strict=True) if is_op]))
    missing: Message = {"verified": False, "reason": "failed", "message": "debugpy did not answer for this function"}
    return {"breakpoints": [next(tensor if is_op else python, missing) for is_op in ops]}


async def _set_ops(session: Session, asked: list[Message]) -> list[Message]:
    points = session.breakpoints
    before = {item["name"]: item["id"] for item in points.ops}
    items, answers = [], []
    for one in asked:
        answer: Message = {"id": before.get(one["name"]) or points.new_id(), "verified": False}
        answers.append(answer)
        if why := wrong_hits(one.get("hitCondition")) or wrong_expression(one.get("condition")):
            answer.update(reason="failed", message=why)
            continue
        points.alone(answer["id"])
        items.append({"id": answer["id"], "name": one["name"], "condition": one.get("condition"), "hitCondition": one.get("hitCondition")})
    replaced, points.ops = points.ops, items
    if items or replaced:
        await points.answered("opBreakpoints", items, answers)
    return answers
