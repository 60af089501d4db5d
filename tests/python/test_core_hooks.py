"""Hooks: statistics and captures equal NumPy, stops come in order, checks name the first instruction, and no hook changes a bit."""
import select
import threading

import numpy as np
import pytest
from core_kit import CODE, Counters, Recorder, arange, drain, place, stop_handler

from dvm_core import _core

RNG = np.random.default_rng(5)
X = RNG.standard_normal((33, 48)).astype(np.float32)
W = RNG.standard_normal((48, 20)).astype(np.float32)
T = RNG.standard_normal((33, 20)).astype(np.float32)


def regression(line: int = 500):
    """A loss and its gradient in one program: 0 matmul, 1 tanh, 2 sub, 3 mul, 4 sum, 5 sum, 6 mul, 7 matmul."""
    r = Recorder("regression")
    x, w, t = r.input(X), r.input(W, "parameter"), r.input(T)
    h = r.matmul(x, w, attrs=(0, 0), place=place(line), name="h")
    y = r.tanh(h, place=place(line + 1), name="y")
    d = r.sub(y, t, place=place(line + 2))
    rows = r.sum(r.mul(d, d, place=place(line + 3)), attrs=(0, 1), place=place(line + 4))
    loss = r.sum(rows, attrs=(0, 0), place=place(line + 5), name="loss")
    g = r.mul(d, y, place=place(line + 6, True))
    grad = r.matmul(x, g, attrs=(1, 0), place=place(line + 7, True))
    launch = r.graph.flush((loss, grad))
    return launch, r.array(loss).copy(), r.array(grad).copy()


@pytest.fixture(autouse=True)
def no_hooks():
    drain()
    yield
    _core.clear_hooks()
    _core.set_check(0)
    drain()


@pytest.fixture
def reference():
    """What every instruction gives, from a launch with everything kept, and the program."""
    launch, loss, grad = regression()
    program = launch.program
    values = {}

    def look(stopped, instruction, reason, ids):
        stopped.run_until(8)
        values.update({i: stopped.array(i + 3).copy() for i in range(8)})
    with stop_handler(look):
        _core.set_hook(program.id, 7, _core.HOOK_STOP, 1)
        regression()
    assert np.allclose(values[0], X @ W, atol=1e-4) and np.array_equal(values[5], loss) and np.array_equal(values[7], grad)
    return program, values, loss, grad


def assert_stats(stats: dict, array: np.ndarray) -> None:
    flat = array.astype(np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    assert stats["count"] == flat.size and stats["finite"] == finite.size and stats["zero"] == (flat == 0).sum()
    assert (stats["nan"], stats["pos_inf"], stats["neg_inf"]) == (np.isnan(flat).sum(), (flat == np.inf).sum(), (flat == -np.inf).sum())
    assert sum(stats["histogram"]) == finite.size
    if finite.size:
        np.testing.assert_allclose([stats["min"], stats["max"]], [finite.min(), finite.max()])
        np.testing.assert_allclose([stats["mean"], stats["std"]], [finite.mean(), finite.std()], rtol=1e-6, atol=1e-9)


def test_statistics_of_every_instruction_are_numpys_and_change_no_bit(reference):
    program, values, loss, grad = reference
    for i in range(8):
        _core.set_hook(program.id, i, _core.HOOK_STATS, 100 + i)
    launch, hooked_loss, hooked_grad = regression()
    assert np.array_equal(hooked_loss, loss) and np.array_equal(hooked_grad, grad)
    events = drain()
    found = [(e["kind"], e["hook"], e["instruction"], e["launch"]) for e in events]
    assert found == [("stats", 100 + i, i, launch.number) for i in range(8)]
    for e in events:
        assert e["shape"] == values[e["instruction"]].shape and e["program"] == program.id
        assert_stats(e["stats"], values[e["instruction"]])


def test_captures_hold_the_bytes_and_change_no_bit(reference):
    program, values, loss, grad = reference
    for i in range(8):
        _core.set_hook(program.id, i, _core.HOOK_CAPTURE, i)
    _, hooked_loss, hooked_grad = regression()
    assert np.array_equal(hooked_loss, loss) and np.array_equal(hooked_grad, grad)
    assert select.select([_core.event_fd()], [], [], 5)[0]
    events = drain()
    for e in events:
        assert (e["kind"], e["placeholder"], e["dtype"]) == ("capture", "", CODE["float32"])
        assert np.array_equal(np.frombuffer(e["data"], np.float32).reshape(e["shape"]), values[e["instruction"]])
    assert sorted(e["instruction"] for e in events) == list(range(8))
    assert not select.select([_core.event_fd()], [], [], 0)[0]


def test_a_capture_above_its_limit_is_a_placeholder(reference):
    program, *_ = reference
    _core.set_hook(program.id, 0, _core.HOOK_CAPTURE, 1, limit=33 * 20 * 4 - 1)
    regression()
    event, = drain()
    assert event["data"] == b"" and event["shape"] == (33, 20)
    assert event["placeholder"] == "2640 bytes are more than the limit of 2639"


def test_a_copy_that_starts_too_late_is_a_placeholder(reference):
    program, values, *_ = reference
    _core.set_hook(program.id, 0, _core.HOOK_CAPTURE, 1)
    _core.set_capture_timeout(800)
    try:
        _core.delay_copies(1200)
        regression()
        _core.synchronize_copies()
        regression()
        late, in_time = drain()
    finally:
        _core.set_capture_timeout(100)
    assert (late["data"], late["shape"], late["placeholder"]) == (b"", (33, 20), "the copy did not start within 800 ms")
    assert in_time["placeholder"] == "" and len(in_time["data"]) == values[0].nbytes


def test_captures_that_wait_are_bounded_in_bytes():
    def run():
        r = Recorder("large")
        x = r.input(np.ones((5 << 20,), np.float32))
        ys = [r.neg(x) for _ in range(4)]
        return r.graph.flush(ys[:1]).program
    program = run()
    for i in range(4):
        _core.set_hook(program.id, i, _core.HOOK_CAPTURE, i, limit=1 << 30)
    _core.set_capture_timeout(1000)  # long enough for the launch to be over before the first is given up
    try:
        _core.delay_copies(3000)
        run()
        reasons = {e["instruction"]: e["placeholder"] for e in drain()}
    finally:
        _core.set_capture_timeout(100)
    late = "the copy did not start within 1000 ms"
    assert reasons == {0: late, 1: late, 2: late, 3: "more than 64 MiB wait to be copied"}


def test_a_captured_output_in_the_callers_memory_is_copied_before_it_can_change():
    out = np.zeros(6, np.float32)

    def run():
        r = Recorder("captured_output")
        y = r.neg(r.input(arange(6)))
        return r.graph.flush((), ((y, out.ctypes.data),))
    program = run().program
    _core.set_hook(program.id, 0, _core.HOOK_CAPTURE, 1)
    run()
    out[:] = 7
    event, = drain()
    assert np.array_equal(np.frombuffer(event["data"], np.float32), -arange(6))


def test_a_hook_with_every_leaves_the_other_launches_alone(reference):
    program, *_ = reference
    regression()
    _core.set_hook(program.id, 1, _core.HOOK_STATS, 1, every=3)
    numbers = [regression()[0].number for _ in range(7)]
    assert [e["launch"] for e in drain()] == numbers[::3]


def test_hooks_of_one_instruction_are_independent(reference):
    program, *_ = reference
    for hook in (1, 2, 3):
        _core.set_hook(program.id, 1, _core.HOOK_STATS, hook)
    _core.clear_hook(program.id, 1, _core.HOOK_STATS, 2)
    regression()
    assert [e["hook"] for e in drain()] == [1, 3]
    _core.clear_hooks()
    count = Counters()
    regression()
    assert drain() == [] and count.selector_misses == 0  # the unhooked code is the one that was there


def test_statistics_of_views_moves_and_constants():
    x = arange(4, 6)

    def run():
        r = Recorder("moves")
        v = r.input(x)
        t = r.transpose(v, attrs=(1, 0))
        s = r.slice(t, attrs=(1, 2, 0, 1), shape=(2, 4))
        c = r.concat(s, s, attrs=(0,))
        f = r.full(shape=(4, 4), dtype=CODE["float32"], imms=(float("inf"),))
        y = r.mul(r.mul(c, f), -1, imms=(0,))
        return r.graph.flush((y,)).program
    program = run()
    for i in range(6):
        _core.set_hook(program.id, i, _core.HOOK_STATS, i)
    run()
    s = x.T[1::2][:2]
    c = np.concatenate([s, s])
    with np.errstate(invalid="ignore"):
        expected = [x.T, s, c, np.full((4, 4), np.inf), c * np.inf, c * np.inf * 0]
    events = drain()
    assert [e["instruction"] for e in events] == list(range(6))
    for e, array in zip(events, expected, strict=True):
        assert_stats(e["stats"], array.astype(np.float32))


@pytest.mark.parametrize("array", [
    np.array([], np.float32), np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30], np.float32),
    arange(9, 9)[::2, ::-3], np.arange(10, dtype=np.int64), np.array([True, False, True]), RNG.standard_normal(10_000),
    np.exp2(RNG.uniform(-30, 10, 3001)).astype(np.float32), np.maximum(RNG.standard_normal(1055), 0).astype(np.float32),
    np.float16([1, 2, 65504]), np.int8([-128, 127])])
def test_stats_of_any_array(array):
    assert_stats(_core.stats_of(array), array)


def test_stats_of_refuses_what_the_core_has_no_type_for():
    with pytest.raises(_core.Error, match="no dtype of the core"):
        _core.stats_of(np.zeros(3, np.complex64))


# ---- stops -----------------------------------------------------------------------------------------------------------------------


def test_stops_come_in_order_with_everything_before_in_memory(reference):
    program, values, loss, grad = reference
    seen = []

    def handler(launch, instruction, reason, ids):
        seen.append((instruction, reason, ids, launch.next, launch.done))
        for i in range(8):
            array = launch.array(3 + i)
            assert (array is None) == (i >= instruction)
            assert array is None or np.array_equal(array, values[i])
    with stop_handler(handler):
        for instruction, hook in ((6, 60), (2, 20), (2, 21), (0, 1)):
            _core.set_hook(program.id, instruction, _core.HOOK_STOP, hook)
        _, stopped_loss, stopped_grad = regression()
    assert seen == [(0, "hook", (1,), 0, False), (2, "hook", (20, 21), 2, False), (6, "hook", (60,), 6, False)]
    assert np.array_equal(stopped_loss, loss) and np.array_equal(stopped_grad, grad)


def test_run_until_from_another_thread_steps_through_a_stopped_launch(reference):
    program, values, loss, grad = reference
    steps = []

    def handler(launch, instruction, reason, ids):
        def step():
            for to in (3, 4, 4, 2, 7):  # not backwards
                launch.run_until(to)
                steps.append(launch.next)
                assert np.array_equal(launch.array(3 + launch.next - 1), values[launch.next - 1])
                assert launch.array(3 + launch.next) is None
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    with stop_handler(handler):
        _core.set_hook(program.id, 2, _core.HOOK_STOP, 1)
        _core.set_hook(program.id, 5, _core.HOOK_STOP, 2)  # stepped past: does not stop again
        launch, stepped_loss, stepped_grad = regression()
    assert steps == [3, 4, 4, 4, 7] and launch.done
    assert np.array_equal(stepped_loss, loss) and np.array_equal(stepped_grad, grad)
    with pytest.raises(_core.Error, match="the launch is not stopped"):
        launch.run_until(8)


def test_run_until_checks_its_argument(reference):
    program, *_ = reference
    errors = []

    def handler(launch, *_):
        for bad in (-1, 9):
            with pytest.raises(_core.Error) as caught:
                launch.run_until(bad)
            errors.append(str(caught.value))
    with stop_handler(handler):
        _core.set_hook(program.id, 2, _core.HOOK_STOP, 1)
        regression()
    assert errors == ["run_until: no instruction -1 in a program of 8", "run_until: no instruction 9 in a program of 8"]


def test_what_the_stop_handler_raises_leaves_flush(reference):
    program, values, loss, grad = reference
    kept = []

    def handler(launch, *_):
        kept.append(launch)
        raise KeyError("from the handler")
    with stop_handler(handler):
        _core.set_hook(program.id, 2, _core.HOOK_STOP, 1)
        with pytest.raises(KeyError, match="from the handler"):
            regression()
    assert not kept[0].done and kept[0].next == 2 and np.array_equal(kept[0].array(3), values[0])
    assert np.array_equal(regression()[1], loss)


def test_the_handler_may_use_its_own_graphs_and_the_stopped_one(reference):
    program, *_ = reference
    results = []

    def handler(launch, *_):
        r = Recorder("inside")
        y = r.neg(r.input(launch.array(3)))
        r.graph.flush((y,))
        results.append(r.array(y).copy())
    with stop_handler(handler):
        _core.set_hook(program.id, 1, _core.HOOK_STOP, 1)
        regression()
    np.testing.assert_allclose(results[0], -(X @ W), atol=1e-4)


def test_without_a_handler_stops_are_ignored(reference):
    program, values, loss, grad = reference
    _core.set_hook(program.id, 2, _core.HOOK_STOP, 1)
    _core.set_check(3)
    assert np.array_equal(regression()[1], loss)


@pytest.mark.parametrize("bad", [(10**6, 0, 2), (None, 8, 2), (None, -100, 2), (None, -1, 1), (None, -1, 8), (None, 0, 3), (None, 0, 0)])
def test_set_hook_checks_its_arguments(reference, bad):
    program_id, instruction, kind = bad
    with pytest.raises(_core.Error):
        _core.set_hook(program_id or reference[0].id, instruction, kind, 1)
    with pytest.raises(_core.Error, match="every"):
        _core.set_hook(reference[0].id, 0, 2, 1, every=0)


# ---- checks ----------------------------------------------------------------------------------------------------------------------


def check_run(mask: int, x: np.ndarray, hooks=()):
    found = []

    def handler(launch, instruction, reason, ids):
        found.append((instruction, reason, ids, launch.done))
        assert all(launch.array(i) is not None for i in range(5))

    def run():
        r = Recorder("checked")
        v = r.input(x)
        inverse = r.reciprocal(v, place=place(900))
        zero = r.mul(v, -1, imms=(0,), place=place(901))
        product = r.mul(inverse, zero, place=place(902))
        total = r.sum(product, attrs=(0, 0), place=place(903))
        return r.graph.flush((total,))
    program = run().program
    with stop_handler(handler):
        _core.set_check(mask)
        for instruction, limit, hook in hooks:
            _core.set_hook(program.id, instruction, _core.HOOK_CHECK, hook, limit=limit)
        run()
    return found


WITH_ZERO = np.array([1, 2, 0, 4] * 200, np.float32)


@pytest.mark.parametrize("mask, found", [(2, (0, "inf")), (1, (2, "nan")), (3, (0, "inf"))])
def test_a_check_names_the_first_instruction(mask, found):
    assert check_run(mask, WITH_ZERO) == [(*found, (), True)]


def test_a_clean_launch_reports_nothing():
    assert check_run(3, np.ones(800, np.float32)) == []


def test_a_check_of_one_instruction_reports_its_hooks():
    assert check_run(0, WITH_ZERO, [(2, 1, 11), (2, 2, 12), (3, 1, 13), (0, 1, 14)]) == [(2, "nan", (11,), True)]


def test_a_check_sees_moves_and_constants():
    found = []

    def run():
        r = Recorder("checked_move")
        x = r.input(np.array([1, np.nan], np.float32))
        f = r.full(shape=(2,), dtype=CODE["float32"], imms=(float("inf"),))
        y = r.concat(f, x, attrs=(0,))
        r.graph.flush((y,))
    with stop_handler(lambda launch, instruction, reason, ids: found.append((instruction, reason))):
        for mask in (2, 1):
            _core.set_check(mask)
            run()
    assert found == [(0, "inf"), (1, "nan")]


# ---- the queue -------------------------------------------------------------------------------------------------------------------


def test_the_queue_is_bounded_and_says_what_it_lost(reference):
    program, *_ = reference
    for hook in range(100):
        _core.set_hook(program.id, 1, _core.HOOK_STATS, hook)
    for _ in range(101):
        regression()
    events = drain()
    assert events[0] == {"kind": "dropped", "count": 100}
    assert len(events) == 10_001 and events[1]["hook"] == 0


def test_poll_events_takes_at_most_limit(reference):
    program, *_ = reference
    _core.set_hook(program.id, 1, _core.HOOK_STATS, 1)
    for _ in range(5):
        regression()
    assert [len(_core.poll_events(2)) for _ in range(4)] == [2, 2, 1, 0]


def test_code_for_hooks_that_are_set_no_more_is_let_go(reference):
    """Hundreds of watches come one after the other: only code for values that are hooked now is held, of bounded number, and the uncut
    program's."""
    program, _, loss, grad = reference
    before = program.segments
    for hook in range(60):
        _core.set_hook(program.id, hook % 8, _core.HOOK_STATS if hook % 3 else _core.HOOK_CAPTURE, hook, every=1 + hook % 7)
        _, again, gradient = regression()
        assert np.array_equal(again, loss) and np.array_equal(gradient, grad)
        assert program.segments <= before + (1 if hook < 8 else 65)
    for _ in range(5):
        regression()
    assert program.segments > before + 1  # others are due in each launch
    for hook in range(60):
        _core.clear_hook(program.id, hook % 8, _core.HOOK_STATS if hook % 3 else _core.HOOK_CAPTURE, hook)
    assert program.segments == before
    _core.synchronize_copies()
