"""The dvm/ requests of the panels: status, watches, tensors, memory, programs."""
from __future__ import annotations

import asyncio
import base64
import os
from typing import TYPE_CHECKING, Any

from . import memory_html
from .channel import Message
from .errors import RequestError
from .registry import Body, Needs, request
from .variables import Tensor

if TYPE_CHECKING:
    from .session import Session

LEVELS = ("graph", "tensor", "tile")
MOST_BUFFERS = 20_000  # in one answer, the newest; `steps` asks for others


def given(arguments: Body, names: tuple[str, ...]) -> Body:
    """Those of the arguments that a request has."""
    return {name: arguments[name] for name in names if name in arguments}


@request("dvm/status", needs=Needs.NOTHING)
async def status(session: Session, arguments: Body) -> Body:
    """Always answerable: `connected` says whether there is a tensor engine to ask."""
    body: Body = {"connected": session.has_agent, "hotReload": session.config.settings["hotReload"], "watches": session.watches.all()}
    if session.has_agent:
        body.update(await session.tensors.ask("status"))
    return body


@request("dvm/watch", needs=Needs.NOTHING)
async def watch(session: Session, arguments: Body) -> Body:
    return await session.watches.add(arguments)


@request("dvm/unwatch", needs=Needs.NOTHING)
async def unwatch(session: Session, arguments: Body) -> Body:
    await session.watches.remove(arguments["watchId"])
    return {}


def reference_of(session: Session, arguments: Body) -> Any:
    """The agent's reference for a request that names a tensor: `variablesReference`, `memoryReference`, or `ref` as the agent gave it."""
    if arguments.get("variablesReference") is not None:
        return session.references.get(arguments["variablesReference"], Tensor).ref
    if arguments.get("memoryReference") is not None:
        try:
            reference = int(str(arguments["memoryReference"]), 0)
        except ValueError:
            raise RequestError(f"{arguments['memoryReference']!r} is not a memory reference of this session") from None
        return session.references.get(reference, Tensor).ref
    if arguments.get("ref") is not None:
        return arguments["ref"]
    raise RequestError('a tensor is named by "variablesReference", "memoryReference", "ref", "expression" or "watchId"')


@request("dvm/tensor", needs=Needs.AGENT)
async def tensor(session: Session, arguments: Body) -> Body:
    """A tensor with statistics and bytes (base64), or a placeholder and the reason. A watchId means the newest snapshot."""
    if arguments.get("watchId") is not None:
        watched = session.watches.get(arguments["watchId"])
        if not watched.asked.get("keep"):
            if not watched.last:
                raise RequestError(f"there is no snapshot of {watched.asked['name']} yet")
            return watched.last
    named = await named_tensor(session, arguments)
    limit = arguments.get("maxBytes", session.config.settings["snapshotMaxBytes"])
    return await session.tensors.ask("tensor", **named, maxBytes=limit, **given(arguments, ("slice", "offset")))


async def named_tensor(session: Session, arguments: Body) -> Body:
    """The agent's arguments for a request that names a tensor: by `expression` or a reference at a stop, or what a watch keeps by `watchId`
    and `snapshot`."""
    if arguments.get("watchId") is not None:
        watched = session.watches.get(arguments["watchId"])
        if not watched.asked.get("keep"):
            raise RequestError(f"the watch of {watched.asked['name']} keeps no snapshots: ask for some with \"keep\"")
        snapshot = arguments.get("snapshot")
        return {"watch": watched.at_agent, **({} if snapshot is None else {"snapshot": snapshot})}
    return {"ref": await _evaluated(session, arguments) if arguments.get("expression") else reference_of(session, arguments)}


async def _evaluated(session: Session, arguments: Body) -> Any:
    answer = await session.tensors.ask("evaluate", expression=str(arguments["expression"]))
    told: Message = answer.get("tensor") or answer
    if told.get("ref") is None:
        raise RequestError(f"{arguments['expression']} is no tensor: {answer.get('result')}")
    return told["ref"]


@request("dvm/memory", needs=Needs.AGENT)
async def memory(session: Session, arguments: Body) -> Body:
    """Buffers of a range of steps. With `html`: the picture too, as text (true) or written to a file (its path).

    With `program`: what one launch of it does with memory."""
    if "program" in arguments:
        return await session.tensors.ask("memory", program=arguments["program"])
    session.watches.memory_wanted = True
    wanted: Body = {"steps": [arguments["step"]] * 2} if "step" in arguments else given(arguments, ("steps",))
    body = await session.tensors.ask("memory", **wanted)
    if len(body.get("buffers") or []) > MOST_BUFFERS:
        body["leftOut"] = len(body["buffers"]) - MOST_BUFFERS
        body["buffers"] = body["buffers"][-MOST_BUFFERS:]
    if arguments.get("html") is True:
        body["html"] = await asyncio.to_thread(memory_html.render, body, str(arguments.get("title") or "Memory View"))
    elif arguments.get("html"):
        path = os.path.abspath(str(arguments["html"]))
        body["html"] = path
        body["htmlBytes"] = await asyncio.to_thread(write_text, path, body, str(arguments.get("title") or ""))
    return body


def write_text(path: str, body: Message, title: str) -> int:
    """Renders and writes the memory page; the number of bytes written. Raises RequestError when the file cannot be written."""
    data = memory_html.render(body, title).encode()
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", show=True) from None
    return len(data)


@request("dvm/programs", needs=Needs.AGENT)
async def programs(session: Session, arguments: Body) -> Body:
    return await session.tensors.ask("programs")


@request("dvm/program", needs=Needs.AGENT)
async def program(session: Session, arguments: Body) -> Body:
    """One program: as text, or (level "areas") as data: its areas, or with `area` the instructions of one."""
    number, level = arguments.get("id", arguments.get("program")), arguments.get("level", "tensor")
    if number is None:
        raise RequestError('dvm/program without "id": the number of a program (see dvm/programs)')
    if level == "areas":
        if arguments.get("area") is None:
            return await session.tensors.ask("areas", program=number)
        body = await session.tensors.ask("instructions", program=number, **given(arguments, ("area", "offset", "count")))
        stops = {item["instruction"] for item in session.breakpoints.own if item["program"] == number}
        for row in body.get("instructions") or []:
            row["breakpoint"] = row["index"] in stops
        return body
    if level not in LEVELS:
        raise RequestError(f'"level" is {level!r}; allowed: {", ".join(LEVELS)}, areas')
    return await session.tensors.ask("program", program=number, level=level)


@request("dvm/line", needs=Needs.AGENT)
async def line(session: Session, arguments: Body) -> Body:
    """What a source line became: programs with the numbers of its instructions."""
    return await session.tensors.ask("line", path=arguments["path"], line=arguments["line"])


@request("dvm/device", needs=Needs.AGENT)
async def device(session: Session, arguments: Body) -> Body:
    return await session.tensors.ask("device", device=arguments["device"])


async def tensor_bytes(session: Session, named: Body) -> tuple[Message, bytes]:
    """The whole of a tensor in index order, fetched in parts no larger than a frame."""
    told = await session.tensors.ask("tensor", **named, maxBytes=0)
    size = int(told.get("bytes") or 0)
    parts, offset = [], 0
    while offset < size:
        part = await session.tensors.ask("evaluateMemory", **named, offset=offset, count=min(size - offset, 8 << 20))
        data = base64.b64decode(part.get("data") or "")
        if not data:
            raise RequestError(f"only {offset} of {size} bytes could be read")
        parts.append(data)
        offset += len(data)
    return told, b"".join(parts)
