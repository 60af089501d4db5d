"""What calls that are running have read of a name: a new value does not reach what they made of the old one."""
from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_MOST = 200  # calls of a stack that are looked at, the innermost first


def readers(places: list[tuple[ModuleType, str]], owner: str) -> list[tuple[str, str, int]]:
    """(function, file, line) of calls on any thread's stack that have read the name and do not come to that line again: outside of a loop
    that they are in. places: the modules that have it, with its name there; owner: the class that it is in, "" for a module's own."""
    found: dict[tuple[str, str, int], None] = {}
    for frame in _frames():
        code = frame.f_code
        if code.co_name != "<module>":  # whose text tells
            name = getattr(code, "co_qualname", code.co_name)
            found.update(dict.fromkeys((name, code.co_filename, line) for line in _past(frame, places, owner)))
    return list(found)


def _frames() -> Iterator[FrameType]:
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        for _ in range(_MOST):
            if frame is None:
                break
            yield frame
            frame = frame.f_back


def _past(frame: FrameType, places: list[tuple[ModuleType, str]], owner: str) -> list[int]:
    """Lines that the call has read the name in, and does not come to again."""
    code, at = frame.f_code, frame.f_lasti
    if not any(name in code.co_names for _, name in places):
        return []
    instructions = list(dis.get_instructions(code))
    loops = [(int(i.argval), i.offset) for i in instructions if _jumps_back(i)]
    begins = min((first for first, last in loops if first <= at <= last), default=at)  # from here on it runs again
    lines = dict(_lines(code))
    read = [i.offset for i, before in zip(instructions, [None, *instructions], strict=False) if _reads(i, before, frame, places, owner)]
    again = {lines[offset] for offset in read if offset >= begins}
    return sorted({lines[offset] for offset in read if offset < begins} - again)


def _jumps_back(instruction: dis.Instruction) -> bool:
    return "JUMP" in instruction.opname and isinstance(instruction.argval, int) and instruction.argval <= instruction.offset


def _lines(code: CodeType) -> Iterator[tuple[int, int]]:
    for start, end, line in code.co_lines():
        yield from ((offset, line or code.co_firstlineno) for offset in range(start, end, 2))


def _reads(instruction: dis.Instruction, before: dis.Instruction | None, frame: FrameType, places: list[tuple[ModuleType, str]],
           owner: str) -> bool:
    """Whether it reads the name: of a module as a global or as an attribute of the module, of a class as its or its objects' attribute."""
    names = frame.f_globals
    if instruction.opname in _GLOBAL and not owner:
        return any(vars(place) is names and name == instruction.argval for place, name in places)
    if instruction.opname not in _ATTRIBUTE or before is None or not any(name == instruction.argval for _, name in places):
        return False
    if before.opname in _GLOBAL:
        holder: Any = names.get(str(before.argval))
        return any(holder is place for place, _ in places) if not owner else getattr(holder, "__qualname__", "") == owner
    name = getattr(frame.f_code, "co_qualname", "")
    return bool(owner) and before.opname.startswith("LOAD_FAST") and name.rpartition(".")[0] == owner
