"""The Disassembly view and breakpoints on instructions."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .addresses import address, named, parse, tile_of, tile_position
from .channel import Message
from .conditions import wrong_expression, wrong_hits
from .errors import RequestError
from .registry import Body, Needs, request
from .stack import source_of

if TYPE_CHECKING:
    from .session import Session

MOST = 100_000
BYTES_SHOWN = 8  # of an instruction's 20 to 100: VS Code gives them a column of its own and no way to scroll


def _short(hexadecimal: str) -> str:
    """The first bytes of an instruction; the listing (dvm/program) is the place for all of them."""
    digits = hexadecimal.replace(" ", "")
    shown = " ".join(digits[i:i + 2] for i in range(0, min(len(digits), 2 * BYTES_SHOWN), 2))
    return shown + ("…" if len(digits) > 2 * BYTES_SHOWN else "")


@request("disassemble", needs=Needs.AGENT, supportsDisassembleRequest=True)
async def disassemble(session: Session, arguments: Body) -> Body:
    """Exactly `instructionCount` entries: what lies before the first or after the last instruction is marked invalid."""
    count = int(arguments.get("instructionCount") or 0)
    if not 0 <= count <= MOST:
        raise RequestError(f"instructionCount is {count}; it must be in 0..{MOST}")
    program, base = parse(arguments.get("memoryReference"), arguments.get("offset") or 0)
    if (tile := tile_of(base)) is not None:
        return {"instructions": await _tile_code(session, program, tile, int(arguments.get("instructionOffset") or 0), count)}
    first = base + int(arguments.get("instructionOffset") or 0)
    start, end = max(first, 0), max(first + count, 0)
    known: dict[int, Message] = {}
    told: Message = {}
    if end > start:
        told = await session.tensors.ask("disassemble", program=program, offset=start, count=end - start)
        known = {entry["index"]: entry for entry in told.get("instructions") or []}
    shown = []
    place: tuple[str, int] | None = None
    for index in range(first, first + count):
        entry = known.get(index)
        if entry is None and index == told.get("total"):
            # Where a line stands that is about to run for the first time in this call.
            shown.append({"address": address(program, index), "instruction": "(next: recorded when its line has run)",
                          "presentationHint": "invalid"})
            continue
        if entry is None:
            shown.append({"address": address(program, index), "instruction": "", "presentationHint": "invalid"})
            continue
        line: Message = {"address": address(program, index), "instruction": str(entry.get("text", ""))}
        if entry.get("bytes"):
            line["instructionBytes"] = _short(str(entry["bytes"]))
        if entry.get("symbol"):
            line["symbol"] = str(entry["symbol"])
        # A place is repeated only where it changes; readers take the last one.
        here = (str(entry["file"]), int(entry.get("line") or 0)) if entry.get("file") else None
        if here is not None and here != place:
            place = here
            line["location"], line["line"] = source_of(here[0]), here[1]
        shown.append(line)
    return {"instructions": shown}


async def _tile_code(session: Session, program: int, tile: tuple[int, int], offset: int, count: int) -> list[Message]:
    """The same of tile instructions, area after area."""
    listed = (await session.tensors.ask("tileDisassemble", program=program)).get("instructions") or []
    places = [(entry["area"], entry["line"]) for entry in listed]
    base = next((number for number, place in enumerate(places) if place >= tile), len(places))
    last = places[-1] if places else (0, 0)
    shown: list[Message] = []
    for number in range(base + offset, base + offset + count):
        if not 0 <= number < len(listed):
            where = tile_position(program, 0, number) if number < 0 else tile_position(program, last[0], last[1] + 1 + number - len(listed))
            shown.append({"address": where, "instruction": "", "presentationHint": "invalid"})
            continue
        entry = listed[number]
        line: Message = {"address": tile_position(program, *places[number]), "instruction": str(entry.get("text", ""))}
        if not named(*places[number]):
            line["presentationHint"] = "invalid"  # it is shown, and no breakpoint can be set there
        line["symbol"] = f"area {entry['area']}"
        if entry.get("file"):
            line["location"], line["line"] = source_of(str(entry["file"])), int(entry.get("sourceLine") or 0)
        shown.append(line)
    return shown


@request("setInstructionBreakpoints", supportsInstructionBreakpoints=True)
async def set_instruction_breakpoints(session: Session, arguments: Body) -> Body:
    """Replaces all instruction breakpoints. A mistake in one is an answer about that one, not an error."""
    points = session.breakpoints
    before = {(item["program"], item["index"]): item["id"] for item in points.instructions}
    answers: list[Message] = []
    items: list[Message] = []
    for asked in arguments.get("breakpoints") or []:
        answer: Message = {"verified": False}
        answers.append(answer)
        try:
            program, index = parse(asked.get("instructionReference"), asked.get("offset") or 0)
        except RequestError as error:
            answer.update(id=points.new_id(), reason="failed", message=str(error))
            continue
        # The same instruction keeps its id over a change of condition.
        answer["id"] = before.get((program, index)) or points.new_id()
        tile = tile_of(index)
        answer["instructionReference"] = address(program, index)  # of tiles as well: an address is a sum
        hits = asked.get("hitCondition")
        if why := wrong_hits(hits) or wrong_expression(asked.get("condition")):
            answer.update(reason="failed", message=why)
            continue
        points.alone(answer["id"])
        where = {"instruction": index} if tile is None else {"area": tile[0], "line": tile[1]}
        items.append({"id": answer["id"], "program": program, "index": index, **where, "condition": asked.get("condition"),
                      "hitCondition": hits})
    points.instructions = items
    await points.answered("instructionBreakpoints", points.on_instructions, answers)
    return {"breakpoints": answers}


@request("dvm/breakInstruction", needs=Needs.AGENT)
async def break_instruction(session: Session, arguments: Body) -> Body:
    """Sets (`on`, the default) or clears a breakpoint before an instruction, beside those of the Disassembly view, which a client
    replaces as a whole. Answers with all that were set this way."""
    program, index, on = arguments["program"], arguments["instruction"], arguments.get("on", True)
    points = session.breakpoints
    replaced = [item for item in points.own if (item["program"], item["instruction"]) == (program, index)]
    points.own = [item for item in points.own if item not in replaced]
    number = points.new_id()
    if on:
        points.alone(number)
        points.own.append({"id": number, "program": program, "index": index, "instruction": index, "condition": None,
                           "hitCondition": None})
    results = (await session.tensors.ask("instructionBreakpoints", items=points.on_instructions)).get("results") or []
    said: Message = next((result for result in results if result.get("id") == number), {})
    if said and not said.get("verified"):
        others = [item for item in points.own if item["id"] != number]  # with what another request has set meanwhile
        taken = any((item["program"], item["instruction"]) == (program, index) for item in others)
        points.own = others if taken else [*others, *replaced]
        await session.tensors.ask("instructionBreakpoints", items=points.on_instructions)
        raise RequestError(str(said.get("message") or f"there is no instruction {index} in program {program}"))
    return {"message": str(said.get("message") or ""),
            "breakpoints": [{"program": item["program"], "instruction": item["instruction"]} for item in points.own]}
