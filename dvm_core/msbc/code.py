"""A program as plain data: what is written to a file and what is read from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core


@dataclass(frozen=True)
class Place:
    """Where an instruction comes from. Lines and columns from 1, 0 where unknown; columns in UTF-16 code units."""

    file: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0
    function: str = ""
    backward: bool = False

    @classmethod
    def of(cls, place: int) -> Place | None:
        """The place behind a core id, None for 0."""
        return cls(*_core.place_info(place)) if place else None

    def intern(self) -> int:
        """The core's id of this place."""
        return _core.place(self.file, self.line, self.end_line, self.column, self.end_column, self.function, self.backward)


@dataclass(frozen=True)
class Input:
    """An operand in memory. strides in elements, None if contiguous."""

    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    name: str = ""
    cls: str = ""


@dataclass(frozen=True)
class Instruction:
    """One op. Operands are local ids (inputs 0..n-1, then one per instruction); -1 stands for imms[0]."""

    opcode: int
    operands: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: int
    attrs: tuple[int, ...] = ()
    imms: tuple[float | int, ...] = ()
    place: Place | None = None
    name: str = ""

    @classmethod
    def of(cls, item: Any, place: Place | None) -> Instruction:
        """The plain data of a core program's instruction."""
        return cls(
            item.opcode, tuple(item.operands), tuple(item.shape), item.dtype, tuple(item.attrs), tuple(item.imms), place, item.value_name
        )


@dataclass
class Code:
    """A program: inputs, instructions in order, and which values it is run for (local ids)."""

    name: str
    inputs: Sequence[Input]
    instructions: Sequence[Instruction]
    outputs: Sequence[int] = ()
    constants: Mapping[int, np.ndarray] = field(default_factory=dict)  # by input number: data that comes with the file

    def __post_init__(self) -> None:
        self.inputs, self.instructions, self.outputs = tuple(self.inputs), tuple(self.instructions), tuple(self.outputs)

    @classmethod
    def of(cls, program: Any) -> Code:
        """The Code of a core program (shapes and immediates of its last launch), or of anything that has one as `.code`."""
        if isinstance(program, cls):
            return program
        inner = getattr(program, "code", None)
        if isinstance(inner, cls):
            return inner
        program = getattr(program, "core", program)
        places: dict[int, Place | None] = {}
        instructions = []
        for item in program.instructions:
            if item.place not in places:
                places[item.place] = Place.of(item.place)
            instructions.append(Instruction.of(item, places[item.place]))
        inputs = [Input(dtype, tuple(shape)) for shape, dtype in program.input_shapes]
        outputs = [value for value in program.kept() if value >= len(inputs)]
        return cls(program.name, inputs, instructions, outputs)
