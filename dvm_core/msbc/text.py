"""A file as text, one instruction a line."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..dtypes import describe
from . import layout as L
from .code import Code, Instruction
from .program import load


def disassemble(data: bytes | bytearray | memoryview) -> str:
    """The program as text: header, inputs, one line per instruction (offset, result, op, operands, attributes, shape; place).

    Raises MsbcError for bytes that are no valid program.
    """
    program = load(data)
    offsets = program.offsets
    lines = [f"; MSBC v{L.VERSION}, program {program.name!r}: {len(program)} instructions, {program.input_count} inputs, {len(data)} bytes"]
    if program.sections:
        lines.append(f"; sections: {', '.join(program.sections)}")
    code = program.code
    for number, source in enumerate(program.inputs or ()):
        constant = "  ; constant" if number in program.constants else ""
        lines.append(
            f"          {value_name(code, number)} = input {describe(source.dtype, source.shape)} {source.name}".rstrip() + constant
        )
    for number, item in enumerate(program.instructions):
        text = instruction_text(code, number)
        lines.append(f"{offsets[number]:#08x}  {text:<72}{comment(item)}".rstrip())
    if program.outputs:
        lines.append(f"          return {', '.join(value_name(code, value) for value in program.outputs)}")
    return "\n".join(lines) + "\n"


def value_name(code: Code, local: int) -> str:
    """`%i0` for an input, `%1` for the result with output id 1."""
    return _value(len(code.inputs), local)


def _value(inputs: int, local: int) -> str:
    return f"%i{local}" if local < inputs else f"%{local - inputs + 1}"


def comment(item: Instruction) -> str:
    """`; model.py:42 forward  h`, empty if nothing is known."""
    parts = []
    if item.place is not None:
        parts.append(f"{os.path.basename(item.place.file)}:{item.place.line}")
        parts += [item.place.function] * bool(item.place.function) + ["backward"] * item.place.backward
    if item.name:
        parts.append(f"{item.name} =")
    return "; " + " ".join(parts) if parts else ""


def instruction_text(code: Code, number: int) -> str:
    """`%1 = ADD(%i0, 0.5) f32[32,64]`."""
    return text_of(code.instructions[number], number, len(code.inputs))


def text_of(item: Instruction, number: int, inputs: int) -> str:
    """The same of instruction `number` of a program with so many inputs, without the rest of the program."""
    operands = [_value(inputs, operand) if operand >= 0 else _imm(item.imms[0]) for operand in item.operands]
    operands += _ATTRIBUTES.get(L.NAMES[item.opcode], _none)(item)
    return f"{_value(inputs, inputs + number)} = {L.NAMES[item.opcode]}({', '.join(operands)}) {describe(item.dtype, item.shape)}"


def _imm(value: float | int) -> str:
    return repr(value)


def _none(item: Instruction) -> list[str]:
    return []


def _axes(item: Instruction) -> list[str]:
    return [f"axes={list(item.attrs[1:])}"] + ["keepdims"] * bool(item.attrs[0])


def _axis(item: Instruction) -> list[str]:
    return [f"axis={item.attrs[0]}"]


def _slices(item: Instruction) -> list[str]:
    pairs = zip(item.attrs[::2], item.attrs[1::2], item.shape, strict=False)
    return ["[" + ", ".join(f"{start}:+{extent}" + (f":{step}" if step != 1 else "") for start, step, extent in pairs) + "]"]


def _window(*names: str) -> Callable[[Instruction], list[str]]:
    # Pairs for y and x, then single numbers.
    def text(item: Instruction) -> list[str]:
        pairs = [f"{name}={item.attrs[2 * i]}x{item.attrs[2 * i + 1]}" for i, name in enumerate(names) if 2 * i + 1 < len(item.attrs)]
        return pairs + [f"{name}={item.attrs[-1]}" for name in names[len(item.attrs) // 2 :]]

    return text


_ATTRIBUTES: dict[str, Callable[[Instruction], list[str]]] = {
    **dict.fromkeys(("SUM", "MAX", "MIN", "MEAN", "PROD", "ARGMAX", "ARGMIN"), _axes),
    **dict.fromkeys(("CONCAT", "GATHER", "SCATTER_ADD", "SCATTER", "IOTA"), _axis),
    **dict.fromkeys(("GATHER_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS"), _axis),
    **dict.fromkeys(("SORT", "ARGSORT"), lambda item: _axis(item) + ["descending"] * bool(item.attrs[1])),
    "TOPK": lambda item: [*_axis(item), f"k={item.attrs[1]}"] + ["descending"] * bool(item.attrs[2]),
    "CUMSUM": lambda item: _axis(item) + ["exclusive"] * bool(item.attrs[1]) + ["reverse"] * bool(item.attrs[2]),
    "PAD": lambda item: [f"before={list(item.attrs)}", f"value={_imm(item.imms[0])}"],
    **dict.fromkeys(("SLICE", "UNSLICE"), _slices),
    "MATMUL": lambda item: ["transpose_a"] * bool(item.attrs[0]) + ["transpose_b"] * bool(item.attrs[1]),
    **dict.fromkeys(("CONV2D", "CONV2D_WEIGHT"), _window("stride", "before", "dilation", "gap", "groups")),
    **dict.fromkeys(("MAX_POOL2D", "MAX_POOL2D_GRAD"), _window("taps", "stride", "before", "dilation")),
    **dict.fromkeys(("AVG_POOL2D", "AVG_POOL2D_GRAD"), _window("taps", "stride", "before", "after", "padding and divisor")),
    "TRANSPOSE": lambda item: [f"perm={list(item.attrs)}"],
    "ONE_HOT": lambda item: [f"depth={item.attrs[0]}", f"on={_imm(item.imms[0])}", f"off={_imm(item.imms[1])}"],
    "RANDOM": lambda item: [f"seed={_imm(item.imms[0])}", f"offset={_imm(item.imms[1])}"],
    "FULL": lambda item: [_imm(item.imms[0])],
}
