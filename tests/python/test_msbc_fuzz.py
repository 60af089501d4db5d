"""Files of many programs with bytes flipped, cut out, put in and mixed: loading and running raises an Error or computes, nothing else."""

from __future__ import annotations

import functools

import numpy as np
from core_programs import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msbc_samples import chain, every_kind
from random_programs import random_program

import dvm_core as dvm
from dvm_core import msbc
from dvm_core.msbc import MsbcError
from dvm_core.msbc import layout as L

FILES = 60
# What is run is small: a file may ask for anything that fits its bounds.
MOST_ELEMENTS, MOST_WORK = 200_000, 50_000_000


@functools.cache
def sample(number: int) -> tuple[bytes, bytes, tuple[np.ndarray, ...]]:
    """(file, bare stream, inputs) of a random program that runs."""
    program = random_program(number)
    if not program.steps:
        return sample(number + FILES)
    last = len(program.inputs) + len(program.steps) - 1
    _, launches = run(program, [last])
    if launches[0] is None:
        return sample(number + FILES)
    core = launches[0].program
    used = core.input_count
    data = msbc.dump(core)
    inputs = [a for a in program.inputs if a.size <= MOST_ELEMENTS]
    # The program's inputs are those that its instructions read, in the order of their first use.
    order: list[int] = []
    for step in program.steps:
        for operand in step.operands:
            if 0 <= operand < len(program.inputs) and operand not in order:
                order.append(operand)
    arrays = tuple(program.inputs[i] for i in order[:used]) if len(inputs) == len(program.inputs) else ()
    return data, msbc.dump(core, sections=False), arrays


def attempt(data: bytes | bytearray, inputs: tuple[np.ndarray, ...]) -> bool:
    """Loads, disassembles, and runs what is small. Whether it ran."""
    try:
        program = msbc.load(data)
    except MsbcError as error:
        assert 0 <= error.offset <= len(data) and error.rule
        return False
    msbc.disassemble(data)
    assert len(msbc.function_hash(data)) == L.HASH_SIZE
    sizes = [int(np.prod(item.shape, dtype=object)) for item in program.instructions]
    if sum(sizes) > MOST_ELEMENTS:
        return False
    described = program.inputs or ()
    arrays = []
    for i in range(program.input_count):
        if i in program.constants:
            continue
        if i < len(described):
            size = int(np.prod(described[i].shape, dtype=object))
            if size > MOST_ELEMENTS:
                return False
            arrays.append(np.resize(np.arange(5).astype(L.NUMPY[described[i].dtype]), described[i].shape))
        else:
            arrays.append(inputs[i] if i < len(inputs) else np.zeros((2, 3), np.float32))
    largest = max([*sizes, *(a.size for a in arrays), 1])
    heavy = {code for code, (_, cls, *_) in L.OPS.items() if cls in "MD"}
    if any(item.opcode in heavy and max(size, 1) * largest > MOST_WORK for item, size in zip(program.instructions, sizes, strict=True)):
        return False
    try:
        results = program.run(arrays)
    except dvm.Error:
        return False
    assert len(results) == len(program.outputs)
    return True


def mutate(data: bytearray, draw) -> None:
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            return
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(("bit", "byte", "word", "out", "in", "double", "swap")))
        length = draw(st.integers(1, 24))
        if kind == "bit":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "byte":
            data[at] = draw(st.sampled_from((0, 1, 2, 3, 4, 8, 9, 10, 11, 0x7F, 0x80, 0xFE, 0xFF)))
        elif kind == "word":
            data[at:at + 4] = draw(st.sampled_from(WORDS)).to_bytes(4, "big")
        elif kind == "out":
            del data[at:at + length]
        elif kind == "in":
            data[at:at] = draw(st.binary(min_size=1, max_size=24))
        elif kind == "double":
            data[at:at] = data[at:at + length]
        else:
            other = draw(st.integers(0, len(data) - 1))
            data[at:at + length], data[other:other + length] = data[other:other + length], data[at:at + length]


WORDS = (0, 1, 2, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF)
EXTENTS = st.sampled_from((0, 1, 2, 3, 7, 64, 1000, 1 << 31))
SETTINGS = settings(deadline=None, max_examples=max(300, settings().max_examples), suppress_health_check=[HealthCheck.too_slow])


def test_the_samples_run_as_they_are():
    ran = 0
    for number in range(FILES):
        full, bare, inputs = sample(number)
        ran += attempt(full, inputs) + attempt(bare, inputs)
    assert ran > FILES  # inputs of made-up values may be indices out of range


@SETTINGS
@given(st.integers(0, FILES - 1), st.booleans(), st.data())
def test_changed_bytes(number, bare, data):
    full, stream, inputs = sample(number)
    changed = bytearray(stream if bare else full)
    mutate(changed, data.draw)
    attempt(changed, inputs)


@SETTINGS
@given(st.integers(0, FILES - 1), st.integers(0, FILES - 1), st.data())
def test_instructions_of_one_program_in_another(first, second, data):
    _, one, inputs = sample(first)
    _, other, _ = sample(second)
    starts, others = [*msbc.load(one).offsets, len(one) - 1], [*msbc.load(other).offsets, len(other) - 1]
    at = data.draw(st.integers(0, len(starts) - 1))
    begin = data.draw(st.integers(0, len(others) - 2))
    end = data.draw(st.integers(begin + 1, len(others) - 1))
    spliced = bytearray(one[:starts[at]] + other[others[begin]:others[end]] + one[starts[at]:])
    if data.draw(st.booleans()):
        # With ids that ascend again, so that it gets past the first rule.
        number, p = 0, L.HEADER_SIZE
        while spliced[p]:
            number += 1
            rank, count = spliced[p + 3], spliced[p + 1]
            spliced[p + 5 + 4 * rank:p + 9 + 4 * rank] = number.to_bytes(4, "big")
            q = p + 9 + 4 * (rank + count)
            q += 1 + 8 * spliced[q]
            p = q + 3 + 9 * spliced[q]
    attempt(spliced, inputs)


@SETTINGS
@given(st.integers(0, FILES - 1), st.data())
def test_changed_attributes_and_immediates(number, data):
    _, stream, inputs = sample(number)
    changed = bytearray(stream)
    starts = msbc.load(stream).offsets
    p = starts[data.draw(st.integers(0, len(starts) - 1))]
    q = p + 9 + 4 * (changed[p + 3] + changed[p + 1])
    count = changed[q]
    value = data.draw(st.one_of(st.integers(-3, 12), st.sampled_from((-(1 << 63), (1 << 63) - 1, 1 << 20, 1 << 31, -(1 << 40), 1 << 45))))
    if count:
        at = q + 1 + 8 * data.draw(st.integers(0, count - 1))
        changed[at:at + 8] = value.to_bytes(8, "big", signed=True)
    elif changed[q + 1]:
        changed[q + 3:q + 11] = value.to_bytes(8, "big", signed=True)
    attempt(changed, inputs)


@SETTINGS
@given(st.integers(0, FILES - 1), st.data())
def test_patched_shapes(number, data):
    full, _, inputs = sample(number)
    program = msbc.load(full)
    changed = bytearray(full)
    index = data.draw(st.integers(0, len(program) - 1))
    rank = len(program.instructions[index].shape)
    msbc.patch_shapes(changed, {index: data.draw(st.lists(EXTENTS, min_size=rank, max_size=rank))})
    attempt(changed, inputs)
    assert msbc.function_hash(full) == msbc.function_hash(program)


def test_the_hash_of_a_function_is_that_of_its_instructions():
    code = every_kind()
    data = msbc.dump(code)
    hashes = msbc.instruction_hashes(data)
    assert hashes == msbc.instruction_hashes(code) == msbc.instruction_hashes(msbc.dump(code, sections=False))
    import hashlib
    assert msbc.function_hash(code) == hashlib.sha256(b"".join(hashes)).digest()
    patched = bytearray(data)
    msbc.patch_shapes(patched, {0: (8, 64)})
    assert msbc.function_hash(patched) == msbc.function_hash(data) != msbc.function_hash(chain(3))
    assert msbc.function_hash(chain(3, (5, 6))) == msbc.function_hash(chain(3))
    assert len({msbc.function_hash(chain(n)) for n in range(1, 20)}) == 19


def test_a_programs_hash_outlives_its_shapes():
    def launch(rows: int):
        x = dvm.tensor(np.ones((rows, 3), np.float32))
        float((x * 2.0).sum())
        return dvm.programs()[-1].hash()
    assert launch(4) == launch(9)
