"""Modules: what Python has loaded, by debugpy, and the programs that were compiled from it, each with its listing."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .channel import Message
from .registry import Body, request
from .sources import listing_source

if TYPE_CHECKING:
    from .session import Session

COLUMNS: tuple[Message, ...] = (
    {"attributeName": "instructions", "label": "Instructions", "type": "number"},
    {"attributeName": "areas", "label": "Areas", "type": "number"},
    {"attributeName": "launches", "label": "Launches", "type": "number"},
    {"attributeName": "backend", "label": "Device", "type": "string"},
)


def module_of(session: Session, program: Message, device: str = "") -> Message:
    """A compiled program as a module. Its id is a text: debugpy's are numbers."""
    name = f"{program.get('name', 'program')}-{program['id']}"
    shown: Message = {"id": f"dvm:{program['id']}", "name": name, "isUserCode": True, "symbolStatus": "lines and tensor instructions",
                      "version": "backward" if program.get("backward") else "forward"}
    if program.get("file"):
        shown["path"] = program["file"]
    for key in ("instructions", "areas", "launches"):
        if isinstance(program.get(key), int):
            shown[key] = program[key]
    if device:
        shown["backend"] = device
    return shown


def announce(session: Session, program: Message) -> None:
    """A program has just been made: a module and a source more."""
    session.event("module", {"reason": "new", "module": module_of(session, program, str(session.tensors.hello.get("device") or ""))})
    name = f"{program.get('name', 'program')}-{program['id']}"
    session.event("loadedSource", {"reason": "new", "source": listing_source(session, program["id"], name)})


@request("modules", supportsModulesRequest=True, additionalModuleColumns=list(COLUMNS))
async def modules(session: Session, arguments: Body) -> Body:
    """Python's first. `startModule` and `moduleCount` count over both."""
    body = await session.python.ask("modules", {})
    found = list(body.get("modules") or [])
    if session.has_agent:
        told = await session.tensors.ask("programs")
        device = str((await session.tensors.ask("status")).get("device") or "")
        found += [module_of(session, program, device) for program in told.get("programs") or []]
    start, count = max(0, arguments.get("startModule") or 0), arguments.get("moduleCount") or 0
    return {"modules": found[start:start + count] if count else found[start:], "totalModules": len(found)}
