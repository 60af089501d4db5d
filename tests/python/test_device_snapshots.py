"""Snapshots off a simulated device: asynchronous, in time or not at all, and never wrong."""
import sys
import threading
import time

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core
from dvm_core.msbc.layout import CODES

NPU = "npu-sim:910b"
COUNT = 10_000
LONG = 20_000, 60_000
ROW = np.arange(96, dtype=np.float32)


@pytest.fixture(autouse=True)
def clean():
    _core.synchronize_copies()
    _core.poll_events(1 << 20)
    dvm.set_device(NPU)
    _core.set_capture_timeout(*LONG)  # short limits only where a copy is sure to miss them
    yield
    _core.clear_faults()
    _core.clear_hooks()
    _core.set_link()
    _core.set_capture_timeout(100, 10_000)
    dvm.set_device("cpu")
    _core.synchronize_copies()
    _core.poll_events(1 << 20)


class Program:
    """x -> 3 x -> 3 x + 1, the product captured: of launch n it is what `expected(n)` says."""

    def __init__(self, limit=1 << 20, row=ROW):
        self.row, self.memory, self.launched = row, row.copy(), {}
        launch = self.launch(0)
        _core.set_hook(launch.program.id, 0, _core.HOOK_CAPTURE, 7, 1, limit)

    def launch(self, number):
        np.add(self.row, number, out=self.memory)  # the same memory for every launch
        graph = _core.Graph("pattern")
        x = graph.input(self.memory.ctypes.data, self.row.shape, 1)
        product = graph.op(CODES["MUL"], (x, -1), imms=(3.0,))
        launch = graph.flush([graph.op(CODES["ADD"], (product, -1), imms=(1.0,))])
        self.launched[launch.number] = number
        return launch

    def right(self, event):
        got = np.frombuffer(event["data"], np.float32)
        return np.array_equal(got, (self.row + self.launched[event["launch"]]) * 3)


def taken():
    _core.synchronize_copies()
    return _core.poll_events(1 << 20)


def spent(before):
    return {key: value - before[key] for key, value in _core.capture_stats().items()}


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        _core.synchronize_copies()
        time.sleep(0.002)


def test_a_snapshot_is_of_its_launch():
    program = Program()
    before, copies = _core.capture_stats(), _core.device_copies()["copies_out"]
    for number in range(20):
        program.launch(number)
    events = taken()
    assert len(events) == 20 and all(program.right(event) for event in events)
    assert {k: v for k, v in spent(before).items() if v} == {"taken": 20, "published": 20}
    assert _core.device_copies()["copies_out"] == copies + 20


@pytest.mark.parametrize("kind, limits, reason, ends_as", [
    ("fail", LONG, "the copy from the device failed", ""), ("stall", (20, 20_000), "not done within 20 ms", "late"),
    ("lose", (20, 600), "not done within 20 ms", "dropped")])
def test_a_copy_that_goes_wrong_is_a_placeholder_and_the_next_one_is_right(kind, limits, reason, ends_as):
    program = Program()
    _core.set_capture_timeout(*limits)
    before = _core.capture_stats()
    _core.plant_fault(kind, milliseconds=400, of="snapshot")
    program.launch(1)
    (event,) = taken()
    assert reason in event["placeholder"] and not event.get("data")
    assert spent(before)["held_bytes"] == (ROW.nbytes if ends_as else 0)  # what a late copy writes is kept until it is done
    until(lambda: _core.capture_stats()["held_bytes"] == 0)
    now = spent(before)
    assert (now["placeholders"], now["late"], now["dropped"]) == (1, ends_as == "late", ends_as == "dropped")
    _core.set_capture_timeout(*LONG)
    program.launch(2)
    (event,) = taken()
    assert program.right(event)


def test_on_a_slow_link_a_snapshot_is_late_and_the_launch_does_not_wait_for_it():
    program = Program(row=np.arange(10_000, dtype=np.float32))
    before = _core.capture_stats()
    _core.set_capture_timeout(10, 20_000)
    _core.set_link(latency_us=0, bytes_per_us=0.5, paced=True)  # 80 ms for 40 kB
    program.launch(1)
    (event,) = taken()
    assert "not done within 10 ms" in event["placeholder"]
    until(lambda: _core.capture_stats()["held_bytes"] == 0)
    assert spent(before)["late"] == 1


def test_what_copies_would_take_is_counted():
    program = Program()
    _core.set_link(latency_us=60_000, bytes_per_us=1e9)
    before = _core.device_copies()["copy_us"]
    program.launch(2)
    assert all(program.right(event) for event in taken())
    assert 120_000 <= _core.device_copies()["copy_us"] - before < 120_001  # the input and the snapshot: nobody asks for the result


def test_a_value_above_the_limit_is_never_copied():
    program = Program(limit=100)
    before = _core.device_copies()["copies_out"]
    program.launch(1)
    (event,) = taken()
    assert event["placeholder"] == "384 bytes are more than the limit of 100" and _core.device_copies()["copies_out"] == before


def test_ten_thousand_snapshots_with_faults_publish_no_wrong_bytes():
    program = Program()
    _core.set_capture_timeout(20, 300)
    before, events, wrong, sizes = _core.capture_stats(), 0, 0, []
    begin = _core.device_memory(NPU)["used"] + 4 * ROW.nbytes  # values of a launch
    planted, rates = _core.device_copies()["faults"], {"lose": 0.003, "fail": 0.02, "stall": 0.001}
    for seed, (kind, rate) in enumerate(rates.items()):
        _core.plant_fault(kind, milliseconds=30, of="snapshot", rate=rate, seed=seed)
    reasons = {}

    def take():
        nonlocal events, wrong
        for event in _core.poll_events(1 << 20):
            assert event["kind"] == "capture"  # not "dropped": the queue of events never overflowed
            events += 1
            if event.get("placeholder"):
                reason = event["placeholder"]
                reasons[reason] = reasons.get(reason, 0) + 1
            elif not program.right(event):
                wrong += 1

    for number in range(COUNT):
        program.launch(number)
        if number % 500 == 499:
            _core.synchronize_copies()
            take()
            now = spent(before)
            sizes.append((_core.device_memory(NPU)["used"], now["held_bytes"] + now["dropped"] * ROW.nbytes))
    _core.clear_faults()
    faults = _core.device_copies()["faults"] - planted
    until(lambda: _core.capture_stats()["held_bytes"] == 0)
    take()
    now = spent(before)
    assert wrong == 0 and events == COUNT == now["taken"] == now["published"] + now["placeholders"]
    assert sum(reasons.values()) == now["placeholders"]
    failed, late = reasons.get("the copy from the device failed", 0), reasons.get("the copy was not done within 20 ms", 0)
    assert failed and failed + late >= faults > 200 and now["dropped"] >= 20  # more on a machine that has other things to do
    assert late == now["late"] + now["dropped"] == now["placeholders"] - failed
    # flat: no more than what is late, or was dropped while the engine was at it; and nothing in the end
    assert all(used <= begin + held for used, held in sizes), sizes
    until(lambda: _core.device_memory(NPU)["used"] <= begin)


def test_an_input_is_captured_from_a_copy_that_nobody_else_writes_meanwhile():
    count, over = 1 << 20, threading.Event()
    total, ones = dvm.jit(lambda a: a.sum(), mode="graph"), dvm.jit(lambda a: a + 1)(dvm.tensor(np.zeros(count, np.float32)))
    known = {program.id for program in _core.programs()}
    total(ones)
    program, = (program for program in _core.programs() if program.id not in known)
    taken()
    _core.set_hook(program.id, -1, _core.HOOK_CAPTURE, 7, 1, 4 * count)

    def write():  # to whatever memory is free
        while not over.is_set():
            _core.empty((count,), 1)[0] = np.nan

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(20):
            total(ones)
            event, = taken()
            assert np.all(np.frombuffer(event["data"], np.float32) == 1)
    finally:
        over.set()
        writing.join()
        sys.setswitchinterval(interval)
