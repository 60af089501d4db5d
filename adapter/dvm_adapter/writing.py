"""Writes to tensors: an element, a slice, a whole tensor, bytes. After each, whoever shows the tensor is told that it has changed."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .channel import Message
from .errors import RequestError
from .memory import memory_tensor
from .references import is_ours
from .registry import Body, Needs, request
from .stack import TensorFrame, TensorScope, python_below
from .variables import Statistics, Tensor, Values, variable_for

if TYPE_CHECKING:
    from .session import Session


def _tell(session: Session, answer: Message) -> None:
    """`memory` for every reference the client holds on that memory, then `invalidated`: VS Code fetches nothing again by itself."""
    can = session.client_arguments
    touched = set(answer.get("touched") or [])
    for number, tensor in session.references.each(Tensor):
        if tensor.ref in touched:
            tensor.told.pop("stats", None)
            if can.get("supportsMemoryEvent") and can.get("supportsMemoryReferences"):
                session.event("memory", {"memoryReference": hex(number), "offset": 0, "count": tensor.told.get("bytes") or 0})
    if can.get("supportsInvalidatedEvent"):
        session.event("invalidated", {"areas": ["variables"]})


def _row(values: list[Any], shape: list[int]) -> str:
    texts = [str(value) for value in values]
    return texts[0] if not shape and texts else "[" + ", ".join(texts) + (", …]" if len(texts) >= 8 else "]")


@request("setVariable", needs=Needs.STOPPED, supportsSetVariable=True)
async def set_variable(session: Session, arguments: Body) -> Body:
    """A tensor of the scope as a whole, an element, or a row of elements. A value is a number or an expression over tensors."""
    reference = arguments["variablesReference"]
    if not is_ours(reference):
        return await session.python.ask("setVariable", arguments)
    thing, name, value = session.references.get(reference, object), arguments["name"], arguments["value"]
    if isinstance(thing, TensorScope):
        return await _assigned(session, name, value)
    if isinstance(thing, Values):
        if not name.isdecimal() or int(name) >= (thing.shape[0] if thing.shape else 1):
            raise RequestError(f"there is no element {name!r} here")
        prefix = [*thing.prefix, int(name)] if thing.shape else []
        answer = await session.tensors.ask("write", ref=thing.tensor.ref, index=prefix, value=value)
        rest = thing.shape[1:]
        body: Body = {"value": _row(answer.get("values") or [], rest)}
        if rest:
            part = Values(thing.tensor, thing.start + int(name) * _size(rest), rest, tuple(prefix))
            body.update(variablesReference=session.references.add(part), indexedVariables=rest[0])
        _tell(session, answer["tensor"])
        return body
    if isinstance(thing, (Tensor, Statistics)):
        raise RequestError(f"{name} follows from the values: write to those, or to the tensor in the list")
    raise RequestError("there is nothing to write here")


def _size(shape: list[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


async def _assigned(session: Session, expression: str, value: str) -> Body:
    answer = await session.tensors.ask("assign", expression=expression, value=value)
    told: Message = answer["tensor"]
    if list(answer.get("shape") or []) == list(told.get("shape") or []):
        shown = variable_for(session, told, expression)
        kept = ("value", "type", "variablesReference", "namedVariables", "memoryReference")
        body: Body = {key: shown[key] for key in kept if key in shown}
    else:
        body = {"value": _row(answer.get("values") or [], list(answer.get("shape") or [])), "type": str(told.get("dtype", ""))}
    _tell(session, told)
    return body


@request("setExpression", needs=Needs.STOPPED, supportsSetExpression=True)
async def set_expression(session: Session, arguments: Body) -> Body:
    """`h[0, 3]` at a tensor line; what the agent does not know is Python's, in the frame below."""
    if not is_ours(arguments.get("frameId")):
        return await session.python.ask("setExpression", arguments)
    frame = session.references.get(arguments["frameId"], TensorFrame)
    try:
        return await _assigned(session, arguments["expression"], arguments["value"])
    except RequestError as error:
        refused = error
    python = await python_below(session, frame)
    if python is None or not str(refused).startswith(("`", "no tensor")) or "%" in arguments["expression"]:
        raise refused
    try:
        return await session.python.ask("setExpression", {**arguments, "frameId": python["id"]})
    except RequestError as error:
        raise (refused if "NameError" in str(error) else error) from None


@request("writeMemory", needs=Needs.STOPPED, supportsWriteMemoryRequest=True)
async def write_memory(session: Session, arguments: Body) -> Body:
    """Bytes in index order, as `readMemory` gives them. What does not fit is an error, unless the client allows a part to be written."""
    tensor = memory_tensor(session, arguments)
    offset, size = int(arguments.get("offset") or 0), tensor.told.get("bytes")
    data = str(arguments.get("data") or "")
    wanted = len(data.rstrip("=")) * 3 // 4
    if isinstance(size, int) and not arguments.get("allowPartial") and not 0 <= offset <= offset + wanted <= size:
        raise RequestError(f"{wanted} bytes at {offset} do not fit a tensor of {size} bytes")
    answer = await session.tensors.ask("writeMemory", ref=tensor.ref, offset=offset, data=data)
    _tell(session, answer["tensor"])
    return {"bytesWritten": answer["written"]}
