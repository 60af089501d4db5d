"""MSBC files: the bytes are where the format says, and nothing is lost on the way."""

import struct

import numpy as np
import pytest
from msbc_samples import F32, HERE, chain, every_kind

from dvm_core import msbc
from dvm_core.msbc import Code, Input, Instruction, MsbcError
from dvm_core.msbc.hashes import content_hash
from dvm_core.msbc.layout import CODES as OP


def test_header_and_first_instruction_lie_where_the_format_says():
    data = msbc.dump(Code("f", [Input(F32, (32, 64)), Input(F32, (32, 64))], [Instruction(OP["ADD"], (0, 1), (32, 64), F32, place=HERE)]))
    assert data[:8] == b"MSBC\0\0\0\1" and not any(data[8:32])
    opcode, operands, kind, rank, d0, d1, dtype, output, a, b, attrs, imms, line = struct.unpack_from(">BBBBIIBIIIBBH", data, 0x20)
    assert (opcode, operands, kind, rank) == (0x01, 2, 0x03, 2)
    assert (d0, d1, dtype, output) == (32, 64, 0x01, 1)
    assert (a, b) == (0x8000_0000, 0x8000_0001) and (attrs, imms, line) == (0, 0, 42)
    assert data[0x20 + 29] == 0x00


@pytest.mark.parametrize("operands, imms, kind", [((0, 1), (), 3), ((0, -1), (1.5,), 1), ((-1, 0), (1.5,), 2)])
def test_operand_type_says_which_sides_are_tensors(operands, imms, kind):
    code = Code("f", [Input(F32, (3,)), Input(F32, (3,))], [Instruction(OP["SUB"], operands, (3,), F32, imms=imms)])
    data = msbc.dump(code)
    assert data[0x22] == kind and data[0x21] == sum(o >= 0 for o in operands)
    assert msbc.load(data).instructions[0] == code.instructions[0]


def test_everything_survives_writing_and_reading():
    code = every_kind()
    data = msbc.dump(code)
    loaded = msbc.load(data)
    assert loaded.sections == ("index", "source map", "symbols", "hashes", "constants")
    assert (loaded.name, loaded.inputs, loaded.instructions, loaded.outputs) == (code.name, code.inputs, code.instructions, code.outputs)
    np.testing.assert_array_equal(loaded.constants[2], code.constants[2])
    assert msbc.dump(loaded) == data


def test_the_plain_stream_needs_no_section():
    code = every_kind()
    loaded = msbc.load(msbc.dump(code, sections=False))
    assert loaded.inputs is None and loaded.input_count == 3 and not loaded.sections
    for plain, full in zip(loaded.instructions, code.instructions, strict=True):
        assert (plain.opcode, plain.operands, plain.shape, plain.dtype, plain.attrs, plain.imms) == (
            full.opcode,
            full.operands,
            full.shape,
            full.dtype,
            full.attrs,
            full.imms,
        )


def test_a_longer_loop_renumbers_nothing():
    ten, twelve = (msbc.dump(chain(n), sections=False) for n in (10, 12))
    assert twelve.startswith(ten[:-1])
    assert msbc.load(twelve).output_ids == tuple(range(1, 13))


def test_lines_beyond_two_bytes_are_in_the_source_map():
    data = msbc.dump(every_kind())
    loaded = msbc.load(data)
    end = loaded.offsets[3]
    assert struct.unpack_from(">H", data, end - 2)[0] == 0xFFFF
    assert loaded.instructions[2].place.line == 70_000 and loaded.instructions[2].place.backward


@pytest.mark.parametrize("value", [0, -7, 2**63 - 1, -(2**63), 0.1, float("inf"), -0.0, 1e-320])
def test_immediates_keep_their_kind_and_every_bit(value):
    code = Code("f", [Input(F32, (3,))], [Instruction(OP["MUL"], (0, -1), (3,), F32, imms=(value,))])
    found = msbc.load(msbc.dump(code)).instructions[0].imms[0]
    assert type(found) is type(value) and struct.pack("d", found) == struct.pack("d", value) and found == value


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int8", "uint8", "int32", "int64"])
def test_constants_of_every_dtype_come_back(dtype):
    from dvm_core.dtypes import find

    array = (np.arange(12).reshape(3, 4) % 5 - 1).astype(dtype)
    code = Code("f", [Input(find(dtype).code, (3, 4))], [Instruction(OP["COPY"], (0,), (3, 4), find(dtype).code)], [1], {0: array})
    found = msbc.load(msbc.dump(code)).constants[0]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("array, text", [(np.zeros((3, 4)), r"float64\[3, 4\]"), (np.zeros(4, np.float32), r"float32\[4\]")])
def test_a_constant_of_another_dtype_or_shape_is_not_written(array, text):
    code = Code("f", [Input(F32, (3, 4))], [Instruction(OP["EXP"], (0,), (3, 4), F32)], [1])
    with pytest.raises(MsbcError, match=rf"constant for input 0 is {text}, the input f32\[3,4\]"):
        msbc.dump(code, constants={0: array})


def test_the_hash_ignores_dimensions_and_line_only():
    def digest(**change):
        base = dict(opcode=OP["SUM"], operands=(0,), shape=(32, 1), dtype=F32, attrs=(1, 1), place=HERE)
        code = Code("f", [Input(F32, (32, 64))], [Instruction(**{**base, **change})])
        return content_hash(msbc.dump(code, sections=False)[0x20:-1])

    assert digest() == digest(shape=(8, 1)) == digest(place=None)
    assert len({digest(), digest(attrs=(1, 0)), digest(opcode=OP["MAX"]), digest(shape=(32,), attrs=(0, 1))}) == 4


def test_disassembly_names_offsets_operands_attributes_and_places():
    text = msbc.disassemble(msbc.dump(every_kind()))
    assert "0x000020  %1 = ADD(%i0, %i1) f32[32,64]" in text and "; model.py:42 Net.forward h =" in text
    for part in (
        "%2 = MUL(0.5, %1)",
        "SUM(%2, axes=[1], keepdims) f32[32,1]",
        "generated.py:70000 step backward",
        "perm=[1, 0]",
        "[0:+16:2, 0:+64]",
        "depth=9, on=1, off=0",
        "transpose_b",
        "%i2 = input i32[7]  ; constant",
        "return %12, %3",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    "bad, rule",
    [
        (Instruction(0x7F, (0,), (3,), F32), "no opcode"),
        (Instruction(OP["COPY"], (0,), (1 << 32,), F32), "32 bits"),
        (Instruction(OP["COPY"], (0,), (1,) * 11, F32), "rank at most 10"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(bad, rule):
    with pytest.raises(MsbcError, match=rule):
        msbc.dump(Code("f", [Input(F32, (3,))], [bad]))


def test_the_document_lists_every_opcode():
    import pathlib

    from dvm_core import _core

    text = (pathlib.Path(__file__).parents[2] / "docs" / "bytecode.md").read_text()
    for name, code, cls, arity, rule, _ in _core.OPS:
        assert f"| `{code:#04x}` | {name} | {cls} | {'any' if arity < 0 else arity} | {rule} |" in text, name
