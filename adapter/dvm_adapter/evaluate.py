"""Expressions: tensors by the agent, Python by debugpy, hovers without side effects."""
from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dvm_wire import syntax

from .channel import Message
from .columns import before, units
from .conditions import NUMBERED
from .errors import RequestError
from .references import is_ours
from .registry import Body, request
from .stack import TensorFrame, python_below
from .variables import Tensor, in_hex, variable_for, wants_hex

if TYPE_CHECKING:
    from .session import Session

# What a hover may contain: looking things up and computing with them. Calls, awaits and assignments may change the program.
_HARMLESS = (
    ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp,
    ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)
# What a dot follows: a name, `%4`, an element or slice of one.
_OWNER = re.compile(r"(?:%i?[0-9]+|[^\W\d]\w*)(?:\.\w+|\[[^\[\]]*\])*$")
CLIPBOARD_ELEMENTS = 1000


def is_harmless(expression: str) -> bool:
    """True if evaluating `expression` in Python cannot call anything by its own words (a property may still do so)."""
    try:
        tree = syntax.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(node, _HARMLESS) for node in ast.walk(tree))


@request("evaluate", supportsEvaluateForHovers=True, supportsClipboardContext=True)
async def evaluate(session: Session, arguments: Body) -> Body:
    expression = str(arguments.get("expression", ""))
    context = arguments.get("context")
    if is_ours(arguments.get("frameId")):
        return await _at_tensor_line(session, arguments, expression, context)
    if context == "hover" and not is_harmless(expression):
        raise RequestError("a hover does not run code: evaluate this in the debug console")
    return await session.python.ask("evaluate", arguments)


async def _at_tensor_line(session: Session, arguments: Body, expression: str, context: str | None) -> Body:
    """The agent first, then Python below: both are what the person sees as one frame."""
    frame = session.references.get(arguments["frameId"], object)
    if isinstance(frame, TensorFrame) and session.has_agent:
        try:
            answer = await session.tensors.ask("evaluate", expression=expression, frame=frame.stop.tensor and frame.stop.tensor.get("ref"))
            return await _result(session, answer, expression, context, wants_hex(arguments))
        except RequestError as error:
            refused: RequestError | None = error
    else:
        refused = None
    python = await python_below(session, frame) if isinstance(frame, TensorFrame) else None
    if python is None or NUMBERED.search(expression.strip()) or (context == "hover" and not is_harmless(expression)):
        raise refused or RequestError("nothing can be evaluated here")
    try:
        return await session.python.ask("evaluate", {**arguments, "frameId": python["id"]})
    except RequestError as error:
        # A name Python does not know says less than what the agent knows about it.
        raise (refused if refused and "NameError" in str(error) else error) from None


async def _result(session: Session, answer: Message, expression: str, context: str | None, as_hex: bool) -> Body:
    told: Message = answer.get("tensor") or answer
    if "shape" not in told:
        result = str(answer.get("result", ""))
        return {"result": in_hex(result) if as_hex else result, "variablesReference": 0}
    if context == "clipboard" and told.get("computed"):
        return {"result": await _literal(session, Tensor(told)), "variablesReference": 0}
    shown = variable_for(session, told, expression)
    shown["result"] = shown.pop("value")
    del shown["name"]
    shown.pop("evaluateName", None)
    return shown


async def _literal(session: Session, tensor: Tensor) -> str:
    """All elements as nested brackets, for the clipboard; bounded."""
    shape = tensor.shape
    total = 1
    for extent in shape:
        total *= extent
    if total > CLIPBOARD_ELEMENTS:
        return str(tensor.told.get("summary"))
    told = await session.tensors.ask("elements", ref=tensor.ref, start=0, count=total)
    texts = iter(told.get("values") or [])

    def nested(axes: list[int]) -> str:
        if not axes:
            return str(next(texts, "?"))
        return "[" + ", ".join(nested(axes[1:]) for _ in range(axes[0])) + "]"

    return nested(shape)


@request("completions", supportsCompletionsRequest=True, completionTriggerCharacters=[".", "["])
async def completions(session: Session, arguments: Body) -> Body:
    """Columns count UTF-16 units here and characters in debugpy."""
    reference = arguments.get("frameId")
    lines = arguments["text"].split("\n")
    line = lines[min(max(arguments.get("line", 1), 1), len(lines)) - 1]
    text = before(line, arguments["column"])
    if not is_ours(reference):
        return {"targets": await _of_python(session, arguments, line, text)}
    frame = session.references.get(reference, TensorFrame)
    targets: list[Message] = []
    word = text[len(text.rstrip("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")):]
    if session.has_agent and not text[: len(text) - len(word)].endswith("."):
        names = {str(told.get("name")) for told in (await session.tensors.ask("tensors")).get("tensors") or []}
        targets = [{"label": name, "type": "variable"} for name in sorted(names) if name.isidentifier() and name.startswith(word)]
    left = text[: len(text) - len(word)]
    if session.has_agent and left.endswith(".") and (owner := _OWNER.search(left[:-1])):
        told = await session.tensors.ask("members", expression=owner[0])
        for key, kind in (("attributes", "property"), ("methods", "method")):
            targets += [{"label": name, "type": kind} for name in told.get(key) or [] if name.startswith(word)]
        if targets:
            return {"targets": targets}
    python = await python_below(session, frame)
    if python is not None:
        below = await _of_python(session, {**arguments, "frameId": python["id"]}, line, text)
        known = {target["label"] for target in targets}
        targets += [target for target in below if target.get("label") not in known]
    return {"targets": targets}


async def _of_python(session: Session, arguments: Body, line: str, text: str) -> list[Message]:
    """debugpy's completions behind the text, which is what stands before the column in the line."""
    body = await session.python.ask("completions", {**arguments, "column": len(text) + 1})
    targets: list[Message] = body.get("targets") or []
    return [{**target, "start": units(line[:target["start"]])} if isinstance(target.get("start"), int) else target for target in targets]

