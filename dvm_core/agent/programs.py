"""Programs as lists and texts, and the state of the engine."""
from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from .. import _core, advice, devices, msbc
from ..errors import ArgumentError
from ..msbc import container as msbc_container
from ..msbc import text as msbc_text
from ..programs import Program
from ..programs import program as find_program
from .commands import Answer, Arguments, CommandError, command, need
from .places import place

if TYPE_CHECKING:
    from .session import Session


def _program(number: int) -> Program:
    try:
        return find_program(number)
    except Exception:  # the core's own error for an unknown id
        raise CommandError(f"there is no program {number}") from None


def described(program: Any) -> Answer:
    """A line of the list. file and line: of its first instruction that has a place."""
    instructions = program.instructions
    where = next((found for found in (place(i.place) for i in instructions) if found.path), place(0))
    return {"id": program.id, "name": program.name, "backward": program.backward, "launches": program.launches,
            "instructions": len(instructions), "areas": len(program.areas), "file": where.path, "line": where.line}


@command("programs")
def programs(session: Session, arguments: Arguments) -> Answer:
    """`selector`: the counters of the table that has ready code by shapes. `advice`: by function, whether it gains from the VM."""
    told = {name: found.told() for name, found in advice.of(_core.stats()).items()}
    listed = [{**described(program), "segments": program.segments} for program in _core.programs()]
    return {"programs": listed, "selector": selector(), "advice": told}


def selector() -> Answer:
    stats = _core.stats()
    return {name: stats[f"selector_{name}"] for name in ("hits", "misses", "clusters", "warmed", "evictions", "segments", "bytes")}


@command("program")
def program(session: Session, arguments: Arguments) -> Answer:
    """Its text at level graph, tensor or tile, with the source line and instruction of each line."""
    try:
        text, line_map = _program(need(arguments, "program", int)).text(need(arguments, "level", str, "tensor"))
    except ArgumentError as error:
        raise CommandError(str(error)) from None
    return {"text": text, "lineMap": line_map}


@command("disassemble")
def disassemble(session: Session, arguments: Arguments) -> Answer:
    """Instructions offset .. offset + count as MSBC text and bytes."""
    found = _program(need(arguments, "program", int))
    offset, count = need(arguments, "offset", int, 0), need(arguments, "count", int)
    code = found.code
    total = len(code.instructions)
    data = msbc.dump(found.core, sections=False)
    starts, end = msbc_container.walk(data)
    told = []
    for index in range(max(0, offset), min(total, offset + count)):
        where = place(found.instructions[index].place)
        part = data[starts[index]:starts[index + 1] if index + 1 < total else end]
        told.append({"index": index, "bytes": part.hex(" "), "text": msbc_text.instruction_text(code, index),
                     "file": session.breakpoints.given_path(where.path), "line": where.line, "symbol": where.function})
    return {"instructions": told, "total": total}


@command("msbc")
def msbc_file(session: Session, arguments: Arguments) -> Answer:
    """The whole container of a program, sections included."""
    return {"data": base64.b64encode(msbc.dump(_program(need(arguments, "program", int)).core)).decode()}


@command("status")
def status(session: Session, arguments: Arguments) -> Answer:
    stats = _core.stats()
    hits, misses = stats.get("selector_hits", 0), stats.get("selector_misses", 0)
    last = session.reloader.last
    return {"device": devices.device(), "devices": devices.names(), "rank": session.rank, "programs": stats.get("programs", 0),
            "launches": stats.get("launches", 0), "selectorHitRate": hits / (hits + misses) if hits + misses else None,
            "compileUs": stats.get("compile_us"), "reload": last.message() if last else None, "step": session.step(), "stats": stats}
