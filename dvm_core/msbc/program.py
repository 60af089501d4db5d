"""A file that has passed the checks, as a program: recorded into a graph again, and run."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import BY_CODE, bfloat16, describe, find, holds
from ..errors import ArgumentError, Error, ShapeError, native
from . import layout as L
from .code import Code, Input, Instruction
from .verify import Checked, check


def load(data: bytes | bytearray | memoryview) -> LoadedProgram:
    """Checks the bytes (MsbcError if they are no valid program) and returns a program that can be run."""
    return LoadedProgram(check(data))


class LoadedProgram:
    """A program from a file. `name`, `inputs`, `instructions` and `outputs` are as in `msbc.Code`; ids are local (inputs first)."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        symbols = checked.symbols
        self.name = symbols.name if symbols else ""
        self.inputs: tuple[Input, ...] | None = tuple(symbols.inputs) if symbols else None  # None: the file does not describe them
        self.constants = checked.constants
        self.sections = tuple(L.SECTION_NAMES.get(kind, str(kind)) for kind in checked.kinds)

    def __len__(self) -> int:
        return self._checked.stream.size

    @functools.cached_property
    def input_count(self) -> int:
        """Inputs the program reads, constants included."""
        if self.inputs is not None:
            return len(self.inputs)
        ids = self._checked.stream.operands.values
        return int((ids - L.INPUT).max(initial=-1, where=ids >= L.INPUT)) + 1

    @functools.cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(self._instruction(i) for i in range(len(self)))

    @functools.cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each instruction lies in the file."""
        return tuple(self._checked.stream.offset.tolist())

    @functools.cached_property
    def output_ids(self) -> tuple[int, ...]:
        """Each instruction's output id in the file."""
        return tuple(self._checked.stream.output_id.tolist())

    @functools.cached_property
    def outputs(self) -> tuple[int, ...]:
        """Local ids of the values the program is run for: those the file names, else every result no instruction reads."""
        symbols, stream = self._checked.symbols, self._checked.stream
        if symbols is not None and symbols.outputs:
            numbers = {output: self.input_count + i for i, output in enumerate(stream.output_id.tolist())}
            return tuple(numbers[value] if value < L.INPUT else value - L.INPUT for value in symbols.outputs)
        read = set(self._checked.operands.tolist())
        return tuple(value for value in range(self.input_count, self.input_count + len(self)) if value not in read)

    @functools.cached_property
    def code(self) -> Code:
        """The program as plain data, for `msbc.dump`. An input the file does not describe is a float32 scalar there."""
        inputs = self.inputs if self.inputs is not None else tuple(Input(L.FLOAT32, ()) for _ in range(self.input_count))
        return Code(self.name, inputs, self.instructions, self.outputs, self.constants)

    def record(self, graph: Any, inputs: Sequence[int]) -> list[int]:
        """Records the instructions into a `_core.Graph`; inputs: value ids of that graph, one per input. Returns the id of every local
        value. Raises ShapeError where an instruction's shape is not what its operands give."""
        values = list(inputs)
        for number, item in enumerate(self.instructions):
            operands = tuple(values[operand] if operand >= 0 else -1 for operand in item.operands)
            place = item.place.intern() if item.place else 0
            own = item.shape if item.opcode in L.OWN_SHAPE else None
            with native(place):
                value = graph.op(item.opcode, operands, item.attrs, own, item.dtype, item.imms, place, item.name)
            shape = tuple(graph.shape(value))
            if shape != item.shape:
                file, line = (item.place.file, item.place.line) if item.place else ("", 0)
                raise ShapeError(
                    f"{L.NAMES[item.opcode]}: instruction {number} says {list(item.shape)}, its operands give {list(shape)}; "
                    f"write the new shape with msbc.patch_shapes",
                    op=L.NAMES[item.opcode],
                    shapes=(item.shape, shape),
                    file=file,
                    line=line,
                )
            values.append(value)
        return values

    def run(
        self, inputs: Sequence[np.ndarray] | Mapping[int | str, np.ndarray] = (), outputs: Sequence[int] | None = None
    ) -> list[np.ndarray]:
        """Runs the program and returns its outputs (or the values named, by local id) in order.

        inputs: arrays in order, leaving out constants, or by number or name. Raises ArgumentError for a wrong number, dtype or rank.
        """
        wanted = tuple(self.outputs if outputs is None else outputs)
        arrays = self._bind(inputs)
        graph = _core.Graph(self.name or "msbc")
        recorded = self.record(graph, [add_input(graph, array) for array in arrays])
        kept = [recorded[value] for value in wanted]
        with native():
            graph.flush(keep=tuple(dict.fromkeys(kept)))
        return [np.array(graph.array(value)) for value in kept]

    def _bind(self, inputs: Sequence[np.ndarray] | Mapping[int | str, np.ndarray]) -> list[np.ndarray]:
        bound: dict[int, Any] = dict(self.constants)
        if isinstance(inputs, Mapping):
            names = {item.name: i for i, item in enumerate(self.inputs or ()) if item.name}
            bound.update({names.get(key, key): array for key, array in inputs.items()})  # type: ignore[misc,arg-type]
        else:
            free = [i for i in range(self.input_count) if i not in self.constants]
            if len(inputs) != len(free):
                raise ArgumentError(f"{self.name or 'program'} takes {len(free)} inputs, got {len(inputs)}")
            bound.update(zip(free, inputs, strict=True))
        missing = [i for i in range(self.input_count) if i not in bound]
        if missing or len(bound) != self.input_count:
            raise ArgumentError(
                f"{self.name or 'program'} takes inputs 0..{self.input_count - 1}; missing {missing}, given {sorted(map(str, bound))}"
            )
        arrays = [np.asarray(bound[i]) for i in range(self.input_count)]
        for number, (array, item) in enumerate(zip(arrays, self.inputs or (), strict=False)):
            if not holds(array, BY_CODE[item.dtype]) or array.ndim != len(item.shape):
                raise ArgumentError(
                    f"input {number}{' (' + item.name + ')' if item.name else ''} is {describe(item.dtype, item.shape)} "
                    f"in the program, got {array.dtype}{list(array.shape)}: dtype and rank must agree",
                    dtypes=(str(BY_CODE[item.dtype]), str(array.dtype)),
                    shapes=(item.shape, array.shape),
                )
        return arrays

    def _instruction(self, number: int) -> Instruction:
        checked, stream = self._checked, self._checked.stream
        start, count = int(stream.operands.start[number]), int(stream.operands.count[number])
        operands = tuple(checked.operands[start : start + count].tolist())
        kind = stream.operand_type[number]
        if kind == L.TENSOR_SCALAR:
            operands = (*operands, -1)
        elif kind == L.SCALAR_TENSOR:
            operands = (-1, *operands)
        imms = tuple(_number(*pair) for pair in zip(stream.imm_kind.of(number), stream.imm_bits.of(number), strict=True))
        place = None
        if checked.place_of is not None and checked.place_of[number] >= 0:
            place = checked.places[int(checked.place_of[number])]
        names = checked.symbols.value_names if checked.symbols else {}
        return Instruction(
            int(stream.opcode[number]),
            operands,
            stream.dims.of(number),
            int(stream.dtype[number]),
            stream.attrs.of(number),
            imms,
            place,
            names.get(int(stream.output_id[number]), ""),
        )


def add_input(graph: Any, array: np.ndarray, cls: str = "") -> int:
    """An array as an input of a graph (no copy; the graph holds it). uint16 is bfloat16's bits."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = bfloat16 if array.dtype == np.uint16 else find(array.dtype)
    if dtype is None:
        raise Error(f"no dtype of ours is {array.dtype}")
    strides = None if array.flags.c_contiguous else tuple(stride // array.itemsize for stride in array.strides)
    if strides is not None and any(stride % array.itemsize for stride in array.strides):
        array, strides = np.ascontiguousarray(array), None
    return graph.input(array.ctypes.data, array.shape, dtype.code, strides, array, cls)


def _number(kind: int, bits: int) -> float | int:
    return bits if kind == L.IMM_INT else struct.unpack("<d", struct.pack("<q", bits))[0]
