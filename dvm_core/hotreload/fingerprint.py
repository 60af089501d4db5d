"""How much of the bytecode an edit changed: instructions compared by SHA-256 before and after."""
from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import describe
from ..msbc import Instruction
from ..msbc.text import text_of

_MOST_LISTED = 50_000  # instructions of the newest programs that are kept until the next step has passed, to be listed
_MOST_PROGRAMS = 200  # newest ones looked at; a process with more has shapes or batches without end


@dataclass(frozen=True)
class Fingerprint:
    """One program at one moment."""
    id: int
    name: str
    launches: int
    inputs: tuple[Any, ...]
    exact: tuple[bytes, ...]  # with shapes: comparable where the inputs' shapes are the same
    ranked: tuple[bytes, ...]  # with ranks: comparable whatever the batch was
    backward: bool = False
    instructions: tuple[Any, ...] = field(default=(), compare=False)  # () where they were not kept

    def common(self, other: Fingerprint) -> int:
        """How many instructions the two share."""
        pairs = (self.exact, other.exact) if self.inputs == other.inputs else (self.ranked, other.ranked)
        return (Counter(pairs[0]) & Counter(pairs[1])).total()


    def lines(self) -> list[str]:
        """An instruction a line, without places: `%1 = ADD(%i0, 0.5) f32[32,64]  ; h`."""
        rows = [f"%i{i} = input {describe(dtype, shape)}" for i, (shape, dtype) in enumerate(self.inputs)]
        for item in self.instructions:
            text = text_of(Instruction.of(item, None), item.index, len(self.inputs))
            rows.append(f"{text:<64}  ; {item.value_name}" if item.value_name else text)
        return rows


def of(program: Any, listed: bool = True) -> Fingerprint:
    """Of a `_core.Program`, with the shapes and immediates of its last launch. listed: its instructions are kept as well."""
    inputs = tuple((tuple(shape), dtype) for shape, dtype in program.input_shapes)
    instructions = program.instructions
    return Fingerprint(program.id, program.name, program.launches, inputs, tuple(_hash(i, inputs, tuple(i.shape)) for i in instructions),
                       tuple(_hash(i, inputs, len(i.shape)) for i in instructions), program.backward,
                       tuple(instructions) if listed else ())


def _hash(instruction: Any, inputs: tuple[Any, ...], shape: Any) -> bytes:
    # Operands by distance, inputs by what they are: an instruction or input put in or taken out does not change every one behind it.
    here, count = len(inputs) + instruction.index, len(inputs)
    operands = tuple(o - here if o >= count else ("input", inputs[o][1], len(inputs[o][0])) if o >= 0 else o for o in instruction.operands)
    words = (instruction.opcode, tuple(instruction.attrs), tuple(instruction.imms), operands, shape, instruction.dtype)
    return hashlib.sha256(repr(words).encode()).digest()


def snapshot(programs: Iterable[Any]) -> dict[int, Fingerprint]:
    found: dict[int, Fingerprint] = {}
    room = _MOST_LISTED
    for program in reversed(list(programs)[-_MOST_PROGRAMS:]):
        if program.launches:
            kept = of(program, listed=room > 0)
            room -= len(kept.exact)
            found[program.id] = kept
    return found


def launches(programs: Iterable[Any]) -> dict[int, int]:
    return {p.id: p.launches for p in programs}


def replaced(at_swap: dict[int, int], programs: Iterable[Any]) -> list[Any]:
    """Programs of functions that were launched since the swap, which were not launched themselves: others run in their place."""
    programs = list(programs)
    names = {program.name for program in programs if program.launches > at_swap.get(program.id, 0)}
    return [program for program in programs if program.name in names and program.launches == at_swap.get(program.id)]


@dataclass(frozen=True)
class Change:
    """A program launched since a swap, and the one that ran in its place (None: there was none)."""
    before: Fingerprint | None
    now: Fingerprint
    differing: int  # instructions

    def message(self) -> dict[str, Any]:
        """As the wire and DAP carry it. `listed`: false where the old instructions were too many to be kept."""
        listed = self.before is None or bool(self.before.instructions) or not self.before.exact
        return {
            "program": self.now.id, "name": self.now.name, "backward": self.now.backward, "instructionsPatched": self.differing,
            "instructionsTotal": len(self.now.exact), "listed": listed,
            "before": self.before.lines() if self.before and listed else [], "now": self.now.lines() if listed else [],
        }


def patched(before: dict[int, Fingerprint], at_swap: dict[int, int], programs: Iterable[Any],
            in_use: dict[str, set[int]]) -> tuple[int, int, list[Change]]:
    """(instructions that differ, instructions in all, programs with such) over the programs launched since the swap.

    Each is compared with the program that ran in its place: of the same name, in use before, and with most in common. in_use: name -> ids
    launched by the trial before this one; brought up to date here."""
    changed = total = 0
    found: list[Change] = []
    launched = [program for program in programs if program.launches > at_swap.get(program.id, 0)]
    for program in launched:
        now = of(program)
        known = [before[number] for number in in_use.get(now.name, ()) if number in before]
        known = known or ([before[now.id]] if now.id in before else [b for b in before.values() if b.name == now.name])
        total += len(now.exact)
        former = max(known, key=now.common, default=None)
        differing = len(now.exact) - (now.common(former) if former else 0)
        changed += differing
        # What was only taken out leaves nothing that differs, and is a change all the same.
        if differing or (former and len(former.exact) != len(now.exact)):
            found.append(Change(former, now, differing))
    for name in {program.name for program in launched}:
        in_use[name] = {program.id for program in launched if program.name == name}
    return changed, total, found

