"""What a program does with memory, in order and in exact bytes: the plan its launches carry out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import _core

ALIGN = 128  # bytes; every place begins at a multiple
_SIZE = {code: size for _, code, size in _core.DTYPES}
_CLASS = {code: cls for _, code, cls, *_ in _core.OPS}
_NAME = {code: name for name, code, *_ in _core.OPS}
# Data movement: what is written from an immediate, what is copied as a whole, and the number of the operand that is then put into it.
FILLS = frozenset(("UNSLICE", "SCATTER_ADD", "SCATTER_ADD_ELEMENTS", "PAD", "MAX_POOL2D_GRAD", "AVG_POOL2D_GRAD", "ONE_HOT", "FULL",
                   "IOTA"))
COPIES = frozenset(("COPY", "CONCAT", "GATHER", "GATHER_ELEMENTS", "SCATTER", "SCATTER_ELEMENTS"))
PUTS = {"UNSLICE": 0, "SCATTER_ADD": 0, "SCATTER_ADD_ELEMENTS": 0, "PAD": 0, "SCATTER": 2, "SCATTER_ELEMENTS": 2}


@dataclass(frozen=True)
class Step:
    """One step. op: ALLOC, FREE, COPY or FILL. where: `workspace` (at `offset` of the segment's), `scratch` (there too, of one area alone)
    or `result` (a block of its own, which the caller keeps). value: local id, -1 for scratch memory."""

    op: str
    area: int
    value: int
    instruction: int
    bytes: int
    where: str
    offset: int = -1
    in_place_of: int = -1  # value whose bytes an ALLOC takes over

    @property
    def aligned(self) -> int:
        """Bytes that are set aside for it."""
        return -(-max(self.bytes, 1) // ALIGN) * ALIGN


@dataclass
class MemoryPlan:
    """The steps of one launch with the shapes of the last, and what they add up to."""

    steps: list[Step] = field(default_factory=list)
    workspace_bytes: int = 0  # of the largest segment: one block, gone after it
    result_bytes: int = 0  # what is kept
    unshared_bytes: int = 0  # what the workspace would be with a place of its own for each value
    peak_bytes: int = 0  # most at one time of what the plan places
    copies: int = 0
    copied_bytes: int = 0
    copies_avoided: int = 0  # views that are strides alone, and results in the place of an operand
    avoided_bytes: int = 0

    def text(self) -> str:
        """A line per step, then the sums."""
        lines = [_line(step) for step in self.steps]
        lines.append(
            f"; workspace {self.workspace_bytes} bytes instead of {self.unshared_bytes}, results {self.result_bytes}, "
            f"peak {self.peak_bytes}; "
            f"{self.copies} copies ({self.copied_bytes} bytes), {self.copies_avoided} avoided ({self.avoided_bytes} bytes)"
        )
        return "\n".join(lines) + "\n"


def _line(step: Step) -> str:
    where = step.where if step.offset < 0 else f"{step.where}+{step.offset:#x}"
    value = f"%{step.value}" if step.value >= 0 else "scratch"
    taken = f" in place of %{step.in_place_of}" if step.in_place_of >= 0 else ""
    return f"area {step.area:>3}  {step.op:<5} {value:<8} {step.bytes:>12}  {where}{taken}"


def plan(program: Any) -> MemoryPlan:
    """The plan of a core program: of its last launch, or of the one that is to be expected."""
    instructions, inputs = program.instructions, program.input_count
    areas = [area.instructions for area in (program.areas or program.fused_areas())]
    kept = {value - inputs for value in program.kept() if value >= inputs}
    sizes = [_bytes(dtype, shape) for shape, dtype in program.input_shapes] + [_bytes(item.dtype, item.shape) for item in instructions]
    found = MemoryPlan()
    by_area: list[list[Step]] = [[] for _ in areas]
    ends: list[list[Step]] = [[] for _ in areas]
    stored = set()
    for _, count, workspace, slots in program.memory():
        found.workspace_bytes = max(found.workspace_bytes, workspace if count else 0)
        for value, offset, size, first, last, in_place_of in slots:
            where = "workspace" if value >= 0 else "scratch"
            made = Step("ALLOC", first, value, value - inputs if value >= 0 else -1, size, where, offset, in_place_of)
            by_area[first].append(made)
            ends[last].append(Step("FREE", last, value, made.instruction, size, where, offset))
            stored.add(made.instruction)
            found.unshared_bytes += made.aligned
            if in_place_of >= 0:
                found.copies_avoided += 1
                found.avoided_bytes += size
    worked = set()
    for number, members in enumerate(areas):
        worked.update(members)
        for index in members:
            if index in kept:
                by_area[number].append(Step("ALLOC", number, inputs + index, index, sizes[inputs + index], "result"))
                found.result_bytes += sizes[inputs + index]
                stored.add(index)
        for index in members:
            if index in stored:
                where = "result" if index in kept else "workspace"
                by_area[number] += _moves(instructions[index], sizes, number, inputs + index, index, where)
    for index, item in enumerate(instructions):
        if _CLASS[item.opcode] == "V" and index not in worked:
            found.copies_avoided += 1
            found.avoided_bytes += sizes[inputs + index]
    for begun, ended in zip(by_area, ends, strict=True):
        # A value that takes over another's bytes frees it: those bytes go on with a new name.
        taken = {step.in_place_of for step in begun if step.op == "ALLOC" and step.in_place_of >= 0}
        found.steps += sorted(begun, key=lambda step: step.op != "ALLOC")
        found.steps += [step for step in ended if step.value not in taken or step.value < 0]
    for step in found.steps:
        if step.op in ("COPY", "FILL"):
            found.copies += step.op == "COPY"
            found.copied_bytes += step.bytes if step.op == "COPY" else 0
    found.peak_bytes = max(_alive(found.steps), default=0)
    return found


def _bytes(dtype: int, shape: tuple[int, ...]) -> int:
    size = _SIZE[dtype]
    for extent in shape:
        size *= extent
    return size


def _moves(item: Any, sizes: list[int], area: int, value: int, index: int, where: str) -> Iterator[Step]:
    # What an instruction writes without computing it: a constant, elements of its operands, a view that has to be in memory.
    name = _NAME[item.opcode]
    if name in FILLS:
        yield Step("FILL", area, value, index, sizes[value], where)
    if name in COPIES or _CLASS[item.opcode] == "V":
        yield Step("COPY", area, value, index, sizes[value], where)
    if name in PUTS:
        yield Step("COPY", area, value, index, sizes[item.operands[PUTS[name]]], where)


def _alive(steps: list[Step]) -> Iterator[int]:
    live = 0
    for step in steps:
        if step.op == "ALLOC" and step.in_place_of < 0:
            live += step.aligned
        elif step.op == "FREE":
            live -= step.aligned
        yield live
