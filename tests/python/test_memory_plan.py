"""The memory plan of a program: every step with exact bytes, aligned places, shared only by values that do not live together."""
from __future__ import annotations

import numpy as np
import pytest
from core_kit import Recorder
from core_programs import run
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_program

import dvm_core as dvm
from dvm_core.memory_plan import ALIGN, COPIES, FILLS, PUTS, MemoryPlan


def plan_of(program) -> MemoryPlan:
    return dvm.programs.program(program.id).memory_plan()


def check(plan: MemoryPlan, program) -> None:
    """What holds of every plan."""
    live: dict[tuple[int, int], object] = {}  # (value, offset) -> step
    shared = 0
    for step in plan.steps:
        item = program.instructions[step.instruction] if step.instruction >= 0 else None
        if item is not None and step.op in ("ALLOC", "FREE"):
            size = {code: size for _, code, size in dvm._core.DTYPES}[item.dtype]
            assert step.bytes == size * int(np.prod(item.shape, dtype=np.int64))
        if step.where == "result":
            assert step.op != "FREE" and step.offset == -1
            continue
        key = (step.value, step.offset)
        if step.op == "ALLOC":
            assert step.offset % ALIGN == 0 and step.offset + step.aligned <= plan.workspace_bytes
            if step.in_place_of >= 0:
                shared += 1
                taken = live.pop((step.in_place_of, step.offset))
                assert taken.bytes == step.bytes
            for other in live.values():
                assert step.offset >= other.offset + other.aligned or other.offset >= step.offset + step.aligned, (step, other)
            live[key] = step
        elif step.op == "FREE":
            live.pop(key)
        else:
            assert step.value in {s.value for s in [*live.values()]}
    assert not live
    assert 0 <= plan.peak_bytes <= plan.workspace_bytes + 128 * sum(s.where == "result" for s in plan.steps) + plan.result_bytes
    assert plan.unshared_bytes >= 0 and shared <= plan.copies_avoided


def test_a_chain_of_products_reuses_its_places():
    r = Recorder("plan_chain")
    w = r.input(np.eye(64, dtype=np.float32))
    h = r.input(np.ones((300, 64), np.float32))
    for _ in range(8):
        h = r.tanh(r.matmul(h, w, attrs=(0, 0)))
    y = r.sum(h, attrs=(0, 0, 1))
    program = r.graph.flush((y,)).program
    plan = plan_of(program)
    check(plan, program)
    value = 300 * 64 * 4
    assert [s.bytes for s in plan.steps if s.where == "workspace" and s.op == "ALLOC"].count(value) >= 7
    assert plan.workspace_bytes < 4 * value < plan.unshared_bytes and plan.result_bytes == 4


def test_copies_fills_and_what_was_avoided_are_counted_in_bytes():
    r = Recorder("plan_moves")
    x = r.input(np.ones((30, 20), np.float32))
    t = r.transpose(r.reshape(x, shape=(20, 30)), attrs=(1, 0))
    both = r.concat(t, x, attrs=(0,))
    wide = r.unslice(x, attrs=(0, 1, 0, 2), shape=(30, 39))
    plan = plan_of(r.graph.flush((both, wide)).program)
    told = [(s.op, s.value, s.bytes) for s in plan.steps if s.op in ("COPY", "FILL")]
    assert told == [("COPY", both, 4800), ("FILL", wide, 30 * 39 * 4), ("COPY", wide, 2400)]
    assert (plan.copies, plan.copied_bytes, plan.copies_avoided, plan.avoided_bytes) == (2, 7200, 2, 4800)
    assert plan.result_bytes == 4800 + 30 * 39 * 4


COMPUTED = {"MAX_POOL2D", "AVG_POOL2D", "CUMSUM", "ARGMAX", "ARGMIN", "SORT", "ARGSORT", "TOPK", "RANDOM"}


def test_every_instruction_that_moves_data_has_its_steps():
    moving = {name for name, _, cls, *_ in dvm._core.OPS if cls in "DN"}
    assert moving == (FILLS | COPIES | PUTS.keys() | COMPUTED) - {"COPY"}
    assert not COMPUTED & (FILLS | COPIES | PUTS.keys())


def test_padding_and_writing_by_index_are_counted_in_bytes():
    r = Recorder("plan_written")
    x, at, new = r.input(np.ones((3, 4), np.float32)), r.input(np.zeros((2, 4), np.int64)), r.input(np.ones((2, 4), np.float32))
    rows = r.input(np.zeros(2, np.int64))
    padded = r.pad(x, attrs=(1, 0), imms=(2.0,), shape=(5, 6))
    taken = r.gather_elements(x, at, attrs=(0,))
    written = r.scatter(x, rows, new, attrs=(0,))
    added = r.scatter_add_elements(new, at, attrs=(0,), shape=(3, 4))
    elements = r.scatter_elements(x, at, new, attrs=(0,))
    plan = plan_of(r.graph.flush((padded, taken, written, added, elements)).program)
    told = {value: [(s.op, s.bytes) for s in plan.steps if s.op in ("COPY", "FILL") and s.value == value]
            for value in (padded, taken, written, added, elements)}
    assert told == {padded: [("FILL", 120), ("COPY", 48)], taken: [("COPY", 32)], written: [("COPY", 48), ("COPY", 32)],
                    added: [("FILL", 48), ("COPY", 32)], elements: [("COPY", 48), ("COPY", 32)]}


def test_an_operand_that_dies_gives_its_place():
    r = Recorder("plan_in_place")
    x, w = r.input(np.ones((300, 64), np.float32)), r.input(np.ones((64, 64), np.float32))
    h = r.matmul(x, w, attrs=(0, 0))
    y = r.sub(h, r.sum(h, attrs=(0, 0)))
    program = r.graph.flush((r.matmul(r.exp(y), r.transpose(y, attrs=(1, 0)), attrs=(0, 0)),)).program
    plan = plan_of(program)
    check(plan, program)
    assert {s.value: s.in_place_of for s in plan.steps if s.op == "ALLOC"}[y] == h
    lines = plan.text().splitlines()
    assert any(line.endswith(f"in place of %{h}") for line in lines) and "avoided" in lines[-1]


def test_a_program_cut_at_a_stop_has_a_plan_with_all_in_results():
    r = Recorder("plan_unlaunched")
    x = r.input(np.ones((4, 4), np.float32))
    program = r.graph.flush((r.exp(r.neg(x)),)).program
    dvm._core.set_hook(program.id, 1, dvm._core.HOOK_STOP, 1)
    dvm._core.set_stop_handler(lambda *_: None)
    try:
        r = Recorder("plan_unlaunched")
        x = r.input(np.ones((4, 4), np.float32))
        assert r.graph.flush((r.exp(r.neg(x)),)).program.id == program.id
    finally:
        dvm._core.set_stop_handler(None)
        dvm._core.clear_hooks()
    steps = plan_of(program).steps
    assert [(s.op, s.area, s.value, s.where) for s in steps] == [("ALLOC", 0, 1, "result"), ("ALLOC", 1, 2, "result")]


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 10**6), st.data())
def test_the_plan_of_any_program_is_sound(seed, data):
    program = random_program(seed)
    first = len(program.inputs)
    values = list(range(first, first + len(program.steps)))
    keep = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)) if values else []
    if not keep:
        pytest.skip("no instructions")
    _, launches = run(program, keep)
    check(plan_of(launches[0].program), launches[0].program)
