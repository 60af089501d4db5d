"""A device of somebody else's: launches call it, and hooks, stops and failures are what they are on any device."""
import threading
import time

import numpy as np
import pytest
from core_kit import Recorder, arange, softmax, stop_handler
from core_programs import same_bits

import dvm_core as dvm
from dvm_core import _core

CALLS = []  # (instructions, values read, values made) of each


OPS = {"MAX": lambda a: a.max(1, keepdims=True), "SUB": np.subtract, "EXP": np.exp, "SUM": lambda a: a.sum(1, keepdims=True),
       "DIV": np.divide, "ADD": np.add}


def compute(inputs, instructions, read, made):
    """x - max, exp, sum and quotient of a softmax, in float32 NumPy."""
    CALLS.append(([i.index for i in instructions], sorted(read), sorted(made)))
    if FAILS:
        raise FAILS.pop()
    if SLOW:
        time.sleep(SLOW[0])
    values = {v: np.asarray(array) for v, (array, _) in read.items()}
    for i in instructions:
        a = [values[v] for v in i.operands if v >= 0]
        values[inputs + i.index] = OPS[i.name](*a, *(np.float32(imm) for imm in i.imms))
    for v, (array, _) in made.items():
        array[...] = values[v]


FAILS, SLOW = [], []


@pytest.fixture(scope="module")
def elsewhere():
    _core.add_device("elsewhere:0", "Elsewhere", compute)
    return "elsewhere:0"


@pytest.fixture(autouse=True)
def on_it(elsewhere):
    _core.set_device(elsewhere)
    CALLS.clear()
    FAILS.clear()
    SLOW.clear()
    yield
    _core.clear_hooks()
    _core.set_check(0)
    _core.poll_events()
    dvm.set_device("cpu")


def test_a_launch_runs_there_with_what_it_reads_and_makes():
    x = arange(4, 30)
    got, launch = softmax(x)
    assert CALLS == [([0, 1, 2, 3, 4], [0], [5])]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-6)
    assert launch.done and launch.program.areas == []
    dvm.set_device("cpu")
    again, _ = softmax(x)
    np.testing.assert_allclose(again, got, rtol=1e-6)
    assert len(CALLS) == 1


def test_a_stop_cuts_the_program_there_too():
    x = arange(3, 20)
    want, launch = softmax(x)
    seen = []

    def look(stopped, instruction, reason, hooks):
        seen.append((instruction, reason, stopped.array(2).copy()))
        stopped.run_until(instruction + 1)
        seen.append(stopped.array(3).copy())

    _core.set_hook(launch.program.id, 2, _core.HOOK_STOP, 1)
    CALLS.clear()
    with stop_handler(look):
        got, _ = softmax(x)
    assert same_bits(got, want)
    assert CALLS == [([0, 1], [0], [1, 2]), ([2], [0, 1, 2], [3]), ([3, 4], [0, 1, 2, 3], [5])]
    assert seen[0][:2] == (2, "hook")
    np.testing.assert_array_equal(seen[0][2], x - x.max(1, keepdims=True))
    np.testing.assert_array_equal(seen[1], np.exp(seen[0][2]))


def test_hooks_measure_what_it_made():
    x = arange(3, 20)
    _, launch = softmax(x)
    _core.set_hook(launch.program.id, 2, _core.HOOK_STATS, 7)
    _core.set_hook(launch.program.id, 1, _core.HOOK_CAPTURE, 8)
    softmax(x)
    _core.synchronize_copies()
    stats, capture = sorted(_core.poll_events(), key=lambda event: event["hook"])
    assert stats["stats"] == _core.stats_of(np.exp(x - x.max(1, keepdims=True)))
    assert np.array_equal(np.frombuffer(capture["data"], np.float32).reshape(x.shape), x - x.max(1, keepdims=True))


def test_a_check_reports_the_instruction():
    x = np.full((2, 3), np.inf, np.float32)
    reports = []
    _core.set_check(1)
    with stop_handler(lambda launch, instruction, reason, hooks: reports.append((instruction, reason))), np.errstate(invalid="ignore"):
        softmax(x)
    assert reports == [(1, "nan")]


def test_its_error_is_the_callers_and_nothing_has_changed():
    x = arange(3, 20)
    out = np.full((3, 20), 7, np.float32)
    r = Recorder()
    a = r.input(x)
    b = r.exp(a)
    FAILS.append(dvm.DeviceError("the device is on fire"))
    with pytest.raises(dvm.DeviceError, match="on fire"):
        r.graph.flush([], [(b, out.ctypes.data)])
    assert (out == 7).all()
    got, _ = softmax(x)
    dvm.set_device("cpu")
    np.testing.assert_allclose(got, softmax(x)[0], rtol=1e-6)


def test_a_value_lost_with_a_failure_says_so():
    t = dvm.tensor(arange(2, 3)) + 1.0
    FAILS.append(dvm.DeviceError("the device is on fire"))
    with pytest.raises(dvm.DeviceError):
        np.asarray(t)
    with pytest.raises(dvm.Error, match="on fire"):
        np.asarray(t)


def test_a_captured_function_switches_to_it_and_back():
    @dvm.jit
    def f(x):
        return x + 1.0

    x = arange(2, 3)
    for device in ("cpu", "elsewhere:0", "cpu", "elsewhere:0"):
        _core.set_device(device)
        np.testing.assert_array_equal(np.asarray(f(dvm.tensor(x))), x + 1)
    assert len(CALLS) == 2


def test_a_graph_mode_function_asks_it_at_every_call():
    @dvm.jit(mode="graph")
    def f(x):
        return x + 1.0

    for _ in range(5):
        f(dvm.tensor(arange(2, 3)))
    _core.set_device("cpu")
    for _ in range(5):
        f(dvm.tensor(arange(2, 3)))
    _core.set_device("elsewhere:0")
    before = len(CALLS)
    f(dvm.tensor(arange(2, 3)))
    assert len(CALLS) == before + 1


def test_a_name_is_given_once():
    for name in ("elsewhere:0", "cpu"):
        with pytest.raises(_core.Error, match="already"):
            _core.add_device(name, "x", compute)


def test_a_device_added_late_has_no_memory_of_its_own():
    _core.device_memory("npu-sim:910b")  # rooms are there
    for n in range(1, 40):
        _core.add_device(f"elsewhere:{n}", "Elsewhere", compute)
        assert _core.device_memory(f"elsewhere:{n}") == _core.device_memory("elsewhere:0")
    assert _core.device_memory("elsewhere:39")["used"] == 0


def test_what_was_measured_is_read_while_another_thread_runs_the_launch_on():
    """run_until holds the launch and wants the GIL for the device's call; who asks for figures must not hold it meanwhile."""
    x = arange(3, 20)
    _, launch = softmax(x)
    measured = []

    def look(stopped, instruction, reason, hooks):
        thread = threading.Thread(target=stopped.run_until, args=(4,))
        thread.start()
        while len(CALLS) < 2:  # the device computes, and lets others run at every instruction
            time.sleep(0.0005)
        measured.append(stopped.measured())
        thread.join()

    _core.set_hook(launch.program.id, 2, _core.HOOK_STOP, 1)
    _core.set_hook(launch.program.id, 1, _core.HOOK_STATS, 7)
    CALLS.clear()
    SLOW.append(0.05)
    with stop_handler(look):
        softmax(x)
    assert len(measured) == 1 and len(np.frombuffer(measured[0])) > 0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no luck")])
def test_a_value_lost_with_an_interruption_says_so(error):
    t = dvm.tensor(arange(2, 3)) + 1.0
    FAILS.append(error)
    with pytest.raises(type(error)):
        np.asarray(t)
    with pytest.raises(dvm.Error, match=f"{type(error).__name__}: {str(error) or 'the call was interrupted'}"):
        np.asarray(t)
