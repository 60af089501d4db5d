"""Strips: instructions computed together give the bits that they give one by one, at every SIMD level, and keep their lines in the text."""
from __future__ import annotations

import random

import numpy as np
import pytest
from core_kit import run_at
from core_programs import BFLOAT16, Program, run, same_bits
from halves import bits_of
from test_programs_random import unfused

from dvm_core import _core

LEVELS = ("baseline", "avx2", "avx512")
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
UNARY = ("NEG", "ABS", "EXP", "LOG", "SQRT", "RSQRT", "TANH", "ERF", "SIGMOID", "RECIPROCAL")
WIDTHS = (63, 64, 65, 127, 128, 150, 255, 256, 257, 271, 300, 517, 4096, 4097, 4200, 8500)
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -3e38], np.float32)
F32, BF16 = (next(code for name, code, *_ in _core.DTYPES if name == wanted) for wanted in ("float32", "bfloat16"))


def values(rng: np.random.Generator, shape, half: bool, special: bool) -> np.ndarray:
    x = rng.standard_normal(shape).astype(np.float32)
    if special:
        at = rng.random(shape) < 0.01
        x[at] = rng.choice(SPECIAL, int(at.sum()))
    return bits_of(x, "bfloat16") if half else x


def chain(seed: int) -> tuple[Program, list[int]]:
    """Elementwise instructions at random, row reductions among them, over values old and new, one value, one value per row, one row."""
    rng, pick = np.random.default_rng(seed), random.Random(seed)
    half, special, cols = seed % 3 == 2, seed % 4 == 1 and _core.simd_level() != "baseline", pick.choice(WIDTHS)
    rows = pick.choice((1, 2, 7, 13) if cols < 2000 else (1, 2, 5))
    p = Program()
    full = [p.input(values(rng, (rows, cols), half, special)) for _ in range(3)]
    row, one = [p.input(values(rng, (rows, 1), half, False))], p.input(values(rng, (1, cols), half, False))
    for _ in range(pick.randrange(3, 40)):
        choice = pick.random()
        if choice < 0.12 and not special:  # of NaNs and infinities of both signs a sum keeps whichever comes first
            row.append(p.op(pick.choice(("SUM", "MAX", "MIN", "MEAN")), pick.choice(full[-3:]), attrs=(1, 1)))
        elif choice < 0.3:
            full.append(p.op(pick.choice(UNARY), pick.choice(full[-4:])))
        elif choice < 0.45:
            sides = [pick.choice(full[-4:]), pick.choice([*row, one])]
            pick.shuffle(sides)
            full.append(p.op(pick.choice(BINARY), *sides))
        elif choice < 0.55:
            sides = [pick.choice(full[-4:]), -1]
            pick.shuffle(sides)
            full.append(p.op(pick.choice(BINARY), *sides, imms=(pick.choice((0.5, -2.0, 1.0)),)))
        elif choice < 0.6 and half:
            wide = p.op("CAST", pick.choice(full[-3:]), dtype=F32)
            full.append(p.op("CAST", p.op("EXP", p.op("MUL", wide, wide)), dtype=BF16))
        else:
            full.append(p.op(pick.choice(BINARY), pick.choice(full[-4:]), pick.choice(full)))
    last = len(p.inputs) + len(p.steps) - 1
    return p, sorted({last, *pick.sample(range(len(p.inputs), last + 1), min(2, len(p.steps)))})


def check(seed: int) -> None:
    p, keep = chain(seed)
    one_by_one = unfused(p, keep)
    want = {v: one_by_one.array(v) for v in keep}
    made = run(p, keep)[1][-1].program
    for tile in (0, 100, 1000):
        _core.set_tile_elements(tile)
        got, _ = run(p, keep)
        for v in keep:
            assert same_bits(got.array(v), want[v]), (seed, tile, v, p.steps[v - len(p.inputs)], p.inputs[0].shape, made.tile_text(0))
    _core.set_tile_elements(0)
    for i in random.Random(seed).sample(range(len(p.steps)), 2):
        _core.set_hook(made.id, i, _core.HOOK_STATS, 1)
    hooked, _ = run(p, keep)
    _core.clear_hooks()
    _core.poll_events(1000)
    assert all(same_bits(hooked.array(v), want[v]) for v in keep), seed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(120))
def test_bits_are_those_of_instructions_one_by_one(seed):
    check(seed)


@pytest.mark.parametrize("level", LEVELS)
def test_every_simd_level(level):
    run_at(level, "import warnings; warnings.simplefilter('ignore'); from test_strips import check\n"
                  "for seed in range(200, 240): check(seed)")


# ---- what is a strip --------------------------------------------------------------------------------------------------------------------


def text_of(p: Program, *keep: int) -> str:
    return run(p, keep)[1][0].program.tile_text(0)


def inputs(p: Program, *shapes, half: bool = False) -> list[int]:
    rng = np.random.default_rng(0)
    return [p.input(values(rng, shape, half, False)) for shape in shapes]


def lines(text: str) -> list[str]:
    return [line.split(": ", 1)[1].split(" // bound")[0] for line in text.splitlines() if ": " in line and not line.startswith("  g")]


def test_a_chain_is_one_strip_and_keeps_its_lines():
    p = Program()
    x, y = inputs(p, (40, 50), (40, 50))
    product = p.op("MUL", x, y)
    rest = p.op("TANH", p.op("ADD", product, x))
    text = lines(text_of(p, p.op("SUB", product, rest)))
    assert text == ["strip // next(4)", "  Mul.fp32.1024 v1, g0, g1 ; %0", "  Add.fp32.1024 v0, v0, g0 ; %1",
                    "  Tanh.fp32.1024 v0, v0 ; %2", "  Sub.fp32.1024 g2, v1, v0 ; %3"], text


def test_results_that_others_read_are_in_memory():
    p = Program()
    x, y = inputs(p, (40, 50), (40, 50))
    kept = p.op("MUL", x, y)
    text = text_of(p, p.op("EXP", p.op("ADD", kept, x)), kept)
    assert "Mul.fp32.1024 g0, g1, g2 ; %0" in text and "Add.fp32.1024 v0, v0, g1 ; %1" in text


def test_the_gradient_of_softmax_is_two_loops_over_rows():
    p = Program()
    x, dy = inputs(p, (20, 100), (20, 100))
    e = p.op("EXP", p.op("SUB", x, p.op("MAX", x, attrs=(1, 1))))
    y = p.op("DIV", e, p.op("SUM", e, attrs=(1, 1)))
    assert [line.split()[0].split(".")[0] for line in lines(text_of(p, y))] == ["MaxX", "SubX", "Exp", "SumX", "DivX"]
    p = Program()
    y, dy = inputs(p, (20, 100), (20, 100))
    total = p.op("SUM", p.op("MUL", y, dy), attrs=(1, 1))
    text = text_of(p, p.op("MUL", y, p.op("SUB", dy, total)))
    assert [line.split()[0].split(".")[0] for line in lines(text)] == ["strip", "Mul", "SumX", "strip", "SubX", "Mul"]
    assert "ub=256)" in text, "products and differences never lie in the UB"


def test_halves_have_instructions_one_by_one():
    p = Program()
    x, y = inputs(p, (40, 50), (40, 50), half=True)
    assert p.inputs[0].dtype == BFLOAT16 and "strip" not in text_of(p, p.op("EXP", p.op("MUL", x, y)))


def test_hooks_and_small_tiles_have_instructions_one_by_one():
    p = Program()
    x, y = inputs(p, (4, 50), (4, 50))
    assert "strip" not in text_of(p, p.op("EXP", p.op("MUL", x, y)))
    p = Program()
    x, y = inputs(p, (40, 50), (40, 50))
    out = p.op("EXP", p.op("MUL", x, y))
    made = run(p, [out])[1][0].program
    _core.set_hook(made.id, 0, _core.HOOK_STATS, 1)
    try:
        text = text_of(p, out)
    finally:
        _core.clear_hooks()
        _core.poll_events(100)
    assert "hook_stats" in text and "Mul.fp32.1024 0x0, g" in text
