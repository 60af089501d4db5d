"""Bits never depend on fusing, cutting, hooking, tile size or number of cores; and every result is NumPy's."""
from __future__ import annotations

import random

import numpy as np
import pytest
from core_programs import Program, check_step, run, same_bits
from random_programs import random_program

from dvm_core import _core

SEEDS = range(300)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def core_settings():
    yield
    _core.set_tile_elements(0)
    _core.set_threads(0)
    _core.clear_hooks()
    _core.set_stop_handler(None)


def unfused(program, keep):
    """Every instruction an area of its own: stopped before the first, then stepped to the end."""
    (_, launches) = run(program, keep)
    made = launches[-1].program
    stops = []

    def step_to_end(launch, instruction, reason, hooks):
        stops.append(instruction)
        launch.run_until(len(made.instructions))

    _core.set_hook(made.id, 0, _core.HOOK_STOP, 1)
    _core.set_stop_handler(step_to_end)
    try:
        recorded, _ = run(program, keep)
    finally:
        _core.clear_hooks()
        _core.set_stop_handler(None)
    assert stops == [0]
    return recorded


@pytest.mark.parametrize("seed", SEEDS)
def test_every_instruction_is_numpys(seed):
    program = random_program(seed)
    everything = range(len(program.inputs) + len(program.steps))
    recorded = unfused(program, everything[len(program.inputs):])
    values = [recorded.array(v) for v in everything]
    for step in range(len(program.steps)):
        check_step(program, step, values)


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_do_not_depend_on_how_it_runs(seed):
    program = random_program(seed)
    rng = random.Random(seed)
    inputs, steps = len(program.inputs), len(program.steps)
    last = inputs + steps - 1
    keep = sorted({last, *(rng.randrange(inputs, last + 1) for _ in range(2))})
    stepped = unfused(program, keep)
    want = {v: stepped.array(v) for v in keep}

    def compare(recorded, how):
        for v in keep:
            got = recorded.array(v)
            where = f"seed {seed}: value {v} ({program.steps[v - inputs]}) differs {how}"
            assert same_bits(got, want[v]), f"{where}: {got.ravel()[:4]} {want[v].ravel()[:4]}"

    for threads in (1, 2):
        _core.set_threads(threads)
        for tile in (0, 64, 1000):
            _core.set_tile_elements(tile)
            compare(run(program, keep)[0], f"fused, {threads} threads, tile {tile}")
    _core.set_tile_elements(0)
    compare(run(program, range(inputs, last + 1))[0], "with every value kept")
    if steps > 1:
        cuts = sorted(rng.sample(range(1, steps), min(2, steps - 1)))
        compare(run(program, keep, cuts=cuts)[0], f"cut at {cuts}")
    made = run(program, keep)[1][-1].program
    hooked = rng.sample(range(steps), min(3, steps))
    for i in hooked:
        _core.set_hook(made.id, i, _core.HOOK_STATS, 100 + i)
    compare(run(program, keep)[0], f"with statistics of {hooked}")
    events = [e for e in _core.poll_events(100) if e["kind"] == "stats"]
    assert {e["instruction"] for e in events} >= set(hooked)
    _core.clear_hooks()
    stop = rng.randrange(steps)
    _core.set_hook(made.id, stop, _core.HOOK_STOP, 1)
    _core.set_stop_handler(lambda launch, instruction, reason, hooks: None)
    compare(run(program, keep)[0], f"stopped before {stop}")


def test_statistics_count_every_element_once():
    x = np.random.default_rng(1).standard_normal((300, 257)).astype(np.float32)
    program = Program()
    a = program.input(x)
    b = program.op("MUL", a, -1, imms=(2.0,))
    c = program.op("SUM", b, attrs=(0, 1))
    d = program.op("SUM", b, attrs=(0, 0))
    made = run(program, [c, d])[1][0].program
    for i in range(3):
        _core.set_hook(made.id, i, _core.HOOK_STATS, i)
    recorded, _ = run(program, [c, d])
    stats = {e["instruction"]: e["stats"] for e in _core.poll_events() if e["kind"] == "stats"}
    for i, value in ((0, 2 * x), (1, recorded.array(c)), (2, recorded.array(d))):
        assert stats[i]["count"] == stats[i]["finite"] == value.size
        assert stats[i]["min"] == value.min() and stats[i]["max"] == value.max()
        assert stats[i]["mean"] == pytest.approx(value.mean(dtype=np.float64), abs=1e-6)
        assert stats[i]["std"] == pytest.approx(value.std(dtype=np.float64), rel=1e-4)
        assert sum(stats[i]["histogram"]) == value.size
