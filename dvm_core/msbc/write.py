"""Writing: a program to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dtypes import describe
from . import layout as L
from .code import Code, Instruction, Place
from .hashes import content_hash


def dump(program: Any, constants: Mapping[int, np.ndarray] | None = None, *, sections: bool = True) -> bytes:
    """A program as MSBC bytes.

    program: from `dvm.programs()`, a core program, something loaded, or `Code`. constants: data for inputs (by number) that is to travel
    with the file. sections: False writes the bare stream. Raises MsbcError for what the format cannot hold.
    """
    code = Code.of(program)
    encoded, offsets, at = encode(code)
    chunks = [L.MAGIC, L.U32.pack(L.VERSION), bytes(L.HEADER_SIZE - 8), *encoded, bytes([L.END])]
    at += 1
    if sections:
        constants = {**code.constants, **(constants or {})}
        table = []
        parts = {L.INDEX: _index(offsets), L.SOURCE_MAP: _source_map(code), L.SYMBOLS: _symbols(code), L.HASHES: _hashes(encoded)}
        if constants:
            parts[L.CONSTANTS] = _constants(code, constants)
        for kind, data in parts.items():
            table.append(L.SECTION_ENTRY.pack(kind, at, len(data)))
            chunks.append(data)
            at += len(data)
        chunks += [*table, L.TRAILER.pack(at, len(table), L.TRAILER_MAGIC)]
        at += len(table) * L.SECTION_ENTRY.size + L.TRAILER.size
    if at > L.MAX_FILE:
        raise L.MsbcError(at, f"a file holds at most {L.MAX_FILE} bytes; this program needs {at}")
    return b"".join(chunks)


def encode(code: Code) -> tuple[list[bytes], list[int], int]:
    """(each instruction's bytes, its offset in the file, the offset of the end opcode)."""
    encoded, offsets, at = [], [], L.HEADER_SIZE
    for index, instruction in enumerate(code.instructions):
        data = _instruction(code, index, instruction, at)
        offsets.append(at)
        encoded.append(data)
        at += len(data)
    return encoded, offsets, at


def value_id(code: Code, local: int) -> int:
    """A local id as the file's: inputs INPUT | i, results 1, 2, ..."""
    return L.INPUT | local if local < len(code.inputs) else local - len(code.inputs) + 1


def _instruction(code: Code, index: int, item: Instruction, at: int) -> bytes:
    name = L.NAMES.get(item.opcode)
    if name is None:
        raise L.MsbcError(at, f"instruction {index}: {item.opcode:#x} is no opcode")
    tensors = [operand for operand in item.operands if operand >= 0]
    if len(item.shape) > L.MAX_RANK or len(tensors) > 255 or len(item.attrs) > 255 or len(item.imms) > 255:
        raise L.MsbcError(at, f"instruction {index} ({name}): rank at most {L.MAX_RANK}; operands, attributes, immediates at most 255 each")
    head = bytearray([item.opcode, len(tensors), _operand_type(item.operands), len(item.shape)])
    for dim in item.shape:
        if not 0 <= dim < 1 << 32:
            raise L.MsbcError(at, f"instruction {index} ({name}): dimension {dim} does not fit 32 bits")
        head += L.U32.pack(dim)
    head.append(item.dtype)
    head += L.U32.pack(index + 1)
    for operand in tensors:
        head += L.U32.pack(value_id(code, operand))
    head.append(len(item.attrs))
    for attr in item.attrs:
        head += L.I64.pack(attr)
    head.append(len(item.imms))
    for imm in item.imms:
        head += _immediate(imm)
    return bytes(head + L.U16.pack(_line(item.place)))


def _operand_type(operands: tuple[int, ...]) -> int:
    if not operands:
        return L.NO_TENSOR
    if operands[0] < 0:
        return L.SCALAR_TENSOR
    return L.TENSOR_SCALAR if len(operands) > 1 and operands[1] < 0 else L.TENSOR


def _immediate(value: float | int) -> bytes:
    if isinstance(value, (bool, int)) and -(1 << 63) <= value < 1 << 63:
        return bytes([L.IMM_INT]) + L.I64.pack(int(value))
    return bytes([L.IMM_FLOAT]) + L.F64.pack(value)


def _line(place: Place | None) -> int:
    return L.NO_LINE if place is None else min(place.line, L.LONG_LINE)


def _index(offsets: list[int]) -> bytes:
    return L.U32.pack(len(offsets)) + np.asarray(offsets, ">u4").tobytes()


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if len(data) > L.MAX_STRING:
        data = data[: L.MAX_STRING].decode("utf-8", "ignore").encode()
    return L.U32.pack(len(data)) + data


def _source_map(code: Code) -> bytes:
    strings: dict[str, int] = {}
    places: dict[Place, int] = {}
    numbers = []
    for item in code.instructions:
        if item.place is None:
            numbers.append(L.NO_PLACE)
            continue
        for text in (item.place.file, item.place.function):
            strings.setdefault(text, len(strings))
        numbers.append(places.setdefault(item.place, len(places)))
    out = [L.U32.pack(len(strings)), *(_string(text) for text in strings), L.U32.pack(len(places))]
    for p in places:
        out.append(L.PLACE.pack(strings[p.file], strings[p.function], p.line, p.end_line, p.column, p.end_column, int(p.backward)))
    return b"".join([*out, L.U32.pack(len(numbers)), np.asarray(numbers, ">u4").tobytes()])


def _symbols(code: Code) -> bytes:
    out = [_string(code.name), L.U32.pack(len(code.inputs))]
    for item in code.inputs:
        out.append(bytes([item.dtype, len(item.shape), item.strides is not None]))
        if any(not 0 <= dim < 1 << 32 for dim in item.shape):
            raise L.MsbcError(0, f"input {item.name!r}: a dimension of {list(item.shape)} does not fit 32 bits")
        out += [L.U32.pack(dim) for dim in item.shape]
        out += [L.I64.pack(stride) for stride in item.strides or ()]
        out += [_string(item.name), _string(item.cls)]
    out.append(L.U32.pack(len(code.outputs)))
    out += [L.U32.pack(value_id(code, value)) for value in code.outputs]
    named = [(index + 1, item.name) for index, item in enumerate(code.instructions) if item.name]
    out.append(L.U32.pack(len(named)))
    for output, name in named:
        out += [L.U32.pack(output), _string(name)]
    return b"".join(out)


def _hashes(encoded: list[bytes]) -> bytes:
    return L.U32.pack(len(encoded)) + b"".join(map(content_hash, encoded))


def _constants(code: Code, constants: Mapping[int, np.ndarray]) -> bytes:
    out = [L.U32.pack(len(constants))]
    for number, array in sorted(constants.items()):
        if not 0 <= number < len(code.inputs):
            raise L.MsbcError(0, f"constant for input {number}, but the program has {len(code.inputs)} inputs")
        array, declared = np.asarray(array), code.inputs[number]
        if array.dtype.name == "bfloat16":
            array = array.view(np.uint16)
        if array.dtype.newbyteorder("=") != L.NUMPY[declared.dtype] or array.shape != tuple(declared.shape):
            raise L.MsbcError(
                0, f"constant for input {number} is {array.dtype}{list(array.shape)}, the input {describe(declared.dtype, declared.shape)}"
            )
        out += [
            L.U32.pack(number),
            bytes([code.inputs[number].dtype, array.ndim]),
            *(L.U32.pack(dim) for dim in array.shape),
            array.astype(array.dtype.newbyteorder(">")).tobytes(),
        ]
    return b"".join(out)
