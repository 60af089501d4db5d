"""A file is hostile until checked: each rule has a case, and thousands of broken files raise MsbcError and nothing else."""

import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msbc_samples import BOOL, F32, I32, chain, every_kind

from dvm_core import msbc
from dvm_core.msbc import Code, Input, Instruction, MsbcError
from dvm_core.msbc.layout import CODES as OP

X = [Input(F32, (4, 6)), Input(F32, (4, 6)), Input(I32, (5,)), Input(BOOL, (4, 6)), Input(F32, (6,))]


def one(name, operands, shape, dtype=F32, **more):
    return Code("f", X, [Instruction(OP[name], operands, shape, dtype, **more)])


PLANES = [Input(F32, (2, 6, 5, 5)), Input(F32, (4, 6, 3, 3)), Input(I32, (2, 6, 5, 5)), Input(F32, (6, 9))]


def window(name, operands, shape, attrs, dtype=F32):
    return Code("f", PLANES, [Instruction(OP[name], operands, shape, dtype, attrs=attrs)])


BROKEN = {
    "dtypes of a pair": (one("ADD", (0, 2), (4, 6)), "different dtypes"),
    "result dtype": (one("ADD", (0, 1), (4, 6), I32), "must have its operand's dtype"),
    "comparison is bool": (one("LESS", (0, 1), (4, 6)), "must be bool"),
    "logical wants bool": (one("LOGICAL_AND", (0, 1), (4, 6), BOOL), "wants bool"),
    "condition is bool": (one("SELECT", (0, 0, 1), (4, 6)), "SELECT wants bool"),
    "choices agree": (one("SELECT", (3, 0, 2), (4, 6)), "SELECT wants bool"),
    "index is integer": (one("GATHER", (0, 4), (6, 6), attrs=(0,)), "index is int32 or int64"),
    "too few operands": (one("ADD", (0,), (4, 6)), "number of operands"),
    "too many operands": (one("EXP", (0, 1), (4, 6)), "number of operands"),
    "an immediate too many": (one("EXP", (0,), (4, 6), imms=(1.0,)), "number of immediates"),
    "no immediate": (one("FULL", (), (4, 6)), "number of immediates"),
    "scalar operand of a unary op": (one("EXP", (-1,), (4, 6), imms=(1.0,)), "operand type"),
    "rank of a broadcast": (one("ADD", (0, 4), (6,)), "operands' largest"),
    "attributes of none": (one("EXP", (0,), (4, 6), attrs=(1,)), "takes no attributes"),
    "reduction without axes": (one("SUM", (0,), (4, 6), attrs=(1,)), "keepdims, axes"),
    "axes apart": (Code("f", [Input(F32, (4, 5, 6))], [Instruction(OP["SUM"], (0,), (1, 5, 1), F32, attrs=(1, 0, 2))]), "adjacent"),
    "axis range": (one("SUM", (0,), (4, 1), attrs=(1, 2)), "axis out of range"),
    "negative axis": (one("SUM", (0,), (4, 1), attrs=(1, -1)), "axis out of range"),
    "reduction rank": (one("SUM", (0,), (4, 1), attrs=(0, 1)), "reduction's rank"),
    "flag": (one("MATMUL", (0, 1), (4, 4), attrs=(0, 2)), "flag is 0 or 1"),
    "matmul rank": (one("MATMUL", (0, 4), (4, 6), attrs=(0, 0)), "ranks of at least 2"),
    "permutation": (one("TRANSPOSE", (0,), (4, 6), attrs=(1, 1)), "each axis once"),
    "permutation range": (one("TRANSPOSE", (0,), (4, 6), attrs=(0, 63)), "each axis once"),
    "slice pairs": (one("SLICE", (0,), (4, 6), attrs=(0, 1)), "start and step"),
    "slice start": (one("SLICE", (0,), (4, 6), attrs=(-1, 1, 0, 1)), "out of range"),
    "slice step": (one("SLICE", (0,), (4, 6), attrs=(0, 1, 0, 1 << 50)), "out of range"),
    "concat axis": (one("CONCAT", (0, 1), (8, 6), attrs=(2,)), "axis out of range"),
    "concat ranks": (one("CONCAT", (0, 4), (8, 6), attrs=(0,)), "different ranks"),
    "concat dtypes": (one("CONCAT", (0, 3), (8, 6), attrs=(0,)), "different dtypes"),
    "one hot rank": (one("ONE_HOT", (2,), (5,), attrs=(3,), imms=(1, 0)), "adds one axis"),
    "depth": (one("ONE_HOT", (2,), (5, 3), attrs=(-3,), imms=(1, 0)), "depth"),
    "gather rank": (one("GATHER", (0, 2), (5,), attrs=(0,)), "operand - 1 \\+ index"),
    "pad before": (one("PAD", (0,), (5, 6), attrs=(-1, 0), imms=(0.0,)), "out of range"),
    "pad per axis": (one("PAD", (0,), (5, 6), attrs=(1,), imms=(0.0,)), "one attribute per axis"),
    "pad without a value": (one("PAD", (0,), (5, 6), attrs=(1, 0)), "number of immediates"),
    "cumsum flags": (one("CUMSUM", (0,), (4, 6), attrs=(0, 2, 0)), "flag is 0 or 1"),
    "cumsum attributes": (one("CUMSUM", (0,), (4, 6), attrs=(0,)), "number of attributes"),
    "sort axis": (one("SORT", (0,), (4, 6), attrs=(2, 0)), "axis out of range"),
    "sort flag": (one("SORT", (0,), (4, 6), attrs=(0, 7)), "flag is 0 or 1"),
    "positions are integers": (one("ARGSORT", (0,), (4, 6), attrs=(0, 0)), "int32 or int64"),
    "topk k": (one("TOPK", (0,), (4, 2), I32, attrs=(1, -2, 0)), "k out of range"),
    "topk flag": (one("TOPK", (0,), (4, 2), I32, attrs=(1, 2, 3)), "flag is 0 or 1"),
    "argmax axis": (one("ARGMAX", (0,), (4,), I32, attrs=(0, -1)), "axis out of range"),
    "argmax rank": (one("ARGMAX", (0,), (4,), I32, attrs=(1, 1)), "result's rank"),
    "element index rank": (one("GATHER_ELEMENTS", (0, 2), (4, 6), attrs=(0,)), "one rank"),
    "element index dtype": (one("GATHER_ELEMENTS", (0, 1), (4, 6), attrs=(0,)), "index is int32 or int64"),
    "what is scattered": (one("SCATTER", (0, 2, 4), (4, 6), attrs=(0,)), "what SCATTER writes has rank"),
    "dtype of what is scattered": (one("SCATTER", (0, 2, 3), (4, 6), attrs=(0,)), "another dtype"),
    "size product": (one("FULL", (), (1 << 31, 1 << 31, 1 << 31), imms=(0.0,)), "bytes"),
    "size product behind a zero": (one("FULL", (), (0, 1 << 31, 1 << 31, 1 << 31), imms=(0.0,)), "bytes"),
    "convolution attributes": (window("CONV2D", (0, 1), (2, 4, 5, 5), (1,) * 8), "9 attributes"),
    "convolution stride": (window("CONV2D", (0, 1), (2, 4, 5, 5), (0, *(1,) * 8)), "out of range"),
    "convolution padding": (window("CONV2D_WEIGHT", (0, 1), (4, 6, 3, 3), (1, 1, 1 << 60, *(1,) * 6)), "out of range"),
    "convolution dtypes": (window("CONV2D", (0, 2), (2, 4, 5, 5), (1,) * 9), "different dtypes"),
    "convolution rank": (window("CONV2D", (0, 1), (2, 4, 25), (1,) * 9), "rank must be 4"),
    "convolution operand": (window("CONV2D", (0, 3), (2, 4, 5, 5), (1,) * 9), "take rank 4"),
    "pool attributes": (window("MAX_POOL2D", (0,), (2, 6, 2, 2), (2,) * 10), "9 attributes, a pool 8 or 10"),
    "pool operands": (window("MAX_POOL2D", (0, 0, 0), (2, 6, 2, 2), (1,) * 8), "one operand or two"),
    "pool flag": (window("AVG_POOL2D", (0,), (2, 6, 2, 2), (1,) * 8 + (2, 0)), "out of range"),
    "unknown dtype": (one("FULL", (), (3,), 10, imms=(0.0,)), "unknown dtype"),
}


NEED_INPUTS = {
    "dtypes of a pair",
    "result dtype",
    "condition is bool",
    "choices agree",
    "index is integer",
    "rank of a broadcast",
    "axes apart",
    "axis range",
    "reduction rank",
    "matmul rank",
    "concat ranks",
    "concat dtypes",
    "one hot rank",
    "gather rank",
    "logical wants bool",
    "convolution dtypes",
    "convolution operand",
    "argmax rank",
    "element index rank",
    "element index dtype",
    "what is scattered",
    "dtype of what is scattered",
}


@pytest.mark.parametrize(
    "case, sections", [(case, True) for case in BROKEN] + [(case, False) for case in BROKEN if case not in NEED_INPUTS]
)
def test_each_rule_has_an_offset_and_a_name(case, sections):
    code, rule = BROKEN[case]
    data = msbc.dump(code, sections=sections)
    with pytest.raises(MsbcError, match=rule) as caught:
        msbc.verify(data)
    assert 0x20 <= caught.value.offset < len(data)
    assert hex(caught.value.offset) in str(caught.value)


def poke(data, at, value):
    changed = bytearray(data)
    changed[at : at + len(value)] = value
    return changed


@pytest.mark.parametrize(
    "at, value, rule",
    [
        (0, b"ELF", "magic"),
        (4, b"\0\0\0\2", "version is 2"),
        (31, b"\1", "reserved"),
        (0x20, b"\xfe", "unknown opcode"),
        (0x23, b"\x0b", "rank 11"),
        (0x22, b"\4", "operand type"),
        (0x2D, b"\0\0\0\0", "output id"),
        (0x31, b"\0\0\0\1", "no result of an earlier"),
        (0x31, b"\x81\0\0\0", "input number"),
    ],
)
def test_a_changed_byte_is_named(at, value, rule):
    with pytest.raises(MsbcError, match=rule):
        msbc.verify(poke(msbc.dump(every_kind(), sections=False), at, value))


def test_a_result_cannot_be_used_before_it_is_made():
    data = msbc.dump(chain(3), sections=False)
    second = msbc.load(data).offsets[1]
    for value in (2, 3):  # itself, a later one
        with pytest.raises(MsbcError, match="earlier") as caught:
            msbc.verify(poke(data, second + 17, struct.pack(">I", value)))
        assert caught.value.offset == second + 17


def test_a_hidden_change_is_caught_by_the_hash():
    data = msbc.dump(chain(3))
    second = msbc.load(data).offsets[1]
    with pytest.raises(MsbcError, match="instruction 1 does not match its SHA-256"):
        msbc.verify(poke(data, second, bytes([OP["MUL"]])))


def test_sections_must_explain_every_byte():
    data = msbc.dump(every_kind())
    for changed in (data + b"\0", data[:-1], data[:-16] + b"\0" * 20 + data[-16:]):
        with pytest.raises(MsbcError):
            msbc.verify(changed)


def test_a_huge_count_costs_no_memory():
    plain = msbc.dump(chain(1), sections=False)
    symbols = struct.pack(">I", 0) + struct.pack(">I", 0xFFFF_FFFF)
    table = struct.pack(">IQQ", 3, len(plain), len(symbols))
    data = plain + symbols + table + struct.pack(">QI4s", len(plain) + len(symbols), 1, b"CBSM")
    tracemalloc.start()
    with pytest.raises(MsbcError, match="count of 4294967295"):
        msbc.verify(data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


BASES = [msbc.dump(every_kind()), msbc.dump(every_kind(), sections=False), msbc.dump(chain(20))]


def attempt(data):
    """Loads, and on success reads all of it."""
    try:
        loaded = msbc.load(data)
    except MsbcError as error:
        assert isinstance(error.offset, int) and error.rule
        return False
    msbc.disassemble(data)
    assert len(loaded.code.instructions) == len(loaded)
    return True


def test_no_truncation_gets_past_the_gate():
    for base in (BASES[0], BASES[2]):
        plain_end = msbc.load(base).offsets[-1]
        for size in range(len(base)):
            assert not attempt(base[:size]) or size > plain_end  # cut right behind the end opcode it is a plain file


def test_fuzz_thousands_of_mutations_raise_nothing_but_MsbcError():
    rng = random.Random(20_240_401)
    tracemalloc.start()
    passed = 0
    for number in range(4000):
        if number == 400:  # of these the memory is measured, which takes ten times their time
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
            tracemalloc.stop()
        data = bytearray(rng.choice(BASES))
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            kind = rng.random()
            at = rng.randrange(len(data))
            if kind < 0.7:
                data[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
            elif kind < 0.8:
                del data[at : at + rng.randrange(1, 20)]
            elif kind < 0.9:
                data[at:at] = rng.randbytes(rng.randrange(1, 20))
            else:
                data[at : at + 4] = struct.pack(">I", rng.choice((0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)))
            if not data:
                break
        passed += attempt(data)
    assert 0 < passed < 4000  # a changed dimension or line of a plain stream is still a program


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_fuzz_any_bytes_after_a_good_header(tail):
    attempt(b"MSBC\0\0\0\1" + bytes(24) + tail)


@settings(deadline=None)
@given(st.sampled_from(BASES), st.lists(st.tuples(st.integers(0, 1 << 16), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4))
def test_fuzz_any_bytes_anywhere(base, pokes):
    data = bytearray(base)
    for at, value in pokes:
        at %= len(data)
        data[at : at + len(value)] = value
    attempt(data)
