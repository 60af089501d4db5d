"""Optimizers' updates as loops of their own: the bits of their instructions one by one, at every SIMD level, and the same text."""
from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from core_programs import Program, run, same_bits
from test_programs_random import unfused
from test_strips import LEVELS

from dvm_core import _core

SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42, 3e38, -3e38, 1e-30], np.float32)
SIZES = (512, 513, 527, 528, 529, 767, 1000, 1024, 1025, 2047, 4099, 20001)


class Writer:
    """A program of updates; numbers are left operands or right ones, immediates or values of rank 0, by chance."""

    def __init__(self, seed: int, size: int = 0) -> None:
        self.pick, self.p = random.Random(seed), Program()
        rng = np.random.default_rng(seed)
        self.shape = (1, size) if size else self.pick.choice([(1, n) for n in SIZES] + [(40, 50), (517, 3), (100, 33), (9, 700)])
        special = _core.simd_level() != "baseline" and seed % 2 == 1  # of two NaNs the first or second stays, as the compiler likes
        arrays = [rng.standard_normal(self.shape).astype(np.float32) for _ in range(4)]
        arrays[3] = np.abs(arrays[3])
        for a in arrays if special else []:
            at = rng.random(self.shape) < 0.05
            a[at] = rng.choice(SPECIAL, int(at.sum()))
        self.parameter, self.gradient, self.first, self.second = map(self.p.input, arrays)
        odd = rng.choice(SPECIAL, 2) if special else ()
        self.numbers = [self.p.input(np.full((1, 1), x, np.float32)) for x in (0.125, 0.3, *odd)]

    def op(self, name: str, a: int, b: int | float) -> int:
        if isinstance(b, int):
            return self.p.op(name, a, b)
        at, imms = (self.pick.choice(self.numbers), ()) if self.pick.random() < 0.3 else (-1, (b,))
        if name in ("ADD", "MUL") and self.pick.random() < 0.5:
            return self.p.op(name, at, a, imms=imms)
        return self.p.op(name, a, at, imms=imms)

    def moments(self, scaled: bool = False) -> tuple[int, int]:
        g = self.gradient
        m = self.op("ADD", self.op("MUL", self.first, 0.9), self.op("MUL", g, 0.1))
        old = self.op("MUL", self.second, 0.999)
        new = self.op("MUL", self.op("MUL", g, 0.001), g) if scaled else self.op("MUL", self.op("MUL", g, g), 0.001)
        return m, self.op("ADD", old, new)

    def root(self, v: int) -> int:
        return self.op("ADD", self.p.op("SQRT", v), 1e-8)

    def away(self, step: int) -> int:
        return self.p.op("SUB", self.parameter, step)


def adam(w: Writer, scaled: bool = False) -> list[int]:
    m, v = w.moments(scaled)
    return [m, v, w.away(w.p.op("DIV", w.op("MUL", m, 0.01), w.root(v)))]


def adam_corrected(w: Writer) -> list[int]:
    m, v = w.moments()
    corrected, root = w.op("DIV", m, 0.271), w.op("DIV", v, 0.002997)
    return [m, v, w.away(w.p.op("DIV", w.op("MUL", corrected, 0.01), w.root(root)))]


def adam_rated(w: Writer, decay: bool = False) -> list[int]:
    m, v = w.moments()
    step = w.p.op("DIV", m, w.root(v))
    if decay:
        step = w.p.op("ADD", step, w.op("MUL", w.parameter, 0.02))
    return [m, v, w.away(w.op("MUL", step, 0.01))]


def momentum(w: Writer) -> list[int]:
    speed = w.p.op("ADD", w.op("MUL", w.first, 0.9), w.gradient)
    return [speed, w.away(w.op("MUL", speed, 0.01))]


def momentum_decayed(w: Writer) -> list[int]:
    g = w.p.op("ADD", w.gradient, w.op("MUL", w.parameter, 0.02))
    speed = w.p.op("ADD", w.op("MUL", w.first, 0.9), g)
    return [speed, w.away(w.op("MUL", speed, 0.01))]


UPDATES: dict[str, Callable[[Writer], list[int]]] = {
    "Adam": adam, "Adam, scaled first": lambda w: adam(w, True), "Adam, corrected": adam_corrected, "AdamW": lambda w: adam_rated(w, True),
    "AdamW without decay": adam_rated, "momentum": momentum, "momentum with decay": momentum_decayed,
}


def check(name: str, seed: int) -> None:
    w = Writer(seed)
    keep = UPDATES[name](w)
    p, steps = w.p, len(w.p.steps)
    one_by_one = unfused(p, list(range(len(p.inputs), len(p.inputs) + steps)))
    want = {v: one_by_one.array(v) for v in range(len(p.inputs), len(p.inputs) + steps)}

    def compare(got, values, what) -> None:
        for v in values:
            assert same_bits(got.array(v), want[v]), (name, seed, what, v, p.steps[v - len(p.inputs)], w.shape)

    made = run(p, keep)[1][-1].program
    for tile in (0, 512, 640, 1000):
        _core.set_tile_elements(tile)
        compare(run(p, keep)[0], keep, f"tiles of {tile}")
    _core.set_tile_elements(0)
    for i in range(steps):
        compare(run(p, keep, cuts=[i] if i else [])[0], keep, f"cut at {i}")
        compare(run(p, sorted({*keep, len(p.inputs) + i}))[0], {*keep, len(p.inputs) + i}, f"%{i} wanted")
        _core.set_hook(made.id, i, _core.HOOK_STATS, 1)
        compare(run(p, keep)[0], keep, f"hooked at {i}")
        _core.clear_hooks()
        _core.poll_events(1000)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", UPDATES)
def test_bits_are_those_of_instructions_one_by_one(name, seed):
    check(name, seed)


@pytest.mark.parametrize("level", LEVELS)
def test_every_simd_level(level):
    code = ("import warnings; warnings.simplefilter('ignore'); from test_strip_updates import UPDATES, check\n"
            "from dvm_core import _core\n"
            "for name in UPDATES:\n"
            "    for seed in range(20, 28): check(name, seed)\n"
            "print(_core.simd_level())")
    env = {**os.environ, "DVM_SIMD": level, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if done.stdout.strip() != level:
        pytest.skip(f"this processor has no {level}")


# ---- what is an update ------------------------------------------------------------------------------------------------------------------


def strips(p: Program, keep: list[int]) -> list[int]:
    text = run(p, keep)[1][0].program.tile_text(0)
    return [int(line.split("next(")[1].split(")")[0]) for line in text.splitlines() if "// next(" in line]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_a_strip_to_itself(name, seed):
    w = Writer(2 * seed, 2000)
    w.gradient = w.p.op("MUL", w.p.op("EXP", w.gradient), w.parameter)
    before = len(w.p.steps)
    keep = UPDATES[name](w)
    assert strips(w.p, keep) == [2, len(w.p.steps) - before]


def test_what_only_looks_like_an_update_is_none():
    w = Writer(0, 2000)
    w.gradient = w.p.op("EXP", w.gradient)
    m, v = w.moments()
    other = w.p.op("DIV", w.op("MUL", v, 0.01), w.root(v))  # v over its own root
    assert strips(w.p, [m, v, w.away(other)]) == [13]


@pytest.mark.parametrize("wanted", range(12))
def test_an_update_whose_inner_value_is_wanted_keeps_it_in_memory(wanted):
    w = Writer(2, 2000)
    keep = adam(w)
    value = len(w.p.inputs) + wanted
    got, want = run(w.p, sorted({*keep, value}))[0], unfused(w.p, sorted({*keep, value}))
    for v in {*keep, value}:
        assert same_bits(got.array(v), want.array(v))


LARGE = [(1000, 1000), (50_001, 6272), (100_000, 8192), (1_000_000, 15744), (3_000_000, 32768)]


@pytest.mark.parametrize(("size", "tile"), LARGE)
def test_an_area_that_is_one_strip_has_large_tiles(size, tile):
    p = Program()
    x = p.input(np.arange(size, dtype=np.float32))
    out = p.op("ADD", p.op("MUL", x, x), x)
    recorded, launches = run(p, [out])
    assert f"tile=1x{tile}," in launches[0].program.tile_text(0)
    assert same_bits(recorded.array(out), p.inputs[0] * p.inputs[0] + p.inputs[0])
