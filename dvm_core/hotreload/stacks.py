"""What calls that are running have read of a name: a new value does not reach what they made of the old one."""
from __future__ import annotations

import collections
import dis
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType

from .live import frames, qualname

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


class Readers:
    """Of a name. places: the modules that have it, with its name there; classes: those whose attribute it is, none for a module's own."""

    def __init__(self, places: list[tuple[ModuleType, str]], classes: list[type]) -> None:
        self._places, self._classes = places, classes
        self._modules, self._names = [module for module, _ in places], {name for _, name in places}

    def found(self, ever: bool = False) -> list[tuple[str, str, int]]:
        """(function, file, line) of calls on any thread's stack that have read it and do not come to that line again: it is in no loop that
        they are in. ever: also of those that do."""
        found: dict[tuple[str, str, int], None] = {}
        seen: set[tuple[CodeType, int, int]] = set()  # a recursion is at the same place many times
        for frame in frames():
            code = frame.f_code
            if code.co_name == "<module>" or self._names.isdisjoint(code.co_names):  # of a module's own code the text tells
                continue
            place = code, frame.f_lasti, id(frame.f_globals)
            if place not in seen:
                seen.add(place)
                found.update(dict.fromkeys((qualname(code), code.co_filename, line) for line in self._past(frame, ever)))
        return list(found)

    def _past(self, frame: FrameType, ever: bool) -> list[int]:
        code, at = frame.f_code, frame.f_lasti
        instructions = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
        loops = [(int(i.argval), i.offset) for i in instructions if _jumps_back(i) and not ever]
        begins = min((first for first, last in loops if first <= at <= last), default=at)  # from here on it runs again
        lines = collections.defaultdict(lambda: code.co_firstlineno, _lines(code))
        read = [i.offset for i, before in zip(instructions, [None, *instructions], strict=False) if self._reads(i, before, frame)]
        again = {lines[offset] for offset in read if offset >= begins and not ever}
        return sorted({lines[offset] for offset in read if offset < begins} - again)

    def _reads(self, instruction: dis.Instruction, before: dis.Instruction | None, frame: FrameType) -> bool:
        """Whether it reads the name: as a global, or as an attribute of the module, the class, or a method's own object."""
        names = frame.f_globals
        if instruction.opname in _GLOBAL and not self._classes:
            return any(vars(place) is names and name == instruction.argval for place, name in self._places)
        if instruction.opname not in _ATTRIBUTE or before is None or instruction.argval not in self._names:
            return False
        if before.opname in _GLOBAL:
            holder = names.get(str(before.argval))
            return any(holder is owner for owner in (self._classes or self._modules))
        code = frame.f_code
        its_own = before.opname.startswith("LOAD_FAST") and code.co_argcount > 0 and before.argval == code.co_varnames[0]
        method_of = qualname(code).rpartition(".")[0]
        return its_own and any(owner.__qualname__ == method_of and owner.__module__ == names.get("__name__") for owner in self._classes)


def _jumps_back(instruction: dis.Instruction) -> bool:
    return "JUMP" in instruction.opname and isinstance(instruction.argval, int) and instruction.argval <= instruction.offset


def _lines(code: CodeType) -> Iterator[tuple[int, int]]:
    for start, end, line in code.co_lines():
        yield from ((offset, line or code.co_firstlineno) for offset in range(start, end, 2))
