"""The compiler's passes by name, what constants are folded into, and which dimensions are the same."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import CODE, Program, run, same_bits
from test_programs_random import core_settings, unfused  # noqa: F401  core_settings is a fixture

from dvm_core import _core, programs

F32, F16, I32, BOOL = (CODE[name] for name in ("float32", "float16", "int32", "bool"))
PASSES = ["Source", "DeadCodeEliminate", "EliminateReshape", "FoldConstants", "Fuse", "Tile", "Lower", "Encode", "Stack", "PlanMemory"]


def array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def made(program, *keep, name="passes"):
    return programs.Program(run(program, keep, name)[1][-1].program)


def test_every_pass_tells_what_it_made():
    p = Program()
    x = p.input(array(8, 64))
    p.op("EXP", x)  # nobody reads it
    t = p.op("RESHAPE", p.op("TRANSPOSE", x, attrs=(1, 0)), shape=(64, 8))
    two = p.op("MUL", p.op("FULL", shape=(), dtype=F32, imms=(1.0,)), -1, imms=(2.0,))
    out = p.op("MUL", t, two)
    passes = made(p, out).passes()
    assert [name for name, _ in passes] == PASSES
    text = dict(passes)
    assert len(text["Source"].splitlines()) == 6
    assert "EXP" in text["Source"] and "EXP" not in text["DeadCodeEliminate"]
    assert "TRANSPOSE" in text["DeadCodeEliminate"] and "TRANSPOSE" not in text["EliminateReshape"]
    assert "%6 = MUL(%0in by [1,64], %5) float32[64,8]" in text["EliminateReshape"]
    assert "// computed once, folded into %6" in text["FoldConstants"]
    assert text["Fuse"].startswith("area 0 vector {") and "rows=64, cols=8" in text["Tile"]
    assert "load_view.fp32 r" in text["Lower"] and "load_view.fp32.64x8 0x" in text["Encode"]
    assert text["Stack"] == "area 0\n"


def test_memory_and_stacks_are_told():
    p = Program()
    x, y = p.input(array(300, 40)), p.input(array(50))
    total = p.op("SUM", p.op("MUL", x, x), attrs=(0, 0))
    out = p.op("ADD", total, total)
    other = p.op("NEG", y)
    text = dict(made(p, out, other).passes())
    assert text["Stack"] == "area 0\narea 1 to 2 side by side\n"
    assert "%3 at 0, 160 bytes, areas 0 to 1" in text["PlanMemory"]


def constants(p, dtype=F32):
    a = p.op("FULL", shape=(5, 1), dtype=dtype, imms=(3.0,))
    b = p.op("FULL", shape=(1, 7), dtype=dtype, imms=(0.3,))
    return p.op("MUL", p.op("SQRT", p.op("ADD", a, b)), -1, imms=(1.7,))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_constant_arithmetic_is_done_once_and_says_where_it_went(dtype):
    p = Program()
    x = p.input(array(5, 7).astype(dtype))
    c = constants(p, CODE[dtype])
    out = p.op("ADD", x, c)
    code = made(p, out)
    assert [a.instructions for a in code.areas] == [(5,)]
    assert [i.folded_into for i in code.instructions] == [2, 2, 3, 4, 5, -1]
    assert same_bits(run(p, [out])[0].array(out), unfused(p, [out]).array(out))
    everything = range(1, out + 1)
    assert same_bits(run(p, everything)[0].array(out), run(p, [out])[0].array(out))


def test_choices_comparisons_and_casts_of_constants_are_folded():
    p = Program()
    x = p.input(array(6, 4))
    c = constants(p)
    one = p.op("CAST", p.op("FULL", shape=(), dtype=I32, imms=(1,)), dtype=F32)
    c = p.op("SELECT", p.op("LESS", c, -1, imms=(0.0,)), c, p.op("FULL", shape=(5, 7), dtype=F32, imms=(9.0,)))
    part = p.op("SLICE", c, attrs=(0, 1, 0, 1), shape=(1, 4))
    out = p.op("SUB", p.op("MUL", x, part), one)
    assert [len(a.instructions) for a in made(p, out).areas] == [2]
    got = run(p, [out])[0].array(out)
    assert same_bits(got, unfused(p, [out]).array(out)) and same_bits(got, p.inputs[0] * np.float32(9) - np.float32(1))


def test_constants_that_must_be_in_memory_are_computed_there():
    p = Program()
    x = p.input(array(3, 5))
    c = constants(p)
    out = p.op("MATMUL", x, c, attrs=(0, 0))
    both = p.op("CONCAT", c, c, attrs=(0,))
    assert all(same_bits(run(p, [out, both])[0].array(v), unfused(p, [out, both]).array(v)) for v in (out, both))
    alone = run(p, [c])[0].array(c)
    assert alone.shape == (5, 7) and (alone == alone[0, 0]).all()


def test_new_immediates_need_no_compile():
    def record(value):
        p = Program()
        x = p.input(array(8, 8))
        c = p.op("EXP", p.op("FULL", shape=(), dtype=F32, imms=(value,)))
        out = p.op("MUL", x, c)
        return p.inputs[0], run(p, [out])[0].array(out)
    record(1.0)
    misses = _core.stats()["selector_misses"]
    x, got = record(0.0)
    assert same_bits(got, x) and _core.stats()["selector_misses"] == misses


def test_a_watched_constant_has_all_its_elements():
    p = Program()
    x = p.input(array(5, 7))
    c = constants(p)
    out = p.op("ADD", x, c)
    want = run(p, [out])[0].array(out)
    program = run(p, [out])[1][-1].program
    _core.set_hook(program.id, 3, _core.HOOK_STATS, 1)
    assert same_bits(run(p, [out])[0].array(out), want)
    assert [e["stats"]["count"] for e in _core.poll_events(10) if e["kind"] == "stats"] == [35]


def test_copies_and_casts_that_change_nothing_are_no_work():
    p = Program()
    x = p.input(np.array([[0.0, -0.0, np.nan, np.inf, 1e-40]], np.float32))
    a = p.op("CAST", p.op("COPY", p.op("NEG", x)), dtype=F32)
    out = p.op("NEG", a)
    code = made(p, out)
    assert [a.instructions for a in code.areas] == [(0, 3)] and [i.folded_into for i in code.instructions] == [-1, 2, 3, -1]
    assert same_bits(run(p, [out])[0].array(out), unfused(p, [out]).array(out))
    assert same_bits(run(p, [a])[0].array(a), -p.inputs[0])


# ---- symbols --------------------------------------------------------------------------------------------------------------------------


def dense(rows, inner=16, cols=24):
    p = Program()
    x, w, b = p.input(array(rows, inner)), p.input(array(inner, cols)), p.input(array(cols))
    y = p.op("ADD", p.op("MATMUL", x, w, attrs=(0, 0)), b)
    return p, p.op("DIV", y, p.op("SUM", y, attrs=(1, 1)))


def test_dimensions_that_the_ops_make_equal_share_a_symbol():
    p, out = dense(8)
    assert [str(s) for s in made(p, out).symbols()] == [
        "s0 = 8: %0[0], %3[0], %4[0], %5[0], %6[0]",
        "s1 = 16: %0[1], %1[0]",
        "s2 = 24: %1[1], %2[0], %3[1], %4[1], %6[1]",
    ]


def test_extents_of_several_launches_are_told_in_the_graph_text():
    for rows in (9, 5, 7):
        p, out = dense(rows, 11, 13)
        code = made(p, out, name="grown")
    assert code.symbols()[0].extents == (5, 9)
    assert code.text("graph")[0].splitlines()[0] == "// s0 = 5 to 9: %0[0], %3[0], %4[0], %5[0], %6[0]"


def test_turned_reduced_and_joined_dimensions():
    p = Program()
    x, y = p.input(array(4, 6)), p.input(array(9, 4))
    t = p.op("TRANSPOSE", x, attrs=(1, 0))
    c = p.op("CONCAT", t, y, attrs=(0,))
    out = p.op("SUM", c, attrs=(0, 0))
    assert [s.dims for s in made(p, out).symbols()] == [((0, 0), (1, 1), (2, 1), (3, 1), (4, 0)), ((0, 1), (2, 0))]


def test_sorted_summed_and_written_keep_their_dimensions():
    p = Program()
    x, at = p.input(array(4, 6)), p.input(np.zeros((3, 6), np.int64))
    s = p.op("SORT", x, attrs=(0, 0))
    c = p.op("CUMSUM", s, attrs=(1, 0, 0))
    g = p.op("GATHER_ELEMENTS", c, at, attrs=(0,))
    out = p.op("ARGMAX", g, attrs=(0, 1), dtype=CODE["int64"])
    assert [s.dims for s in made(p, out).symbols()] == [
        ((0, 0), (2, 0), (3, 0)), ((0, 1), (2, 1), (3, 1)), ((1, 0), (4, 0), (5, 0)), ((1, 1), (4, 1))]


def test_equal_extents_alone_make_no_symbol():
    p = Program()
    x, y = p.input(array(6, 6)), p.input(array(6,))
    keep = [p.op("EXP", x), p.op("NEG", y)]
    assert [s.dims for s in made(p, *keep).symbols()] == [((0, 0), (2, 0)), ((0, 1), (2, 1)), ((1, 0), (3, 0))]
