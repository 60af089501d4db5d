"""Memory: pooled and reused, counted, let go early; the log says where each buffer came from."""
import gc
import os
import select

import numpy as np
import pytest
from core_kit import CODE, F32, Counters, Recorder, arange, place

from dvm_core import _core


def live() -> int:
    gc.collect()
    return _core.stats()["bytes_live"]


@pytest.fixture
def log():
    _core.memory_log(True)
    yield lambda: _core.memory_events()
    _core.memory_log(False)


@pytest.mark.parametrize("name", [n for n, *_ in _core.DTYPES])
def test_empty_is_aligned_and_writable(name):
    array = _core.empty((3, 5), CODE[name])
    assert array.shape == (3, 5) and array.flags.c_contiguous and array.ctypes.data % 128 == 0
    assert array.dtype == (np.uint16 if name == "bfloat16" else np.dtype(name))
    array[:] = 1
    assert (array == 1).all()


def test_empty_shapes():
    assert _core.empty((), F32).shape == () and _core.empty((0, 3), F32).shape == (0, 3)


def test_a_dead_array_goes_back_and_its_address_is_handed_out_again():
    before = live()
    array = _core.empty((1000, 1000), F32)
    address = array.ctypes.data
    assert live() - before == 4_000_000
    view = array[5:]
    del array
    assert live() - before == 4_000_000  # a view keeps it
    del view
    assert live() == before
    assert _core.empty((1000, 1000), F32).ctypes.data == address


def test_steady_state_has_no_page_faults():
    def step():
        r = Recorder("steady")
        x = r.input(data)
        y = r.exp(x)
        z = r.sum(r.mul(y, x), attrs=(0, 0))
        r.graph.flush((y, z))
    import resource
    data = np.ones((700, 701), np.float32)
    for _ in range(5):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        step()
    # One result alone is 480 pages.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 480


def test_changing_sizes_do_not_pile_up_unused_memory():
    for n in range(1, 120):
        array = _core.empty((n, 100_000), F32)
        del array
    stats = _core.stats()
    assert stats["bytes_cached"] <= max(256 << 20, stats["bytes_peak"])


def test_values_not_kept_are_gone_after_the_flush():
    before = live()
    r = Recorder()
    x = r.input(np.ones((1000, 250), np.float32))
    h = x
    for _ in range(6):
        h = r.matmul(r.exp(h), r.input(np.eye(250, dtype=np.float32)), attrs=(0, 0))
        h = r.tanh(h)
    y = r.sum(h, attrs=(0, 0, 1))
    r.graph.flush((y,))
    assert live() - before <= 4
    r.graph.release((y,))
    assert live() == before


def test_no_memory_is_lost_over_many_launches():
    def step():
        r = Recorder("leak")
        x = r.input(arange(50, 50))
        y, z = r.neg(x), r.exp(x)
        launch = r.graph.flush((y, z))
        return launch.array(1)
    step()
    before = live()
    for _ in range(200):
        step()
    assert live() == before


def test_inputs_are_held_until_graph_and_launch_are_gone():
    class Owner:
        pass
    import weakref
    owner, x = Owner(), arange(4)
    seen = weakref.ref(owner)
    r = Recorder()
    v = r.graph.input(x.ctypes.data, (4,), F32, None, owner)
    y = r.neg(v)
    launch = r.graph.flush((y,))
    del owner, r
    assert seen() is not None and np.array_equal(launch.array(0), x)
    del launch
    assert seen() is None


def test_copies_and_avoided_copies_are_counted():
    memory = arange(1000)
    count = Counters()
    r = Recorder("copies")
    v = r.input(memory)
    y = r.neg(v)
    r.graph.flush((), ((y, memory.ctypes.data),))
    assert (count.bytes_copied, count.copies, count.copies_avoided) == (0, 0, 1)  # over its operand, element by element
    count = Counters()
    r = Recorder("copies")
    v = r.input(memory)
    y = r.sub(v, r.slice(v, attrs=(999, -1), shape=(1000,)))
    r.graph.flush((), ((y, memory.ctypes.data),))
    assert (count.bytes_copied, count.copies, count.copies_avoided) == (4000, 1, 1)  # elements are read after others are written
    count = Counters()
    r = Recorder("views")
    t = r.transpose(r.reshape(r.input(memory), shape=(10, 100)), attrs=(1, 0))
    y = r.neg(t)
    r.graph.flush((y,))
    assert count.bytes_copied == 0 and count.copies_avoided == 2


# ---- the log ----------------------------------------------------------------------------------------------------------------------


def test_the_log_names_results_and_their_lines(log):
    _core.set_step(41)
    r = Recorder("logged")
    x = r.input(arange(8, 8), "parameter")
    y = r.neg(x, name="y", place=place(300))
    z = r.exp(y, name="z", place=place(301))
    program = r.graph.flush((y, z)).program
    events = {e["name"]: e for e in log()}
    assert events[""]["cls"] == "parameter" and events[""]["address"] == r.array(x).ctypes.data
    for name, value, instruction in (("y", y, 0), ("z", z, 1)):
        e = events[name]
        assert (e["bytes"], e["cls"], e["step"], e["program"], e["instruction"]) == (256, "activation", 41, program.id, instruction)
        assert (e["place"], e["address"], e["freed"]) == (place(300 + instruction), r.array(value).ctypes.data, -1)
    assert events["z"]["born"] == events["y"]["born"] + 1
    r.graph.release((y,))
    freed = {e["name"]: e["freed"] for e in log()}
    assert freed["y"] >= events["z"]["born"] and freed["z"] == -1


def test_the_log_has_the_workspace_in_its_order(log):
    r = Recorder("workspace")
    x = r.input(np.ones((300, 64), np.float32))
    w = r.input(np.ones((64, 64), np.float32))
    h = r.matmul(x, w, attrs=(0, 0), name="h", place=place(310))
    total = r.sum(h, attrs=(0, 0), name="total")  # over rows: ends the area, so h is stored
    y = r.sub(h, total)
    r.graph.flush((y,))
    workspace = [e for e in log() if e["cls"] == "workspace"]
    assert {"h", "total"} <= {e["name"] for e in workspace}
    h_event = next(e for e in workspace if e["name"] == "h")
    assert h_event["bytes"] >= 300 * 64 * 4 and h_event["place"] == place(310)
    for e in workspace:
        assert e["born"] < e["freed"] and e["born_ns"] <= e["freed_ns"]


def overlapping(events):
    """Pairs of buffers that are alive at one time and have bytes in common."""
    live, found = [], []
    for e in sorted(events, key=lambda e: (e["born"], e["id"])):
        live = [other for other in live if other["freed"] < 0 or other["freed"] > e["born"]]
        low, high = e["address"], e["address"] + e["bytes"]
        found += [(other, e) for other in live if other["address"] < high and low < other["address"] + other["bytes"]]
        live.append(e)
    return found


def test_what_is_overwritten_in_place_ends_where_its_successor_begins(log):
    r = Recorder("in place")
    x = r.input(np.full((64, 64), 0.5, np.float32))
    h = x
    for _ in range(4):
        h = r.add(r.matmul(h, x, attrs=(0, 0)), h)
        h = r.sub(h, r.sum(h, attrs=(0, 0)))  # ends the area: both sides are stored
    r.graph.flush((h,))
    events = log()
    taken = [e for e in events if e["in_place_of"] >= 0]
    by_id = {e["id"]: e for e in events}
    assert taken and all(by_id[e["in_place_of"]]["freed"] <= e["born"] for e in taken)
    assert not overlapping(events)


def test_a_snapshot_is_a_buffer_until_it_is_taken(log):
    r = Recorder("snapshot")
    y = r.neg(r.input(arange(300)), name="y", place=place(320))
    program = r.graph.flush((y,)).program
    _core.set_hook(program.id, 0, _core.HOOK_CAPTURE, 9)
    try:
        r = Recorder("snapshot")
        r.graph.flush((r.neg(r.input(arange(300)), name="y", place=place(320)),))
        _core.synchronize_copies()
        (copy,) = [e for e in log() if e["cls"] == "snapshot"]
        assert (copy["bytes"], copy["place"], copy["program"], copy["instruction"], copy["freed"]) == (1200, place(320), program.id, 0, -1)
        _core.poll_events()
        (copy,) = [e for e in log() if e["cls"] == "snapshot"]
        assert copy["freed"] >= copy["born"]
    finally:
        _core.clear_hook(program.id, 0, _core.HOOK_CAPTURE, 9)


def test_a_parameter_is_one_buffer_however_often_it_is_used(log):
    w, x = arange(4), arange(4)
    for _ in range(3):
        r = Recorder("parameter")
        y = r.add(r.input(w, "parameter"), r.input(x))
        r.graph.flush((y,))
        del r
    events = log()
    assert len([e for e in events if e["cls"] == "parameter"]) == 1
    assert all(e["freed"] == -1 for e in events if e["cls"] == "parameter")
    assert all(e["freed"] >= 0 for e in events if e["cls"] == "activation")


def test_a_replaced_parameter_ends_and_the_result_has_its_class(log):
    w = arange(64)
    for _ in range(3):
        r = Recorder("replaced")
        new = np.empty_like(w)
        y = r.neg(r.input(w, "parameter"))
        _core.log_replaced(w.ctypes.data, new.ctypes.data, "parameter")
        r.graph.flush((), ((y, new.ctypes.data),))
        del r
        w = new
    parameters = [e for e in log() if e["cls"] == "parameter"]
    assert [e["freed"] >= 0 for e in parameters] == [True, True, True, False]
    _core.log_class(w.ctypes.data, "optimizer")
    assert log()[-1]["cls"] == "optimizer"


def test_reuse_counts_how_often_an_address_was_handed_out(log):
    for _ in range(4):
        r = Recorder("reuse")
        y = r.neg(r.input(arange(777)), name="y")
        r.graph.flush((y,))
        del r
    events = [e for e in log() if e["name"] == "y"]
    assert len({e["address"] for e in events}) == 1
    assert [e["reuse"] for e in events] == sorted(e["reuse"] for e in events) and events[-1]["reuse"] - events[0]["reuse"] == 3


def test_the_log_is_read_from_where_one_left_off(log):
    def launch():
        r = Recorder("since")
        y = r.neg(r.input(arange(3)))
        r.graph.flush((y,))
    launch()
    last = log()[-1]["id"]
    launch()
    assert [e["id"] for e in _core.memory_events(last + 1)] == list(range(last + 1, last + 3))
    _core.memory_log(True)  # already on: goes on
    assert log()[0]["id"] <= last
    _core.memory_log(False)
    _core.memory_log(True)
    assert log() == []


def test_the_log_is_bounded(log):
    r = Recorder("bounded")
    x = r.input(arange(2))
    ys = [r.neg(x) for _ in range(1000)]
    r.graph.flush(ys)
    for _ in range(70):
        r = Recorder("bounded")
        x = r.input(arange(2))
        r.graph.flush([r.neg(x) for _ in range(1000)])
    assert len(log()) == 65536


def test_what_the_log_knows_of_an_address_is_forgotten_with_its_last_event(log):
    def use():
        r = Recorder("address")
        y = r.neg(r.input(parameter, "parameter"), name="y")
        r.graph.flush((y,), ())
    def newest(key, value):
        return [e for e in log() if e[key] == value][-1]
    parameter = arange(4321)
    use()
    use()
    first = newest("cls", "parameter")["id"]
    assert newest("name", "y")["reuse"] == 1
    x = arange(2)
    for _ in range(66):
        r = Recorder("others")
        value = r.input(x)
        r.graph.flush([r.neg(value) for _ in range(1000)])
    assert not [e for e in log() if e["name"] == "y"]
    use()
    # Counted from where the log begins, as if it had begun here.
    assert newest("name", "y")["reuse"] == 0 and newest("cls", "parameter")["id"] > first
    assert newest("cls", "parameter")["reuse"] == 0


def test_a_forked_child_runs_on_its_own():
    def run():
        r = Recorder("forked")
        x = r.input(np.full((400, 400), 0.5, np.float32))
        y = r.sum(r.tanh(r.matmul(x, x, attrs=(0, 0))), attrs=(0, 0, 1))
        program = r.graph.flush((y,)).program
        return float(r.array(y)), program.id
    expected, program = run()
    _core.set_hook(program, 1, _core.HOOK_CAPTURE, 1)
    try:
        run()
        for _ in range(5):
            select.select([_core.event_fd()], [], [], 10)  # the child finds events of its parent's
            pid = os.fork()
            if pid == 0:
                _core.poll_events(10**6)
                value, _ = run()
                fd, ok = _core.event_fd(), value == expected
                for _ in range(100):
                    if select.select([fd], [], [], 0.1)[0]:
                        break
                os._exit(0 if ok and _core.poll_events()[0]["kind"] == "capture" else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert run()[0] == expected
    finally:
        _core.clear_hooks()
        _core.poll_events(10**6)


MIX_ROWS = (257, 300, 311)


def test_a_long_mixed_loop_settles_without_page_faults():
    """Products, reductions, moves and an update in place over three batch sizes: after every size has been seen, memory is only reused."""
    import resource
    rng = np.random.default_rng(3)
    xs = [rng.standard_normal((rows, 256)).astype(np.float32) for rows in MIX_ROWS]
    w, index = rng.standard_normal((256, 256)).astype(np.float32) * 0.01, rng.integers(0, 250, 512)

    def step(i):
        r = Recorder("mixed")
        x, v = r.input(xs[i % 3]), r.input(w, "parameter")
        h = r.tanh(r.matmul(x, v, attrs=(0, 0)))
        taken = r.gather(h, r.input(index), attrs=(0,))
        both = r.concat(h, taken, attrs=(0,))
        grad = r.matmul(both, both, attrs=(1, 0))
        r.graph.flush((r.sum(both, attrs=(0, 1)),), ((r.sub(v, r.mul(grad, -1, imms=(1e-9,))), w.ctypes.data),))
    for i in range(30):
        step(i)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for i in range(300):
        step(i)
    # Without reuse it would be some 500 a step; the rest of the process (its garbage collector, other tests' threads) makes some, too.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 50 * 300
