"""What is fused into one area, and why an area ends where it does."""
from __future__ import annotations

import re

import numpy as np
import pytest
from core_programs import Program, run

from dvm_core import _core

F32 = np.float32


def array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F32)


def areas(program, *keep):
    """(kind, instruction indices) of each area."""
    return [(a.kind, a.instructions) for a in made(program, *keep).areas]


def made(program, *keep):
    return run(program, keep)[1][-1].program


def softmax(p, x, axis=1):
    e = p.op("EXP", p.op("SUB", x, p.op("MAX", x, attrs=(1, axis))))
    return p.op("DIV", e, p.op("SUM", e, attrs=(1, axis)))


def layer_norm(p, x, gamma, beta, axis=1):
    centred = p.op("SUB", x, p.op("MEAN", x, attrs=(1, axis)))
    variance = p.op("MEAN", p.op("MUL", centred, centred), attrs=(1, axis))
    normal = p.op("MUL", centred, p.op("RSQRT", p.op("ADD", variance, -1, imms=(1e-5,))))
    return p.op("ADD", p.op("MUL", normal, gamma), beta)


def gelu(p, x):
    t = p.op("ADD", p.op("ERF", p.op("MUL", x, -1, imms=(0.7071067811865476,))), -1, imms=(1.0,))
    return p.op("MUL", p.op("MUL", x, t), -1, imms=(0.5,))


def test_softmax_is_one_area():
    p = Program()
    out = softmax(p, p.input(array(32, 100)))
    assert areas(p, out) == [("vector", (0, 1, 2, 3, 4))]


def test_softmax_of_the_last_axis_of_four_is_one_area():
    p = Program()
    out = softmax(p, p.input(array(2, 3, 4, 50)), axis=3)
    assert areas(p, out) == [("vector", (0, 1, 2, 3, 4))]


def test_layer_norm_is_one_area():
    p = Program()
    x, gamma, beta = p.input(array(64, 96)), p.input(array(96)), p.input(array(96))
    out = layer_norm(p, x, gamma, beta)
    assert areas(p, out) == [("vector", tuple(range(9)))]


def test_layer_norm_without_keepdims_goes_through_reshapes():
    p = Program()
    x = p.input(array(64, 96))
    mean = p.op("MEAN", x, attrs=(0, 1))
    column = p.op("RESHAPE", mean, shape=(64, 1))
    full = p.op("BROADCAST", column, shape=(64, 96))
    out = p.op("SUB", x, full)
    assert areas(p, out) == [("vector", (0, 3))]


def test_matmul_bias_gelu_is_one_cube_area():
    p = Program()
    x, w, b = p.input(array(40, 64)), p.input(array(64, 128)), p.input(array(128))
    out = gelu(p, p.op("ADD", p.op("MATMUL", x, w, attrs=(0, 0)), b))
    assert areas(p, out) == [("cube", tuple(range(7)))]


def test_attention_scores_and_softmax_are_one_cube_area():
    p = Program()
    q, k = p.input(array(2, 4, 33, 16)), p.input(array(2, 4, 33, 16))
    scores = p.op("MUL", p.op("MATMUL", q, k, attrs=(0, 1)), -1, imms=(0.25,))
    out = softmax(p, scores, axis=3)
    assert areas(p, out) == [("cube", tuple(range(7)))]


def attention(p, q, k, v, *, values_axis=3):
    scores = p.op("MUL", p.op("MATMUL", q, k, attrs=(0, 1)), -1, imms=(0.25,))
    return p.op("MATMUL", softmax(p, scores, axis=values_axis), v, attrs=(0, 0))


def test_attention_is_one_cube_area():
    p = Program()
    out = attention(p, *(p.input(array(2, 4, 33, 16)) for _ in range(3)))
    assert areas(p, out) == [("cube", tuple(range(8)))]
    products = [line for line in made(p, out).tile_text(0).splitlines() if "MatMul.fp32" in line]
    assert ", 0x" in products[1]  # its left operand lies in the UB


def test_attention_over_heads_behind_reshapes_is_one_cube_area():
    p = Program()
    x = [p.input(array(2, 33, 64)) for _ in range(3)]
    heads = [p.op("TRANSPOSE", p.op("RESHAPE", v, shape=(2, 33, 4, 16)), attrs=(0, 2, 1, 3)) for v in x]
    out = attention(p, *heads)
    assert [kind for kind, _ in areas(p, out)] == ["cube"]


def test_kept_probabilities_do_not_cut_attention():
    p = Program()
    out = attention(p, *(p.input(array(2, 4, 33, 16)) for _ in range(3)))
    assert areas(p, out - 1, out) == [("cube", tuple(range(8)))]


def test_bias_gradient_is_one_area():
    p = Program()
    dy, y = p.input(array(600, 40)), p.input(array(600, 40))
    out = p.op("SUM", p.op("MUL", dy, y), attrs=(0, 0))
    assert areas(p, out) == [("reduce", (0, 1))]


def test_layer_norm_backward_reduces_rows_and_columns_in_one_area():
    p = Program()
    dy, normal, gamma, scale = p.input(array(300, 48)), p.input(array(300, 48)), p.input(array(48)), p.input(array(300, 1))
    d = p.op("MUL", dy, gamma)
    m1 = p.op("MEAN", d, attrs=(1, 1))
    product = p.op("MUL", d, normal)
    m2 = p.op("MEAN", product, attrs=(1, 1))
    dx = p.op("MUL", p.op("SUB", p.op("SUB", d, m1), p.op("MUL", normal, m2)), scale)
    dgamma = p.op("SUM", p.op("MUL", dy, normal), attrs=(0, 0))
    dbeta = p.op("SUM", dy, attrs=(0, 0))
    assert areas(p, dx, dgamma, dbeta) == [("reduce", tuple(range(11)))]


def test_instructions_between_do_not_keep_neighbours_apart():
    p = Program()
    x, small = p.input(array(30, 50)), p.input(array(7))
    a = p.op("EXP", x)
    s = p.op("NEG", small)
    b = p.op("TANH", a)
    assert areas(p, b, s) == [("vector", (0, 2)), ("vector", (1,))]


def test_a_path_that_leaves_an_area_does_not_come_back():
    p = Program()
    x = p.input(array(40, 40))
    a = p.op("EXP", x)
    t = p.op("TRANSPOSE", a, attrs=(1, 0))
    b = p.op("NEG", t)  # reads a in another order: a new area
    c = p.op("ADD", a, b)  # may not join the first
    assert areas(p, c) == [("vector", (0,)), ("vector", (2, 3))]


def test_reshape_with_common_boundaries_stays_in_the_area():
    p = Program()
    x, y = p.input(array(6, 64)), p.input(array(6, 4, 16))
    a = p.op("EXP", x)
    b = p.op("RESHAPE", a, shape=(6, 4, 16))
    c = p.op("ADD", b, y)
    assert areas(p, c) == [("vector", (0, 2))]


def test_dead_instructions_and_views_are_folded():
    p = Program()
    x = p.input(array(5, 6))
    p.op("EXP", x)  # nobody reads it
    t = p.op("TRANSPOSE", x, attrs=(1, 0))
    out = p.op("NEG", t)
    code = made(p, out)
    assert [i.folded_into for i in code.instructions] == [0, 2, -1]
    assert [i.area for i in code.instructions] == [-1, -1, 0]


# ---- why an area ends -----------------------------------------------------------------------------------------------------------------


def reason(program, *keep):
    return made(program, *keep).areas[0].cut_reason


def _space(p):
    a = p.op("EXP", p.input(array(4, 6)))
    r = p.op("RESHAPE", a, shape=(6, 4))
    return p.op("ADD", r, p.op("FULL", shape=(6, 4), dtype=1, imms=(1.0,)))


def _other_rows(p):
    a = p.op("EXP", p.input(array(8, 9, 10)))
    return p.op("ADD", p.op("SUM", a, attrs=(1, 2)), p.op("SUM", a, attrs=(1, 1, 2)))


def _matmul(p):
    a = p.op("EXP", p.input(array(8, 9)))
    return p.op("MATMUL", a, a, attrs=(0, 1))


def _products(p, m, k, n, d, turned=0):
    """Two products in a row: [m, k] @ [k, n], then @ d columns."""
    x, w, v = p.input(array(m, k)), p.input(array(k, n)), p.input(array(m if turned else n, d))
    return p.op("MATMUL", p.op("MATMUL", x, w, attrs=(0, 0)), v, attrs=(turned, 0))


def _right(p):
    x, w = p.input(array(8, 9)), p.input(array(9, 8))
    a = p.op("MATMUL", x, w, attrs=(0, 0))
    return p.op("MATMUL", a, a, attrs=(0, 0))


def _turned(p):
    return _products(p, 8, 9, 8, 5, turned=1)


def _wide(p):
    return _products(p, 8, 1000, 1000, 500)


def _chained(p):
    return p.op("EXP", _products(p, 8, 9, 8, 5))


def _small_tiles(p):
    x, w = p.input(array(8, 9)), p.input(array(9, 5))
    return p.op("MATMUL", p.op("EXP", x), w, attrs=(0, 0))


def _move(p):
    a = p.op("EXP", p.input(array(8, 9)))
    return p.op("CONCAT", a, a, attrs=(0,))


def _order(p):
    a = p.op("EXP", p.input(array(8, 9)))
    return p.op("NEG", p.op("TRANSPOSE", a, attrs=(1, 0)))


def _joined(p):
    x = p.input(array(300, 9))
    return p.op("SUB", x, p.op("SUM", x, attrs=(1, 0)))


def _long_row(p):
    x = p.input(array(2, 40000))
    return p.op("SUB", x, p.op("MAX", x, attrs=(1, 1)))


@pytest.mark.parametrize("build, words", [
    (_space, "different iteration space: [6,4] of ADD (#3) after [4,6]"),
    (_other_rows, "SUM (#2) reduces other axes than this area's rows"),
    (_matmul, "MATMUL (#1) needs its right operand in memory"),
    (_right, "MATMUL (#1) needs its right operand in memory"),
    (_turned, "MATMUL (#1) reads its left operand transposed"),
    (_wide, "MATMUL (#1) has a right operand too large to be read again for every block of rows"),
    (_chained, "EXP (#2) reads a product whose rows have another width"),
    (_small_tiles, "MATMUL (#1) would read its right operand again for each small tile"),
    (_move, "CONCAT (#1) moves data and runs alone"),
    (_order, "NEG (#2) reads the result in another order"),
    (_joined, "SUB (#1) needs a reduction that is complete only after all tiles"),
    (_long_row, "SUB (#1) needs a reduction that is complete only after all tiles"),
], ids=lambda x: x.__name__[1:] if callable(x) else "")
def test_cut_reasons(build, words):
    p = Program()
    assert reason(p, build(p)) == words


def test_every_area_says_why_it_ended():
    p = Program()
    x = p.input(array(12, 12))
    y = p.op("MATMUL", softmax(p, x), x, attrs=(0, 0))
    out = p.op("CONCAT", p.op("SUM", y, attrs=(1, 0)), x, attrs=(0,))
    assert all(a.cut_reason for a in made(p, out).areas)


# ---- tile code ------------------------------------------------------------------------------------------------------------------------

SOFTMAX = """\
vmain.aiv(rows=8, cols=64, tile=8x64, units=1, ub=4864) {
  g0: load.fp32 %0 // bound, row(256), col(4)
  g1: store.fp32 %5 // bound, row(256), col(4)
0: MaxX.fp32.8x64 0x0, g0 ; %0
1: strip // next(3)
2:   SubX.fp32.8x64 v0, g0, 0x0 ; %1
3:   Exp.fp32.8x64 0x100, v0 ; %2
4:   SumX.fp32.8x64 0x1300, v0 ; %3
5: DivX.fp32.8x64 g1, 0x100, 0x1300 ; %4
}
"""


def test_tile_text_of_softmax():
    p = Program()
    out = softmax(p, p.input(array(8, 64)))

    def plain(text):  # how much room is left for near shapes, which moves what lies behind it, is no matter here
        return re.sub(r"0x[0-9a-f]{4,}", "0x1...", re.sub(r"ub=\d+", "ub=", text))

    assert plain(made(p, out).tile_text(0)) == plain(SOFTMAX)


def test_tile_words_end_with_a_zero_head_and_carry_their_length():
    p = Program()
    out = softmax(p, p.input(array(8, 64)))
    words = np.frombuffer(made(p, out).tile_words(0), np.uint64)
    assert words[0] == 0 and words[-1] == 0  # an empty prologue, the end
    at, ids = 1, []
    while words[at]:
        ids.append(int(words[at] >> np.uint64(48)))
        assert words[at] & np.uint64(1)
        at += int(words[at] >> np.uint64(5)) & 15
    assert at == len(words) - 1
    assert ids == [0x31, 0x8a, 0x02, 0x12, 0x30, 0x04]  # MaxX strip SubX Exp SumX DivX


def test_hooked_code_is_another_entry_and_the_plain_code_comes_back():
    p = Program()
    out = softmax(p, p.input(array(8, 64)))
    code = made(p, out)
    plain = code.tile_words(0)
    _core.set_hook(code.id, 2, _core.HOOK_STATS, 5)
    try:
        assert "hook_stats.fp32.8x64" in made(p, out).tile_text(0)
    finally:
        _core.clear_hooks()
    assert made(p, out).tile_words(0) == plain
