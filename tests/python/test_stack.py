"""Small areas that need nothing of each other run side by side: which they are, and that neither bits nor hooks nor memory can tell."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import Program, run, same_bits
from test_programs_random import core_settings, unfused  # noqa: F401  core_settings is a fixture

from dvm_core import _core, programs

F32 = np.float32


def array(n, seed):
    return np.random.default_rng(seed).standard_normal(n).astype(F32)


def chains(lengths, rounds=4):
    """For every length a chain of its own; ends of chains."""
    p = Program()
    pairs = [(p.input(array(n, 2 * i)), p.input(array(n, 2 * i + 1))) for i, n in enumerate(lengths)]
    ends = []
    for x, y in pairs:
        for _ in range(rounds):
            x = p.op("ADD", p.op("MUL", x, y), y)
        ends.append(p.op("TANH", x))
    return p, ends


def stacks(program, keep):
    return [a.stack for a in run(program, keep)[1][-1].program.areas]


def test_independent_areas_are_one_stack():
    p, ends = chains([2000, 3000, 4000])
    assert stacks(p, ends) == [(0, 1, 2)] * 3


def test_an_area_that_needs_another_begins_a_new_stack():
    p = Program()
    x, y = p.input(array(64, 0).reshape(8, 8)), p.input(array(100, 1))
    a, b = p.op("EXP", x), p.op("EXP", y)
    c = p.op("NEG", p.op("TRANSPOSE", a, attrs=(1, 0)))
    d = p.op("SUB", y, p.op("SUM", b, attrs=(1, 0)))
    assert stacks(p, [c, d])[0] == (0, 1)
    assert stacks(p, [c, d])[2][0] == 2


def test_moves_and_large_areas_stand_alone():
    p, ends = chains([3_000_000, 2000, 2500])
    assert stacks(p, ends) == [(0,), (1, 2), (1, 2)]
    p = Program()
    x = p.input(array(100, 0))
    a = p.op("CONCAT", x, x, attrs=(0,))
    b = p.op("EXP", x)
    assert stacks(p, [a, b]) == [(0,), (1,)]


def test_the_listing_says_what_runs_side_by_side():
    p, ends = chains([2000, 3000])
    made = run(p, ends)[1][-1].program
    text, _ = programs.program(made.id).text("tensor")
    assert text.count("side by side in areas 0 to 1") == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_bits_memory_and_hooks_of_a_stack(threads):
    p = Program()
    shared = p.input(array(20_000, 99))
    others = [p.input(array(20_000 + 16 * i, i)) for i in range(8)]
    ends, inner = [], []
    for i, x in enumerate(others):
        for _ in range(5):
            x = p.op("TANH", p.op("ADD", x, x))
        inner.append(x)
        ends.append(p.op("SUM", x, attrs=(0, 0)))       # partial results of each area
        ends.append(p.op("MUL", x, -1, imms=(float(i),)))
    ends.append(p.op("ADD", p.op("EXP", shared), shared))
    want = {v: a for v, a in zip(ends, (unfused(p, ends).array(v) for v in ends), strict=True)}
    _core.set_threads(threads)
    for _ in range(9):  # sampled runs take the areas one by one, the others side by side
        recorded, launches = run(p, ends)
        assert all(same_bits(recorded.array(v), want[v]) for v in ends)
    made = launches[-1].program
    assert max(len(a.stack) for a in made.areas) > 4
    assert all(a.ns > 0 for a in made.areas)
    hooked = [v - len(p.inputs) for v in inner[:3]]
    for i in hooked:
        _core.set_hook(made.id, i, _core.HOOK_STATS, i)
    for _ in range(3):
        recorded, _ = run(p, ends)
        events = {e["instruction"]: e["stats"] for e in _core.poll_events(100) if e["kind"] == "stats"}
        assert all(same_bits(recorded.array(v), want[v]) for v in ends)
        assert [events[i]["count"] for i in hooked] == [20_000, 20_016, 20_032]


@pytest.mark.parametrize("threads", [1, 2])
def test_values_between_stacks_keep_their_memory(threads):
    p = Program()
    x = [p.input(array(16_384, i).reshape(128, 128)) for i in range(6)]
    for _ in range(4):  # every round reads all the transposed results of the round before
        turned = [p.op("TRANSPOSE", v, attrs=(1, 0)) for v in x]
        x = [p.op("TANH", p.op("ADD", p.op("MUL", turned[i], turned[i - 1]), turned[i - 2])) for i in range(6)]
    want = unfused(p, x)
    _core.set_threads(threads)
    for _ in range(9):
        recorded, _ = run(p, x)
        assert all(same_bits(recorded.array(v), want.array(v)) for v in x)
