"""Programs as lists and texts, and the state of the engine."""
from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, Any

from .. import _core, advice, devices, msbc
from ..dtypes import BY_CODE
from ..errors import ArgumentError
from ..msbc import container as msbc_container
from ..msbc import text as msbc_text
from ..programs import Program
from ..programs import program as find_program
from . import naming
from .commands import Answer, Arguments, CommandError, command, need
from .line_map import line_map
from .places import place, real

if TYPE_CHECKING:
    from .session import Session


def _program(number: int) -> Program:
    try:
        return find_program(number)
    except Exception:  # the core's own error for an unknown id
        raise CommandError(f"there is no program {number}") from None


MOST_SHAPES = 4  # inputs named in the list


@functools.lru_cache(maxsize=8192)
def _standing(number: int) -> tuple[int, str, int]:
    """Of a program, what its structure fixes, so that a list of thousands stays cheap: (instructions, file and line of the first that has a
    place)."""
    places = _core.program(number).places
    where = next((found for found in map(place, places) if found.path), place(0))
    return len(places), where.path, where.line


def described(program: Any) -> Answer:
    """A line of the list. file and line: of its first instruction that has a place."""
    count, file, line = _standing(program.id)
    return {"id": program.id, "name": program.name, "backward": program.backward, "launches": program.launches,
            "instructions": count, "areas": len(program.areas), "file": file, "line": line}


def shapes_of(program: Any) -> list[str]:
    """Its inputs that are no parameters, `f32[32…64,48]`: a dimension that varied is the range of its extents; at most MOST_SHAPES."""
    seen = iter(program.extents_seen())
    told = []
    for (shape, dtype), cls in zip(program.input_shapes, program.input_classes):  # noqa: B905 - one for one
        extents = [next(seen, (dim, dim)) for dim in shape]
        dims = ",".join(str(dim) if low == high else f"{low}…{high}" for dim, (low, high) in zip(shape, extents))  # noqa: B905
        if cls != "parameter":
            told.append(f"{BY_CODE[dtype].short}[{dims}]")
    return told[:MOST_SHAPES]


def _launch_ns(program: Any) -> int:
    """Of the areas in the last launch; what ran side by side counts once, the longest."""
    longest: dict[int, int] = {}
    for area in program.areas:
        longest[area.stack[0]] = max(longest.get(area.stack[0], 0), area.ns)
    return sum(longest.values())


@command("programs")
def programs(session: Session, arguments: Arguments) -> Answer:
    """`selector`: the counters of the table that has ready code by shapes. `advice`: by function, whether it gains from the VM."""
    told = {name: found.told() for name, found in advice.of(_core.stats()).items()}
    listed = [{**described(program), "segments": program.segments, "inputs": program.input_count, "shapes": shapes_of(program),
               "ns": _launch_ns(program)} for program in _core.programs()]
    return {"programs": listed, "selector": selector(), "advice": told}


@command("areas")
def areas(session: Session, arguments: Arguments) -> Answer:
    """The areas of a program as it is fused without hooks, and how many instructions are in none (views, merged ones)."""
    core = _program(need(arguments, "program", int)).core
    told = [{"index": area.index, "kind": area.kind, "reason": area.cut_reason, "stack": list(area.stack), "tiles": area.tiles,
             "tileRows": area.tile_rows, "tileCols": area.tile_cols, "ns": area.ns, "instructions": len(area.instructions)}
            for area in core.fused_areas()]
    return {"areas": told, "noWork": _standing(core.id)[0] - sum(area["instructions"] for area in told)}


@command("instructions")
def instructions(session: Session, arguments: Arguments) -> Answer:
    """offset .. offset + count of an area's instructions (-1: those in none)."""
    core = _program(need(arguments, "program", int)).core
    found, fused = core.instructions, core.fused_areas()
    area_of = {index: area.index for area in fused for index in area.instructions}
    number = need(arguments, "area", int, -1)
    mine = [i for i in range(len(found)) if i not in area_of] if number < 0 else \
        [i for area in fused if area.index == number for i in area.instructions]
    offset = max(0, need(arguments, "offset", int, 0))
    chosen = mine[offset:offset + need(arguments, "count", int, len(mine))]
    names, inputs = naming.of_program(core), core.input_count
    told = [_row(session, found[i], inputs) | {"area": area_of.get(i, -1), "name": names.get(i, "")} for i in chosen]
    return {"instructions": told, "total": len(mine)}


def _row(session: Session, item: Any, inputs: int) -> Answer:
    where = place(item.place)
    text = msbc_text.text_of(msbc.Instruction.of(item, None), item.index, inputs)
    return {"index": item.index, "text": text, "foldedInto": item.folded_into,
            "file": session.breakpoints.given_path(where.path), "line": where.line, "function": where.function,
            "backward": where.backward}


@command("line")
def line(session: Session, arguments: Arguments) -> Answer:
    """path, line: what the statement there became, by program: numbers of its instructions, backward ones too."""
    path = need(arguments, "path", str)
    wanted = real(path)
    first, last = session.texts.span(wanted, need(arguments, "line", int))
    told = []
    for core in _core.programs():
        mine = line_map(core).instructions(wanted, first, last)
        if mine:
            told.append({**described(core), "found": mine})
    return {"programs": told, "line": first, "endLine": last}


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
