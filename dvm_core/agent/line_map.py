"""From lines to instructions: of each program once, when it is first asked for."""
from __future__ import annotations

import functools
from typing import Any

from .. import _core
from .places import place, real


class LineMap:
    """Which instructions of a program each line became, forward and backward, folded ones too."""

    def __init__(self, places: tuple[int, ...]) -> None:
        self._places = places
        self._lines: dict[str, dict[int, list[int]]] = {}  # real path: line: instructions in order
        self._before: dict[int, int] = {}  # instruction: the one before it that has a place, -1 for none
        last = -1
        for index, number in enumerate(places):
            if number:  # an instruction without a place belongs to the run around it
                where = place(number)
                self._lines.setdefault(where.real, {}).setdefault(where.line, []).append(index)
                self._before[index] = last
                last = index

    def instructions(self, path: str, first: int, last: int) -> list[int]:
        """Those of these lines of a file (path: a real one), in order."""
        lines = self._lines.get(path)
        return sorted(index for line in range(first, last + 1) for index in lines.get(line, ())) if lines else []

    def lines(self, path: str) -> list[int]:
        """Those of a file (path: a real one) that have instructions."""
        return list(self._lines.get(path, ()))

    def runs(self, path: str, first: int, last: int) -> list[int]:
        """The first instruction of each unbroken run of instructions that come from these lines, in one direction."""
        inside = self.instructions(path, first, last)
        known = set(inside)
        return [index for index in inside if (before := self._before[index]) not in known or self._turns(before, index)]

    def _turns(self, before: int, index: int) -> bool:
        return place(self._places[before]).backward != place(self._places[index]).backward


def line_map(program: Any) -> LineMap:
    return _of_number(program.id)


@functools.lru_cache(maxsize=1024)
def _of_number(number: int) -> LineMap:
    # Once per program: its structure, places included, never changes.
    return LineMap(_core.program(number).places)


def runs_of_line(program: Any, path: str, line: int, texts: Any) -> list[Any]:
    """The first instruction of each unbroken run of instructions that come from the statement on that line, in one direction."""
    wanted = real(path)
    runs = line_map(program).runs(wanted, *texts.span(wanted, line))
    if not runs:
        return []
    instructions = program.instructions
    return [instructions[index] for index in runs]
