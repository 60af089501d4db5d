"""The programs of this process: listed, written as bytes, and shown as text at three levels, each with a map back to the source."""

from __future__ import annotations

import sys
import types
from typing import Any

from . import _core, devices, graphtext, memory_plan, symbols
from .devices import report
from .dtypes import describe
from .errors import ArgumentError
from .msbc import Code, dump, function_hash
from .msbc.text import comment, instruction_text, value_name

LEVELS = ("graph", "tensor", "tile")


def programs() -> list[Program]:
    """All programs captured so far, oldest first."""
    return [Program(core) for core in _core.programs()]


def program(number: int) -> Program:
    """The program with that id."""
    return Program(_core.program(number))


class Program:
    """One program: the instructions of one flush, with the shapes and numbers of its last launch."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def __repr__(self) -> str:
        return f"<program {self.id} {self.name}: {len(self.instructions)} instructions, launched {self.launches} times>"

    @property
    def id(self) -> int:
        return self.core.id

    @property
    def name(self) -> str:
        """The captured function's name."""
        return self.core.name

    @property
    def backward(self) -> bool:
        """Whether any of it computes gradients."""
        return self.core.backward

    @property
    def launches(self) -> int:
        """How often it ran."""
        return self.core.launches

    @property
    def instructions(self) -> list[Any]:
        """index, opcode, name, operands, attrs, imms, shape, dtype, place, value_name, folded_into, area of each."""
        return self.core.instructions

    @property
    def areas(self) -> list[Any]:
        """What was fused with what in the last launch: kind, instructions, cut_reason, stack, tiles, ns."""
        return self.core.areas

    @property
    def code(self) -> Code:
        """The program as plain data."""
        return Code.of(self.core)

    @property
    def msbc(self) -> bytes:
        """The program as an MSBC file, see docs/bytecode.md."""
        return dump(self.core)

    def memory_plan(self) -> memory_plan.MemoryPlan:
        """The ALLOC, FREE, COPY and FILL steps of a launch, with the shapes of the last: exact bytes, places, what shares a place."""
        return memory_plan.plan(self.core)

    def hash(self) -> str:
        """SHA-256 of what it does, whatever the shapes and lines: of its instructions' hashes (`msbc.instruction_hashes`)."""
        return function_hash(self.core).hex()

    def passes(self) -> list[tuple[str, str]]:
        """(pass, text) in the order they run, at the last shapes with no hooks: the text before a pass is that of the one before it."""
        return self.core.passes()

    def symbols(self) -> list[symbols.Symbol]:
        """Dimensions that are one by the ops' rules, and what extents each has had."""
        return symbols.symbols_of(self.code, self.core.extents_seen())

    def line_map(self) -> list[dict[str, Any]]:
        """Where each instruction comes from: instruction, area, name, file, line, endLine, column, function, backward, foldedInto."""
        found = []
        for item in self.core.instructions:
            file, line, end_line, column, _, function, backward = (
                _core.place_info(item.place) if item.place else ("", 0, 0, 0, 0, "", False)
            )
            found.append(
                {
                    "instruction": item.index,
                    "area": item.area,
                    "name": item.value_name,
                    "file": file,
                    "line": line,
                    "endLine": end_line,
                    "column": column,
                    "function": function,
                    "backward": backward,
                    "foldedInto": item.folded_into,
                }
            )
        return found

    def text(self, level: str = "tensor") -> tuple[str, list[dict[str, Any]]]:
        """(text, line map) at level graph (DVM's dump), tensor (MSBC instructions by area) or tile (disassembled tile code).

        The map has one entry per line of text that belongs to an instruction: line (from 1), file, sourceLine, instruction, area, backward.
        """
        if level not in LEVELS:
            raise ArgumentError(f"there is no level {level!r}; there are {', '.join(LEVELS)}")
        lines: list[str] = []
        owners: list[int] = []  # instruction of each line, -1 for none
        for text, instruction in getattr(self, f"_{level}")():
            lines.append(text)
            owners.append(instruction)
        sources = self.line_map()
        line_map = [
            {
                "line": number,
                "file": sources[owner]["file"],
                "sourceLine": sources[owner]["line"],
                "instruction": owner,
                "area": sources[owner]["area"],
                "backward": sources[owner]["backward"],
            }
            for number, owner in enumerate(owners, 1)
            if owner >= 0
        ]
        return "\n".join(lines) + "\n", line_map

    def _graph(self) -> list[tuple[str, int]]:
        code = self.code
        lines = [(f"// {symbol}", -1) for symbol in self.symbols()]
        lines += [(f"rgraph.{self.name}() {{", -1)]
        lines += [(f"  {graphtext.line(code, i)}", i) for i in range(len(code.instructions))]
        return [*lines, ("}", -1)]

    def _tensor(self) -> list[tuple[str, int]]:
        code = self.code
        lines = [(f"; program {self.id} {self.name!r}, {len(code.instructions)} instructions, launched {self.launches} times", -1)]
        lines += [(f"{value_name(code, i)} = input {describe(item.dtype, item.shape)}", -1) for i, item in enumerate(code.inputs)]
        shown = set()
        instructions = self.core.instructions
        for area in self.core.fused_areas():
            tiles = f"{area.tiles} tiles of {area.tile_rows} x {area.tile_cols}{_beside(area)}"
            lines += [("", -1), (f"; area {area.index}: {area.kind}, {tiles}. {area.cut_reason}", -1)]
            for i in area.instructions:
                shown.add(i)
                lines.append((self._row(code, i, instructions[i]), i))
        rest = [i for i in range(len(instructions)) if i not in shown]
        if rest:
            lines += [("", -1), ("; no work: views, and what was merged into another instruction", -1)]
            lines += [(self._row(code, i, instructions[i]), i) for i in rest]
        return lines

    @staticmethod
    def _row(code: Code, number: int, item: Any) -> str:
        folded = f" merged into {value_name(code, len(code.inputs) + item.folded_into)}" if item.folded_into >= 0 else ""
        return f"{number:>4}  {instruction_text(code, number):<72}{comment(code.instructions[number])}{folded}".rstrip()

    def _tile(self) -> list[tuple[str, int]]:
        lines: list[tuple[str, int]] = []
        if devices.profiles()[devices.device()]["elsewhere"]:
            return report.calls(self.code, devices.device())
        for area in self.core.areas:
            lines.append((f"// area {area.index}: {area.kind}, tile_num={area.tiles}, tile={area.tile_rows}x{area.tile_cols}", -1))
            for text in self.core.tile_text(area.index).splitlines():
                owner = text.rpartition("; %")[2].strip() if "; %" in text else ""
                lines.append((text, int(owner) if owner.isdigit() else -1))
        return lines


def _beside(area: Any) -> str:
    """Which areas run at the same time as one piece of work."""
    first, last = area.stack[0], area.stack[-1]
    return f", side by side in areas {first} to {last}" if last > first else ""


class _Module(types.ModuleType):
    """This module, callable: importing it binds `dvm_core.programs`, the name of the function, and `dvm.programs()` must stay a call."""

    def __call__(self) -> list[Program]:
        return programs()


sys.modules[__name__].__class__ = _Module
