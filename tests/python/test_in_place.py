"""Results over inputs: written there while the program runs if nothing could tell, else after it; the same bits either way."""
from __future__ import annotations

import numpy as np
import pytest
from core_kit import Counters, Recorder, arange, stop_handler
from core_programs import input_of, record, run, same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import random_program

from dvm_core import _core


def adam(r: Recorder, p: int, g: int, m: int, v: int) -> tuple[int, int, int]:
    m1 = r.add(r.mul(m, -1, imms=(0.9,)), r.mul(g, -1, imms=(0.1,)))
    v1 = r.add(r.mul(v, -1, imms=(0.999,)), r.mul(r.mul(g, g), -1, imms=(0.001,)))
    return r.sub(p, r.div(r.mul(m1, -1, imms=(0.01,)), r.add(r.sqrt(v1), -1, imms=(1e-8,)))), m1, v1


@pytest.mark.parametrize("shape", [(5,), (40000,), (300, 70), (1300, 30), (1, 1), (3, 1), (2, 300, 70)])
def test_an_optimizer_step_writes_its_state_in_place(shape):
    rng = np.random.default_rng(1)
    arrays = [np.abs(rng.standard_normal(shape)).astype(np.float32) for _ in range(4)]
    apart = Recorder("apart")
    results = adam(apart, *(apart.input(a) for a in arrays))
    apart.graph.flush(results)
    want = [apart.array(r).copy() for r in results]
    count = Counters()
    r = Recorder("in_place")
    inputs = [r.input(a) for a in arrays]
    results = adam(r, *inputs)
    r.graph.flush((), [(value, arrays[i].ctypes.data) for value, i in zip(results, (0, 2, 3), strict=True)])
    assert (count.copies, count.bytes_copied, count.copies_avoided) == (0, 0, 3)
    assert all(same_bits(arrays[i], w) for i, w in zip((0, 2, 3), want, strict=True))


CASES = {
    # name: (program over x and w of 70 x 70, whether it may be written over x)
    "its operand": (lambda r, x, w: r.exp(x), True),
    "softmax of its rows": (lambda r, x, w: r.div(r.exp(x), r.sum(r.exp(x), attrs=(1, 1))), True),
    "a product with it": (lambda r, x, w: r.matmul(x, w, attrs=(0, 0)), False),
    "a product with it, and added": (lambda r, x, w: r.add(r.matmul(x, w, attrs=(0, 0)), x), False),
    "a product of others, added": (lambda r, x, w: r.add(r.matmul(w, w, attrs=(0, 0)), x), False),  # the product lies there first
    "its transpose": (lambda r, x, w: r.neg(r.transpose(x, attrs=(1, 0))), False),
    "itself and its transpose": (lambda r, x, w: r.add(x, r.transpose(x, attrs=(1, 0))), False),
    "reversed": (lambda r, x, w: r.neg(r.slice(x, attrs=(69, -1, 0, 1), shape=(70, 70))), False),
    "minus the mean of its columns": (lambda r, x, w: r.sub(x, r.mean(x, attrs=(1, 0))), True),
    "its first row added": (lambda r, x, w: r.add(x, r.slice(x, attrs=(0, 1, 0, 1), shape=(1, 70))), False),
    "read again later": (lambda r, x, w: r.matmul(r.neg(x), x, attrs=(0, 0)), False),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_what_may_be_written_over_an_input(case, threads):
    make_program, allowed = CASES[case]
    x, w = np.random.default_rng(2).standard_normal((2, 70, 70)).astype(np.float32)

    def launch(in_place: bool) -> tuple[np.ndarray, int]:
        data = x.copy()
        r = Recorder(case)
        y = make_program(r, r.input(data), r.input(w))
        count = Counters()
        r.graph.flush(() if in_place else (y,), ((y, data.ctypes.data),) if in_place else ())
        return (data if in_place else r.array(y).copy()), count.copies
    _core.set_threads(threads)
    try:
        want, _ = launch(False)
        got, copies = launch(True)
    finally:
        _core.set_threads(0)
    assert same_bits(got, want) and copies == (0 if allowed else 1)


def test_an_input_that_others_read_too_is_written_after_the_run():
    memory = arange(100)
    r = Recorder("shared")
    y = r.add(r.input(memory), r.input(memory[::-1]))
    r.graph.flush((), ((y, memory.ctypes.data),))
    assert (memory == 99).all()


def test_an_index_out_of_range_leaves_the_input_as_it_was():
    x, index = arange(6), np.array([7], np.int32)
    r = Recorder("fails")
    v = r.input(x)
    y = r.neg(v)
    z = r.gather(r.input(arange(4)), r.input(index), attrs=(0,))
    with pytest.raises(_core.Error):
        r.graph.flush((z,), ((y, x.ctypes.data),))
    assert same_bits(x, arange(6))


def test_at_a_stop_the_input_is_what_it_was():
    x, seen = arange(6), []
    def launch():
        r = Recorder("stop_in_place")
        v = r.input(x)
        y = r.neg(v)
        return r.graph.flush((), ((r.exp(y), x.ctypes.data),))
    program = launch().program
    x[:] = arange(6)
    _core.set_hook(program.id, 1, _core.HOOK_STOP, 1)

    def handler(stopped, instruction, reason, hooks):
        stopped.run_until(2)
        seen.append(stopped.array(0).copy())
    with stop_handler(handler):
        launch()
    assert same_bits(seen[0], arange(6)) and np.allclose(x, np.exp(-arange(6)))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0, 64]))
def test_random_programs_give_the_same_bits_over_their_inputs(seed, tile):
    program = random_program(seed)
    last = len(program.inputs) + len(program.steps) - 1
    values, _ = run(program, [last])
    want = values.array(last)
    _core.set_tile_elements(tile)
    try:
        for i, original in enumerate(program.inputs):
            if (original.shape, original.dtype) != (want.shape, want.dtype) or not original.flags.c_contiguous or not original.size:
                continue
            copy = original.copy()
            graph = _core.Graph("random in place")
            ids = [input_of(graph, copy if k == i else a) for k, a in enumerate(program.inputs)]
            record(program, graph, ids, program.steps)
            graph.flush([], [(ids[last], copy.ctypes.data)])
            assert same_bits(copy, want)
    finally:
        _core.set_tile_elements(0)
