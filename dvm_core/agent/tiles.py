"""Stops between tile instructions: an area of the launch is run again on the inputs it had, tile after tile on one core, as far as asked.

The launch itself stands before the area meanwhile, and is not changed; what the replay computes has the bits that the launch will have."""
from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from .commands import Answer, Arguments, CommandError, command, need
from .places import place
from .tensors import Tensor, listed

if TYPE_CHECKING:
    from .session import Session
    from .views import LaunchView

_LINE = re.compile(r"(\d+): (  )?(.*?)(?: ; %(\d+))?")
_COPY = "it is a copy of a tile's values: set the tensor itself"


@dataclass(frozen=True)
class TileLine:
    """An instruction of a tile. strip: the line of the strip it runs in, its own if it runs alone."""
    line: int
    text: str
    instruction: int
    strip: int

    @property
    def operand(self) -> str:
        """Where its result goes, with what it does: `0x100 Exp.fp32`."""
        words = self.text.replace(",", " ").split()
        return f"{words[1]} {words[0].rpartition('.')[0] or words[0]}" if len(words) > 1 else self.text


def _same(array: Any) -> Any:
    return array


def lines_of(text: str) -> list[TileLine]:
    """The tile instructions of a listing; those that run before the tiles are left out."""
    found: list[TileLine] = []
    head = 0
    for row in text.rpartition("tile:\n")[2].splitlines():
        match = _LINE.fullmatch(row)
        if match is not None:
            head = head if match[2] else int(match[1])
            found.append(TileLine(int(match[1]), match[3], int(match[4] or -1), head))
    # A strip's head is the instruction of the first in it.
    return [line if line.instruction >= 0 or i + 1 == len(found) else TileLine(line.line, line.text, found[i + 1].instruction, line.strip)
            for i, line in enumerate(found)]


def listing(program: Any, area: int) -> list[TileLine]:
    """Of an area as it is fused without hooks; empty for one that there is not, or that moves data."""
    areas = program.fused_areas()
    if not 0 <= area < len(areas) or areas[area].kind == "move":
        return []
    return lines_of(program.fused_tile_text(area))


class Tiles:
    """The replay of one area at a stop."""

    def __init__(self, view: LaunchView, area: int) -> None:
        """Raises the core's error for an area without tile code."""
        self._view = view
        self.replay = view.launch.tile_replay(area)
        self.area = area
        self.lines = {line.line: line for line in listing(view.program, area)}
        self.instructions = view.program.fused_areas()[area].instructions

    def strip(self, line: int) -> int:
        """The line at which what is on that line begins to run."""
        return self.lines[line].strip if line in self.lines else line

    def run_to(self, line: int) -> None:
        """Before that line of the present tile, or the strip it is in; at the end of the tile at the latest."""
        tile = self.replay.tile
        target = self.strip(line)
        while not self.replay.done and self.replay.tile == tile and self.replay.line < target:
            self.replay.step()

    def step(self) -> bool:
        """False: the area has ended."""
        self.replay.step()
        return not self.replay.done

    def message(self) -> Answer:
        """TILE of the wire."""
        row, rows, col, cols = self.replay.place
        line = self.lines.get(self.replay.line)
        return {"area": self.area, "tile": self.replay.tile, "tiles": self.replay.tiles, "line": self.replay.line, "row": row, "rows": rows,
                "col": col, "cols": cols, "text": line.text if line else ""}

    def tensors(self) -> list[Tensor]:
        """What the tile's instructions have made that is still there, the latest first."""
        found = []
        for number, instruction, array, dtype, local in reversed(self.replay.made()):
            line = self.lines.get(number)
            where = line.operand if line else "before the tiles"
            value = self._view.value(len(self._view.inputs) + instruction)
            name = f"{where} {value.name}" if line is None or not line.text.startswith("load") else where
            found.append(Tensor(name, dtype, array.shape, functools.partial(_same, array), value.place, cls="local" if local else "result",
                                fixed=_COPY))
        return found


def enter(view: LaunchView, area: int) -> Tiles | None:
    """The tile code of an area, None if it has none."""
    if not listing(view.program, area):
        return None
    try:
        return Tiles(view, area)
    except _core.Error:
        return None


def line_at(view: LaunchView) -> tuple[int, int]:
    """The area that the instruction is fused into before which the launch stands, and in it the line of the first tile instruction that is
    still to run. Raises CommandError where there is none, with the reason."""
    at, instruction = view.at, view.instructions[view.at]
    if view.launch.next != at:
        raise CommandError("the launch has ended: of its tile code nothing is still to run")
    area = next((area for area in view.program.fused_areas() if at in area.instructions), None)
    if area is None:
        raise CommandError(f"{instruction.name} is in no fused area: it is a view, or is merged into another instruction; stepi leads on")
    lines = listing(view.program, area.index)
    if not lines:
        raise CommandError(f"{instruction.name} moves data: its area has no tile code; stepi leads on")
    line = next((line for own in (True, False) for line in lines if (line.instruction == at if own else line.instruction > at)), None)
    if line is None:
        raise CommandError(f"{instruction.name} has no tile instruction of its own, and none follows in its area; stepi leads on")
    return area.index, line.line


@command("tileValues")
def tile_values(session: Session, arguments: Arguments) -> Answer:
    """What is in local memory, and in the results, of the tile that the stop is in."""
    tiles = getattr(session.stops.require().view, "tiles", None)
    return {"tensors": listed(session.references, tiles.tensors()) if tiles is not None else []}


@command("tileDisassemble")
def tile_disassemble(session: Session, arguments: Arguments) -> Answer:
    """All tile instructions of a program, area after area."""
    program = _core.program(need(arguments, "program", int))
    told = []
    for area in program.fused_areas():
        for line in listing(program, area.index):
            where = place(program.instructions[line.instruction].place) if line.instruction >= 0 else place(0)
            told.append({"area": area.index, "line": line.line, "text": ("  " if line.strip != line.line else "") + line.text,
                         "file": session.breakpoints.given_path(where.path), "sourceLine": where.line, "symbol": where.function})
    return {"instructions": told}
