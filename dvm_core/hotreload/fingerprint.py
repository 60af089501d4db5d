"""How much of the bytecode an edit changed: instructions compared by SHA-256 before and after."""
from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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

    def common(self, other: Fingerprint) -> int:
        """How many instructions the two share."""
        pairs = (self.exact, other.exact) if self.inputs == other.inputs else (self.ranked, other.ranked)
        return (Counter(pairs[0]) & Counter(pairs[1])).total()


def of(program: Any) -> Fingerprint:
    """Of a `_core.Program`, with the shapes and immediates of its last launch."""
    inputs = tuple((tuple(shape), dtype) for shape, dtype in program.input_shapes)
    instructions = program.instructions
    return Fingerprint(program.id, program.name, program.launches, inputs, tuple(_hash(i, inputs, tuple(i.shape)) for i in instructions),
                       tuple(_hash(i, inputs, len(i.shape)) for i in instructions))


def _hash(instruction: Any, inputs: tuple[Any, ...], shape: Any) -> bytes:
    # Operands by distance, inputs by what they are: an instruction or input put in or taken out does not change every one behind it.
    here, count = len(inputs) + instruction.index, len(inputs)
    operands = tuple(o - here if o >= count else ("input", inputs[o][1], len(inputs[o][0])) if o >= 0 else o for o in instruction.operands)
    words = (instruction.opcode, tuple(instruction.attrs), tuple(instruction.imms), operands, shape, instruction.dtype)
    return hashlib.sha256(repr(words).encode()).digest()


def snapshot(programs: Iterable[Any]) -> dict[int, Fingerprint]:
    return {p.id: of(p) for p in list(programs)[-_MOST_PROGRAMS:] if p.launches}


def launches(programs: Iterable[Any]) -> dict[int, int]:
    return {p.id: p.launches for p in programs}


def replaced(at_swap: dict[int, int], programs: Iterable[Any]) -> list[Any]:
    """Programs of functions that were launched since the swap, which were not launched themselves: others run in their place."""
    programs = list(programs)
    names = {program.name for program in programs if program.launches > at_swap.get(program.id, 0)}
    return [program for program in programs if program.name in names and program.launches == at_swap.get(program.id)]


def patched(before: dict[int, Fingerprint], at_swap: dict[int, int], programs: Iterable[Any],
            in_use: dict[str, set[int]]) -> tuple[int, int]:
    """(instructions that differ, instructions in all) over the programs launched since the swap.

    Each is compared with the program that ran in its place: of the same name, in use before, and with most in common. in_use: name -> ids
    launched by the trial before this one; brought up to date here."""
    changed = total = 0
    launched = [program for program in programs if program.launches > at_swap.get(program.id, 0)]
    for program in launched:
        now = of(program)
        known = [before[number] for number in in_use.get(now.name, ()) if number in before]
        known = known or ([before[now.id]] if now.id in before else [b for b in before.values() if b.name == now.name])
        total += len(now.exact)
        changed += len(now.exact) - max((now.common(b) for b in known), default=0)
    for name in {program.name for program in launched}:
        in_use[name] = {program.id for program in launched if program.name == name}
    return changed, total

