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


def names(text: str) -> list[str]:
    return [line.split()[0].split(".")[0] for line in lines(text)]


def test_softmax_and_its_gradient_are_loops_over_rows():
    p = Program()
    x, = inputs(p, (20, 100))
    e = p.op("EXP", p.op("SUB", x, p.op("MAX", x, attrs=(1, 1))))
    y = p.op("DIV", e, p.op("SUM", e, attrs=(1, 1)))
    assert names(text_of(p, y)) == ["MaxX", "strip", "SubX", "Exp", "SumX", "DivX"]
    p = Program()
    y, dy = inputs(p, (20, 100), (20, 100))
    total = p.op("SUM", p.op("MUL", y, dy), attrs=(1, 1))
    text = text_of(p, p.op("MUL", y, p.op("SUB", dy, total)))
    assert names(text) == ["strip", "Mul", "SumX", "strip", "SubX", "Mul"]
    assert "ub=256)" in text, "products and differences never lie in the UB"


def normalised(p: Program, x: int) -> tuple[int, int]:
    centred = p.op("SUB", x, p.op("MEAN", x, attrs=(1, 1)))
    scale = p.op("RSQRT", p.op("ADD", p.op("MEAN", p.op("MUL", centred, centred), attrs=(1, 1)), -1, imms=(1e-5,)))
    return p.op("MUL", centred, scale), scale


def layer_norm(p: Program, x: int, gain: int, bias: int) -> tuple[int, int, int]:
    normal, scale = normalised(p, x)
    return p.op("ADD", p.op("MUL", normal, gain), bias), normal, scale


def layer_norm_gradient(cols: int, rows: int = 21, early: bool = False) -> tuple[Program, list[int]]:
    """early: the gradient's first product is computed before the result."""
    p, rng = Program(), np.random.default_rng(cols)
    x, gain, bias, dy = (p.input(values(rng, shape, False, False)) for shape in ((rows, cols), (1, cols), (1, cols), (rows, cols)))
    if early:
        normal, scale = normalised(p, x)
        g = p.op("MUL", dy, gain)
        y = p.op("ADD", p.op("MUL", normal, gain), bias)
    else:
        y, normal, scale = layer_norm(p, x, gain, bias)
        g = p.op("MUL", dy, gain)
    part = p.op("SUB", g, p.op("MEAN", g, attrs=(1, 1)))
    part = p.op("SUB", part, p.op("MUL", normal, p.op("MEAN", p.op("MUL", g, normal), attrs=(1, 1))))
    return p, [y, p.op("MUL", scale, part), p.op("SUM", p.op("MUL", dy, normal), attrs=(0, 0)), p.op("SUM", dy, attrs=(0, 0))]


@pytest.mark.parametrize("early", [False, True])
def test_a_normalisation_with_its_gradient_is_loops_over_rows(early):
    p, keep = layer_norm_gradient(96, early=early)
    text = names(run(p, keep)[1][0].program.tile_text(0))
    at = text.index("Rsqrt") + 1
    loop = ["strip", "MulX", "Mul", "Mul", "Add", "SumX"] if early else ["strip", "MulX", "Mul", "Add", "strip", "Mul", "SumX"]
    assert text[at:at + len(loop)] == loop, text
    assert ["strip", "SubX", "Mul", "SumX"] == text[at + len(loop) + 1:][:4], text
    assert "strip MulX Sub XMul" in " ".join(text)


def check_rows() -> None:
    """Loops over rows at widths around groups, sets of lanes, four rows side by side and blocks, against instructions one by one."""
    for half in (False, True):
        for cols in (16, 17, 31, 32, 33, 63, 64, 100, 255, 256, 257, 320, 335, 4096, 4097, 4352, 4400):
            rows = 3 if cols > 4000 else 19
            rng = np.random.default_rng(cols)
            programs = [layer_norm_gradient(cols, rows, early) for early in (False, True)]
            for kind in ("softmax", "cross-entropy", "softmax backward", "LayerNorm"):
                p = Program()
                x, y = (p.input(values(rng, (rows, cols), half, False)) for _ in range(2))
                if kind in ("softmax", "cross-entropy"):
                    e = p.op("EXP", p.op("SUB", x, p.op("MAX", x, attrs=(1, 1))))
                    total = p.op("SUM", e, attrs=(1, 1))
                    keep = p.op("LOG", total) if kind == "cross-entropy" else p.op("DIV", e, total)
                elif kind == "LayerNorm":
                    keep = layer_norm(p, x, *(p.input(values(rng, (1, cols), half, False)) for _ in range(2)))[0]
                else:
                    keep = p.op("MUL", x, p.op("SUB", y, p.op("SUM", p.op("MUL", x, y), attrs=(1, 1))))
                programs.append((p, [keep]))
            for p, kept in programs:
                want = unfused(p, kept)
                for tile in (0, 1000, 5000):
                    _core.set_tile_elements(tile)
                    got, _ = run(p, kept)
                    assert all(same_bits(got.array(v), want.array(v)) for v in kept), (half, cols, tile, p.steps)
                _core.set_tile_elements(0)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_of_every_width_at_every_simd_level(level):
    run_at(level, "from test_strips import check_rows; check_rows()")


def check_exponents(seed: int) -> None:
    """EXP and SIGMOID in a strip and alone, over every sign, exponent and upper half of a float."""
    rng = np.random.default_rng(seed)
    bits = (np.arange(1 << 16, dtype=np.uint32) << 16)[:, None] | rng.integers(0, 1 << 16, (1 << 16, 8), dtype=np.uint32)
    edges = np.array([88.7, 88.8, 89, 104, 103.9, 103.97, 105, 87.3, 1.0], np.float32)
    edges = np.concatenate([edges, -edges]).view(np.uint32)[:, None] + np.arange(-64, 64, dtype=np.int32).view(np.uint32)
    for x in (bits.view(np.float32), edges.view(np.float32)):
        p = Program()
        a = p.input(x)
        keep = [p.op("NEG", p.op(op, a)) for op in ("EXP", "SIGMOID")]
        want, (got, launches) = unfused(p, keep), run(p, keep)
        assert "strip" in launches[0].program.tile_text(0)
        assert all(same_bits(got.array(v), want.array(v)) for v in keep)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
def test_exponents_in_strips_have_the_bits_they_have_alone(seed):
    check_exponents(seed)


def test_halves_have_loops_over_rows_but_no_steps():
    p = Program()
    x, y = inputs(p, (40, 50), (40, 50), half=True)
    assert p.inputs[0].dtype == BFLOAT16 and "strip" not in text_of(p, p.op("EXP", p.op("MUL", x, y)))
    p = Program()
    x, gain, bias = inputs(p, (20, 100), (1, 100), (1, 100), half=True)
    assert names(text_of(p, layer_norm(p, x, gain, bias)[0])).count("strip") == 3


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
