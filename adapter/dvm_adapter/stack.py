"""One call stack: the tensor line, a label, then Python's frames."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .addresses import address, named, tile_address
from .channel import Message
from .references import is_ours
from .registry import Body, Needs, request
from .stops import Stop

if TYPE_CHECKING:
    from .session import Session

LABEL = "── Python ──"


@dataclass
class TensorFrame:
    """What a frame id of ours stands for. python: debugpy's frame below it, once known."""

    stop: Stop
    python: Message | None = None


@dataclass
class LabelFrame:
    """The divider; it has no scopes."""


@dataclass
class TensorScope:
    """The scope of all tensors of a frame."""

    frame: TensorFrame


@dataclass
class TileScope:
    """The scope of what the tile's instructions have made."""


def source_of(path: str) -> Message:
    return {"name": os.path.basename(path), "path": path}


def tensor_frame(session: Session, stop: Stop) -> TensorFrame:
    """The stop's tensor frame; its id is the same for all of the stop."""
    if not stop.tensor_frame:
        stop.tensor_frame = session.references.add(TensorFrame(stop))
    return session.references.get(stop.tensor_frame, TensorFrame)


def _shown(stop: Stop) -> Message:
    frame = stop.tensor or {}
    name = str(frame.get("name") or frame.get("opcode") or "tensor program")
    if frame.get("backward"):
        name = "backward of " + name
    shown: Message = {"id": stop.tensor_frame, "name": name, "line": frame.get("line") or 0, "column": frame.get("column") or 0}
    if frame.get("path"):
        shown["source"] = source_of(frame["path"])
        if frame.get("endLine"):
            shown["endLine"] = frame["endLine"]
    if isinstance(frame.get("program"), int) and isinstance(frame.get("instruction"), int):
        shown["instructionPointerReference"] = address(frame["program"], frame["instruction"])
    tile = frame.get("tile")
    if tile and "instructionPointerReference" in shown:
        if named(tile["area"], tile["line"]):
            shown["instructionPointerReference"] = tile_address(frame["program"], tile["area"], tile["line"])
        shown["name"] = f"{name}  ▸ tile {tile['tile'] + 1} of {tile['tiles']}"
    return shown


@request("stackTrace", supportsDelayedStackTraceLoading=True, supportsValueFormattingOptions=True)
async def stack_trace(session: Session, arguments: Body) -> Body:
    stop = session.stops.current
    if stop is None or stop.tensor is None or arguments.get("threadId") != stop.thread:
        body = await _python_stack(session, arguments)
        await session.reloads.date(arguments.get("threadId"), body.get("stackFrames") or [])
        return body
    tensor_frame(session, stop)
    ours = [_shown(stop)]
    session.reloads.place(ours[0])
    if not stop.python:
        return {"stackFrames": ours, "totalFrames": 1}
    stop.label_frame = stop.label_frame or session.references.add(LabelFrame())
    ours.append({"id": stop.label_frame, "name": LABEL, "line": 0, "column": 0, "presentationHint": "label"})
    start = arguments.get("startFrame") or 0
    levels = arguments.get("levels") or 0
    mine = ours[start:start + levels] if levels else ours[start:]
    rest = levels - len(mine)
    if levels and rest <= 0:
        # The number of Python's frames is still wanted; one frame is the least that can be asked for.
        body = await session.python.ask("stackTrace", {**arguments, "startFrame": 0, "levels": 1})
        return {"stackFrames": mine, "totalFrames": (body.get("totalFrames") or 1) + len(ours)}
    forwarded = {**arguments, "startFrame": max(0, start - len(ours))}
    if levels:
        forwarded["levels"] = rest
    body = await _python_stack(session, forwarded)
    frames = body.get("stackFrames") or []
    await session.reloads.date(stop.thread, frames)
    if start <= len(ours) and frames:
        tensor_frame(session, stop).python = frames[0]
    return {"stackFrames": mine + frames, "totalFrames": (body.get("totalFrames") or len(frames)) + len(ours)}


async def _python_stack(session: Session, arguments: Body) -> Body:
    """debugpy's answer, its files under the paths that the client knows them by."""
    body = await session.python.ask("stackTrace", arguments)
    for frame in body.get("stackFrames") or []:
        source = frame.get("source") or {}
        if isinstance(source.get("path"), str) and (path := session.breakpoints.given_path(source["path"])) != source["path"]:
            frame["source"] = {**source, "path": path}
    return body


async def python_below(session: Session, frame: TensorFrame) -> Message | None:
    """debugpy's top frame under a tensor frame, None where Python does not stand."""
    if frame.python is None and frame.stop.python:
        body = await _python_stack(session, {"threadId": frame.stop.thread, "startFrame": 0, "levels": 1})
        frame.python = next(iter(body.get("stackFrames") or []), None)
    return frame.python


def _same_place(stop: Stop, python: Message) -> bool:
    """Python stands on the tensor line's own function."""
    frame = stop.tensor or {}
    return ((python.get("source") or {}).get("path") == frame.get("path") and not frame.get("backward")
            and str(frame.get("function") or "").rpartition(".")[2] == str(python.get("name") or "").rpartition(".")[2])


@request("scopes", needs=Needs.STOPPED)
async def scopes(session: Session, arguments: Body) -> Body:
    reference = arguments.get("frameId")
    if not is_ours(reference):
        return await session.python.ask("scopes", arguments)
    if session.stops.current is not None and session.stops.current.label_frame == reference:
        return {"scopes": []}
    frame = session.references.get(reference, TensorFrame)
    found = [{"name": "Tensors", "variablesReference": session.references.add(TensorScope(frame)), "expensive": False}]
    if (frame.stop.tensor or {}).get("tile"):
        found.append({"name": "Local memory", "variablesReference": session.references.add(TileScope()), "expensive": False,
                      "presentationHint": "registers"})
    python = await python_below(session, frame)
    if python is not None:
        below = (await session.python.ask("scopes", {"frameId": python["id"]})).get("scopes") or []
        if not _same_place(frame.stop, python):
            # Python stands elsewhere, say where the backward pass was started: its names are not those of the tensor line.
            where = f"{python.get('name')}:{python.get('line')}"
            below = [{**scope, "name": f"{scope['name']} of {where}"} for scope in below]
        found += below
    return {"scopes": found}
