"""Attention in one area: the bits of its instructions run one by one, at every length, dtype, tile, number of cores, hook and cut."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import CODE, Program, run, same_bits
from test_programs_random import core_settings, unfused  # noqa: F401  core_settings is a fixture

from dvm_core import _core

F32 = np.dtype(np.float32)
HALVES = ("float16", "bfloat16")


def attention(batch, m, n, d, e, dtype="float32", masked=False, fill=-np.inf, seed=0):
    """softmax(q k^T / sqrt(d), causal if masked) v; q [m, d], k [n, d], v [n, e]. Returns program, arrays, result and steps of interest."""
    random = np.random.default_rng(seed)
    p = Program()
    arrays = [random.standard_normal((*batch, *shape)).astype(F32 if dtype in HALVES else dtype) for shape in ((m, d), (n, d), (n, e))]
    seen = np.tril(np.ones((m, n), bool), n - m)
    mask = p.input(seen) if masked else -1
    q, k, v = (p.input(a) for a in arrays)
    if dtype in HALVES:
        q, k, v = (p.op("CAST", x, dtype=CODE[dtype]) for x in (q, k, v))
    x = p.op("MUL", p.op("MATMUL", q, k, attrs=(0, 1)), -1, imms=(d**-0.5,))
    shape = (*batch, m, n)
    if masked:
        hidden = p.op("FULL", shape=shape, dtype=CODE[dtype], imms=(fill,))
        x = p.op("SELECT", p.op("BROADCAST", mask, shape=shape), x, hidden)
    axis = len(shape) - 1
    exp = p.op("EXP", p.op("SUB", x, p.op("MAX", x, attrs=(1, axis))))
    probabilities = p.op("DIV", exp, p.op("SUM", exp, attrs=(1, axis)))
    out = p.op("MATMUL", probabilities, v, attrs=(0, 0))
    if dtype in HALVES:
        out = p.op("CAST", out, dtype=CODE["float32"])
    return p, arrays, seen if masked else np.ones((m, n), bool), probabilities, out


def reference(arrays, seen):
    q, k, v = (a.astype(np.float64) for a in arrays)
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def one_cube(program, out, keep=()):
    """Both products lie in one area."""
    made = run(program, [*keep, out])[1][-1].program
    cubes = [a for a in made.areas if a.kind == "cube"]
    return len(cubes) == 1 and sum(program.steps[i].op == "MATMUL" for i in cubes[0].instructions) == 2


@pytest.mark.parametrize("batch, m, n, d, e", [
    ((), 1, 1, 8, 8), ((2, 3), 1, 40, 16, 16), ((8,), 17, 17, 64, 64), ((2, 4), 33, 33, 32, 32), ((3,), 128, 128, 64, 64),
    ((), 200, 333, 32, 48), ((2,), 5, 700, 16, 2), ((), 15, 1500, 24, 40), ((1, 2), 300, 300, 8, 130), ((), 40, 4100, 16, 16),
])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_numpys_and_the_bits_of_single_steps(batch, m, n, d, e, masked):
    p, arrays, seen, _, out = attention(batch, m, n, d, e, masked=masked)
    assert one_cube(p, out)
    want = unfused(p, [out]).array(out)
    np.testing.assert_allclose(want, reference(arrays, seen), rtol=2e-4, atol=2e-6)
    for threads in (1, 2):
        _core.set_threads(threads)
        for tile in (0, 64, 3000):
            _core.set_tile_elements(tile)
            assert same_bits(run(p, [out])[0].array(out), want), (threads, tile)


@pytest.mark.parametrize("masked", [False, True])
def test_rows_longer_than_a_tile_keep_are_three_areas_with_the_same_bits(masked):
    p, arrays, seen, probabilities, out = attention((2,), 3, 33000, 16, 24, masked=masked)
    assert not one_cube(p, out)
    want = unfused(p, [out]).array(out)
    np.testing.assert_allclose(want, reference(arrays, seen), rtol=2e-4, atol=2e-6)
    for threads in (1, 2):
        _core.set_threads(threads)
        for tile in (0, 5000):
            _core.set_tile_elements(tile)
            assert same_bits(run(p, [out])[0].array(out), want), (threads, tile)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float16", 4e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_other_dtypes(dtype, tolerance, masked):
    p, arrays, seen, _, out = attention((2, 3), 45, 70, 16, 24, dtype, masked)
    assert one_cube(p, out)
    want = unfused(p, [out]).array(out)
    np.testing.assert_allclose(want, reference(arrays, seen), rtol=tolerance, atol=tolerance)
    for tile in (0, 64, 3000):
        _core.set_tile_elements(tile)
        assert same_bits(run(p, [out])[0].array(out), want), tile


@pytest.mark.parametrize("masked", [False, True])
def test_every_instruction_of_attention_can_be_watched_kept_and_stopped_at(masked):
    p, _, _, probabilities, out = attention((2, 2), 60, 60, 16, 16, masked=masked)
    inputs, steps = len(p.inputs), len(p.steps)
    stepped = unfused(p, range(inputs, inputs + steps))
    want = stepped.array(out)
    made = run(p, [out])[1][-1].program
    for i in range(steps):
        _core.set_hook(made.id, i, _core.HOOK_STATS, 100 + i)
        assert same_bits(run(p, [out])[0].array(out), want), i
        found = [e["stats"] for e in _core.poll_events(100) if e["kind"] == "stats" and e["instruction"] == i]
        value = stepped.array(inputs + i)
        assert found and found[-1]["count"] == value.size, i
        if value.dtype == F32 and np.isfinite(value).any():
            finite = value[np.isfinite(value)]
            assert (found[-1]["min"], found[-1]["max"], found[-1]["finite"]) == (finite.min(), finite.max(), finite.size), i
        _core.clear_hooks()
    for i in range(steps):
        _core.set_hook(made.id, i, _core.HOOK_STOP, 1)
        _core.set_stop_handler(lambda launch, instruction, reason, hooks: None)
        assert same_bits(run(p, [out])[0].array(out), want), i
        _core.clear_hooks()
        _core.set_stop_handler(None)
    kept = run(p, [probabilities, out])[0]
    assert same_bits(kept.array(out), want) and same_bits(kept.array(probabilities), stepped.array(probabilities))


def test_nan_and_infinity_in_the_values_reach_the_rows_numpy_says():
    p, arrays, seen, _, out = attention((), 50, 50, 8, 8, masked=True)
    arrays[2][40] = np.nan
    arrays[2][45, 3] = np.inf
    for i, a in enumerate(arrays):
        p.inputs[i + 1] = a
    want = unfused(p, [out]).array(out)
    assert same_bits(run(p, [out])[0].array(out), want)
    assert np.isnan(want).all(axis=1).all()  # 0 * NaN is NaN, also where the mask hides it


def test_rows_that_see_nothing_are_nan():
    p, arrays, seen, _, out = attention((), 20, 30, 8, 8, masked=True)
    seen[4] = False
    want = unfused(p, [out]).array(out)
    assert same_bits(run(p, [out])[0].array(out), want)
    assert np.isnan(want[4]).all() and np.isfinite(np.delete(want, 4, 0)).all()


@pytest.mark.parametrize("m, n", [(256, 256), (300, 300), (511, 513), (700, 700), (90, 1100), (60, 4300), (40, 4360), (30, 8300)])
@pytest.mark.parametrize("fill", [-np.inf, -1e9])
def test_columns_a_mask_hides_are_left_out_without_a_trace(m, n, fill):
    p, arrays, seen, probabilities, out = attention((2,) if m > 200 else (), m, n, 8, 8, masked=True, fill=fill)
    made = run(p, [out])[1][-1].program
    assert "narrow.bool" in made.tile_text(0)
    stepped = unfused(p, [probabilities, out])
    assert same_bits(run(p, [out])[0].array(out), stepped.array(out))
    kept = run(p, [probabilities, out])[0]
    assert same_bits(kept.array(probabilities), stepped.array(probabilities)) and same_bits(kept.array(out), stepped.array(out))
    random = np.random.default_rng(n)  # any mask, not only a causal one; some rows see nothing
    seen[:] = (random.random((m, n)) < 0.01) & (np.arange(n) < random.integers(0, n, (m, 1)))
    seen[m // 3] = False
    assert same_bits(run(p, [out])[0].array(out), unfused(p, [out]).array(out))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_never_left_out(value):
    p, arrays, _, _, out = attention((2,), 400, 400, 8, 8, masked=True)
    arrays[2][1, 390, 3] = value
    arrays[0][0, 5, 2] = value
    for i, a in enumerate(arrays):
        p.inputs[i + 1] = a
    assert same_bits(run(p, [out])[0].array(out), unfused(p, [out]).array(out))


def test_a_sum_of_minus_zero_becomes_what_it_is_over_all_columns():
    p, arrays, _, _, out = attention((), 400, 400, 8, 8, masked=True)
    arrays[2][:60] = -1e-45  # times a probability below one half: -0
    arrays[2][60:] = -1.0  # -0 as well, where the mask hides it
    arrays[2][256:, ::2] = 0.0  # left out by the first tile: +0
    for i, a in enumerate(arrays):
        p.inputs[i + 1] = a
    want = unfused(p, [out]).array(out)
    negative = np.signbit(want[10:50][want[10:50] == 0])
    if _core.simd_level() == "baseline":  # without fused multiply-add a product is -0 before it is added to +0
        assert negative.size and not negative.any()
    else:
        assert negative.any() and not negative.all()
    assert same_bits(run(p, [out])[0].array(out), want)
