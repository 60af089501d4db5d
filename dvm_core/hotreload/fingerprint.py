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
    hashes: tuple[bytes, ...]


def of(program: Any) -> Fingerprint:
    """Of a `_core.Program`, with the shapes and immediates of its last launch."""
    inputs = program.input_count
    return Fingerprint(program.id, program.name, program.launches, tuple(_hash(i, inputs) for i in program.instructions))


def _hash(instruction: Any, inputs: int) -> bytes:
    # Operands by distance: an instruction put in or taken out does not change every one behind it.
    here = inputs + instruction.index
    operands = tuple(o - here if o >= inputs else ("input", o) for o in instruction.operands)
    words = (instruction.opcode, tuple(instruction.attrs), tuple(instruction.imms), operands, tuple(instruction.shape), instruction.dtype)
    return hashlib.sha256(repr(words).encode()).digest()


def snapshot(programs: Iterable[Any]) -> dict[int, Fingerprint]:
    return {p.id: of(p) for p in list(programs)[-_MOST_PROGRAMS:] if p.launches}


def launches(programs: Iterable[Any]) -> dict[int, int]:
    return {p.id: p.launches for p in programs}


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
        total += len(now.hashes)
        changed += len(now.hashes) - max((_common(now.hashes, b.hashes) for b in known), default=0)
    for name in {program.name for program in launched}:
        in_use[name] = {program.id for program in launched if program.name == name}
    return changed, total


def _common(a: tuple[bytes, ...], b: tuple[bytes, ...]) -> int:
    return (Counter(a) & Counter(b)).total()
