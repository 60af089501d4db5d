"""Instructions as addresses: what the Disassembly view scrolls over and instruction breakpoints name.

An address is "0x" and 16 hex digits: the program's id in the upper half, the instruction's index plus BIAS in the lower. The bias leaves
room for the positions before the first instruction that a view asks for; texts of one length sort like the numbers. A tile instruction has
TILES plus its area (14 bits) and its line in the area's listing (16 bits) in the lower half: above all instructions of the program."""
from __future__ import annotations

from typing import Any

from .errors import RequestError

BIAS = 1 << 31
TILES = 3 << 30
_PROGRAM, _AREA = 32, 16
_AREAS, _LINES = 1 << 14, 1 << 16  # that have addresses


def address(program: int, index: int) -> str:
    """The text for an instruction; index may be negative or past the end."""
    return f"0x{(program << _PROGRAM) + BIAS + index:016x}"


def parse(reference: Any, offset: int = 0) -> tuple[int, int]:
    """(program, index) of an address, `offset` instructions further. Raises RequestError for a text that is none."""
    try:
        value = int(str(reference), 16) + int(offset or 0)
    except ValueError:
        raise RequestError(f"{reference!r} is not an instruction address") from None
    program, low = value >> _PROGRAM, value & ((1 << _PROGRAM) - 1)
    if program <= 0:
        raise RequestError(f"there is no program at {reference}")
    return program, low - BIAS


def tile_address(program: int, area: int, line: int) -> str:
    """The text for a tile instruction. Raises RequestError for one that has no address."""
    if not named(area, line):
        raise RequestError(f"line {line} of area {area} has no address: there are {_LINES:,} of lines in each of {_AREAS:,} areas")
    return tile_position(program, area, line)


def named(area: int, line: int) -> bool:
    """Whether a tile instruction there has an address."""
    return 0 <= area < _AREAS and 0 <= line < _LINES


def tile_position(program: int, area: int, line: int) -> str:
    """The text for a position in the view of tile code, at which there need be no instruction: before the first one, behind the last."""
    return f"0x{(program << _PROGRAM) + min(TILES + (area << _AREA) + line, (1 << _PROGRAM) - 1):016x}"


def tile_of(index: int) -> tuple[int, int] | None:
    """(area, line) if the index that `parse` gave is a tile instruction's."""
    low = index + BIAS - TILES
    return (low >> _AREA, low & ((1 << _AREA) - 1)) if low >= 0 else None
