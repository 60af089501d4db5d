"""Instructions as addresses: what the Disassembly view scrolls over and instruction breakpoints name.

An address is "0x" and 16 hex digits: the program's id in the upper half, the instruction's index plus BIAS in the lower. The bias leaves
room for the positions before the first instruction that a view asks for; texts of one length sort like the numbers."""
from __future__ import annotations

from typing import Any

from .errors import RequestError

BIAS = 1 << 31
_PROGRAM = 32


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
