"""Programs by structure, segments by geometry: what makes a new one, what is patched."""
import os
import traceback

import numpy as np
import pytest
from core_kit import F32, Counters, Recorder, arange, place

from dvm_core import _core


def mlp(rows: int, factor: float = 2.0, line: int = 1, name: str = "mlp"):
    r = Recorder(name)
    x, w = r.input(arange(rows, 8)), r.input(arange(8, 4) / 16, cls="parameter")
    h = r.matmul(x, w, attrs=(0, 0), place=place(line))
    y = r.mul(h, -1, imms=(factor,), place=place(line + 1))
    launch = r.graph.flush((y,))
    assert np.allclose(r.array(y), arange(rows, 8) @ (arange(8, 4) / 16) * factor, rtol=1e-6)
    return launch


def test_a_new_shape_is_a_patch_not_a_program():
    first = mlp(3, line=100)
    count = Counters()
    for rows in range(4, 12):
        assert mlp(rows, line=100).program.id == first.program.id
    assert (count.programs, count.launches) == (0, 8)
    assert (count.selector_hits, count.selector_misses) == (0, 8)
    assert count.patches == 8 * 3  # the input and two results
    assert first.program.instructions[0].shape == (11, 4)


def test_a_known_shape_compiles_nothing():
    mlp(5, line=110)
    mlp(6, line=110)
    count = Counters()
    mlp(5, line=110)
    mlp(6, line=110)
    assert (count.programs, count.selector_misses, count.selector_hits) == (0, 0, 2)


def test_an_immediate_is_a_patch_and_compiles_nothing():
    program = mlp(5, 2.0, line=120).program
    count = Counters()
    mlp(5, 3.5, line=120)
    mlp(5, 7, line=120)  # an integer
    assert (count.programs, count.selector_misses, count.patches) == (0, 0, 2)
    assert program.instructions[1].imms == (7,) and program.launches == 3


def test_minus_zero_is_another_immediate():
    def reciprocal(zero: float) -> np.ndarray:
        r = Recorder("zeros")
        y = r.div(r.input(arange(3) + 1), -1, imms=(zero,), place=place(125))
        r.graph.flush((y,))
        return r.array(y)
    assert (reciprocal(0.0) == np.inf).all()
    assert (reciprocal(-0.0) == -np.inf).all()


def test_places_and_names_make_programs():
    ids = {mlp(5, line=130).program.id, mlp(5, line=131).program.id, mlp(5, line=130, name="other").program.id}
    assert len(ids) == 3


def test_structure_makes_programs():
    def run(op, rank, dtype=np.float32, **rest):
        r = Recorder("structure")
        y = getattr(r, op)(r.input(np.ones((2,) * rank, dtype)), **rest)
        return r.graph.flush((y,)).program.id
    runs = [("neg", 1, np.float32, {}), ("exp", 1, np.float32, {}), ("neg", 2, np.float32, {}), ("neg", 1, np.float64, {}),
            ("sum", 2, np.float32, {"attrs": (0, 0)}), ("sum", 2, np.float32, {"attrs": (0, 1)}), ("sum", 2, np.float32, {"attrs": (1, 1)})]
    ids = [run(op, rank, dtype, **rest) for op, rank, dtype, rest in runs]
    assert len(set(ids)) == len(runs)
    assert [run(op, rank, dtype, **rest) for op, rank, dtype, rest in runs] == ids


def test_slice_bounds_are_patched_like_shapes():
    x = arange(6, 4)
    ids = set()
    for start in range(3):
        r = Recorder("window")
        y = r.neg(r.slice(r.input(x), attrs=(start, 1, 0, 2), shape=(2, 2)))
        ids.add(r.graph.flush((y,)).program.id)
        assert np.array_equal(r.array(y), -x[start:start + 2, ::2])
    assert len(ids) == 1


def test_strided_inputs_are_read_where_they_lie():
    x = arange(6, 8)
    for view in (x[::2, ::2], x.T, x[::-1, 1:], np.broadcast_to(x[0], (3, 8)), x[:, :0]):
        r = Recorder("strided")
        v = r.input(view)
        y = r.add(v, -1, imms=(1,))
        r.graph.flush((y,))
        assert np.array_equal(r.array(y), view + 1)
        assert np.array_equal(r.array(v), view)


def test_outputs_go_to_the_callers_memory():
    x, out, second = arange(4, 4), np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    r = Recorder()
    y = r.neg(r.input(x))
    r.graph.flush((), ((y, out.ctypes.data), (y, second.ctypes.data)))
    assert np.array_equal(out, -x) and np.array_equal(second, -x)
    z = r.neg(y)  # the caller's memory is the value's storage from then on
    third = np.zeros((4, 4), np.float32)
    r.graph.flush((), ((z, third.ctypes.data),))
    assert np.array_equal(third, x)


def test_an_input_can_be_an_output():
    x, out = arange(3, 5).T, np.zeros((5, 3), np.float32)
    r = Recorder()
    assert r.graph.flush((), ((r.input(x), out.ctypes.data),)) is None
    assert np.array_equal(out, x)


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_an_output_over_an_input_is_written_after_the_run(shift):
    """In-place updates: the whole result is computed from the old values."""
    memory = arange(12)
    old = memory.copy()
    x, target = memory[:9], memory[shift:shift + 9]
    r = Recorder("in_place")
    v = r.input(x)
    y = r.add(v, r.slice(v, attrs=(8, -1), shape=(9,)))
    r.graph.flush((), ((y, target.ctypes.data),))
    assert np.array_equal(target, old[:9] + old[8::-1])


def test_two_outputs_over_one_another_are_written_in_order():
    memory = np.zeros(12, np.float32)
    r = Recorder("crossed")
    x = r.input(arange(8))
    y, z = r.neg(x), r.mul(x, -1, imms=(2,))
    r.graph.flush((), ((y, memory.ctypes.data), (z, memory[4:].ctypes.data)))
    assert np.array_equal(memory, np.concatenate([-arange(8)[:4], 2 * arange(8)]))


def test_program_shows_what_was_recorded():
    r = Recorder("shown")
    x = r.input(arange(4, 8), cls="parameter")
    h = r.mul(x, -1, imms=(0.5,), place=place(20), name="h")
    y = r.sum(h, attrs=(1, 1), place=place(21, backward=True))
    program = r.graph.flush((y,)).program
    assert (program.name, program.input_count, program.backward, program.launches) == ("shown", 1, True, 1)
    assert program.input_shapes == [((4, 8), F32)]
    mul, total = program.instructions
    assert (mul.index, mul.name, mul.operands, mul.imms, mul.value_name, mul.place) == (0, "MUL", (0, -1), (0.5,), "h", place(20))
    assert (total.attrs, total.shape, total.dtype, total.area) == ((1, 1), (4, 1), F32, 0)
    assert program.kept() == [0, 2]
    area, = program.areas
    assert area.instructions == (0, 1) and area.ns > 0 and area.cut_reason
    text = program.tile_text(0)
    assert "; %0" in text and "; %1" in text and len(program.tile_words(0)) % 8 == 0
    assert program.id in [p.id for p in _core.programs()] and _core.program(program.id).id == program.id
    with pytest.raises(_core.Error, match="no area 5"):
        program.tile_text(5)


def test_a_launch_outlives_its_graph():
    r = Recorder()
    y = r.neg(r.input(np.full(1000, 3, np.float32)))
    launch = r.graph.flush((y,))
    array = r.array(y)
    del r
    assert launch.done and launch.next == 1
    assert (launch.array(0) == 3).all() and (launch.array(1) == -3).all() and (array == -3).all()
    with pytest.raises(_core.Error, match="no value 7"):
        launch.array(7)


def test_released_outputs_are_no_longer_read():
    out = np.zeros(4, np.float32)
    r = Recorder()
    y = r.neg(r.input(arange(4)))
    launch = r.graph.flush((), ((y, out.ctypes.data),))
    assert np.array_equal(launch.array(1), -arange(4))
    r.graph.release((y,))
    assert launch.array(1) is None and r.graph.array(y) is None


def test_fused_away_values_are_none():
    r = Recorder()
    y = r.neg(r.exp(r.input(arange(4))))
    launch = r.graph.flush((y,))
    assert launch.array(1) is None and launch.array(2) is not None


def test_an_error_while_running_leaves_flush_with_its_line():
    r = Recorder()
    table, index = r.input(arange(4, 2)), r.input(np.array([0, 9], np.int32))
    y = r.gather(table, index, attrs=(0,), place=place(77))
    with pytest.raises(_core.Error, match=r"GATHER.*9.*\(model.py:77\)") as caught:
        r.graph.flush((y,))
    assert caught.value.place == place(77)
    assert r.graph.pending() == 0
    z = r.neg(table)
    r.graph.flush((z,))
    assert np.array_equal(r.array(z), -arange(4, 2))


def test_new_programs_are_shown_to_the_handler_before_they_run():
    seen = []
    _core.set_program_handler(lambda p: seen.append((p.id, p.launches, [i.name for i in p.instructions], len(p.fused_areas()))))
    try:
        first = mlp(3, line=140).program
        count = Counters()
        mlp(4, line=140)
    finally:
        _core.set_program_handler(None)
    assert seen == [(first.id, 0, ["MATMUL", "MUL"], 1)]
    assert count.selector_misses == 1  # the handler's look at the fused code is no launch's miss


def test_an_error_of_the_program_handler_leaves_flush():
    def handler(program):
        raise KeyError("from the handler")
    _core.set_program_handler(handler)
    try:
        with pytest.raises(KeyError, match="from the handler"):
            mlp(3, line=150)
    finally:
        _core.set_program_handler(None)
    mlp(3, line=150)


def test_shapes_that_come_once_do_not_pile_up():
    r_first = mlp(1, line=160)
    for rows in range(2, 300):
        mlp(rows, line=160)
    count = Counters()
    mlp(1, line=160)
    assert count.selector_hits == 1
    for i in range(30):  # 30 * 300 segments are more than the selector keeps
        for rows in range(300):
            r = Recorder("pile")
            r.graph.flush((r.neg(r.input(np.empty((rows, 0), np.float32)), place=place(1000 + i)),))
    count = Counters()
    mlp(1, line=160)
    assert (count.programs, count.selector_misses) == (0, 1)
    assert r_first.program.launches == 301


def fill_the_cache() -> None:
    def run(line):
        r = Recorder("bounded")
        return r.graph.flush((r.neg(r.input(arange(2)), place=place(line)),)).program.id
    first = run(2000)
    for line in range(2001, 2001 + 4096):
        run(line)
    assert len(_core.programs()) == 4096
    with pytest.raises(_core.Error, match=f"no program {first}"):
        _core.program(first)
    assert run(2000) > first


def test_programs_are_bounded():
    """In a process of its own: other tests count programs."""
    pid = os.fork()
    if pid == 0:
        try:
            fill_the_cache()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
