"""Threads: any number of workers gives the same bits; launches on several Python threads; fork with launches running."""
import os
import threading
import time

import numpy as np
import pytest
from core_kit import Recorder, drain, place, stop_handler

from dvm_core import _core

RNG = np.random.default_rng(11)
X, W = RNG.standard_normal((500, 96)).astype(np.float32), RNG.standard_normal((96, 300)).astype(np.float32)


@pytest.fixture(autouse=True)
def default_threads():
    yield
    _core.set_threads(0)


def attention(line: int = 700) -> tuple[np.ndarray, np.ndarray]:
    r = Recorder("attention")
    x, w = r.input(X), r.input(W)
    h = r.matmul(x, w, attrs=(0, 0), place=place(line))
    e = r.exp(r.sub(h, r.max(h, attrs=(1, 1))))
    p = r.div(e, r.sum(e, attrs=(1, 1)))
    bias = r.sum(p, attrs=(0, 0))
    r.graph.flush((p, bias))
    return r.array(p).copy(), r.array(bias).copy()


def test_the_number_of_workers_changes_no_bit():
    _core.set_threads(1)
    p, bias = attention()
    assert np.allclose(p.sum(1), 1, atol=1e-5)
    for n in (2, 3, 4, 7, 1):
        _core.set_threads(n)
        assert _core.stats()["threads"] == n
        for _ in range(5):
            assert all(np.array_equal(a, b) for a, b in zip(attention(), (p, bias), strict=True))


def test_thread_counts_are_clamped():
    _core.set_threads(10**6)
    assert _core.stats()["threads"] == 64
    _core.set_threads(-3)
    assert 1 <= _core.stats()["threads"] <= 64


def run_in_threads(n: int, body) -> None:
    errors = []

    def guarded(i):
        try:
            body(i)
        except BaseException as error:  # shown by the assertion below
            errors.append(error)
    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_python_threads_share_programs_and_segments():
    p, bias = attention()

    def body(i):
        for _ in range(20):
            assert all(np.array_equal(a, b) for a, b in zip(attention(), (p, bias), strict=True))
    run_in_threads(4, body)


def test_hooks_change_while_launches_run():
    """Nothing but the events may differ."""
    _, bias = attention(line=710)
    r = next(p for p in _core.programs() if p.name == "attention" and p.instructions[0].place == place(710))
    stop = threading.Event()

    def toggle():
        while not stop.is_set():
            for i in range(4):
                _core.set_hook(r.id, i, _core.HOOK_STATS, 1)
                _core.set_hook(r.id, i, _core.HOOK_CAPTURE, 2, limit=1000)
            _core.poll_events()
            _core.clear_hooks()
    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        run_in_threads(2, lambda i: [np.testing.assert_array_equal(attention(line=710)[1], bias) for _ in range(30)])
    finally:
        stop.set()
        toggler.join()
        _core.clear_hooks()
        drain()


def test_other_python_threads_run_while_a_launch_runs_or_is_stopped():
    beats, ready, go = [], threading.Event(), threading.Event()

    def handler(launch, *_):
        ready.set()
        assert go.wait(20)
    with stop_handler(handler):
        attention(line=720)
        program = next(p for p in _core.programs() if p.instructions[0].place == place(720))
        _core.set_hook(program.id, 3, _core.HOOK_STOP, 1)
        thread = threading.Thread(target=lambda: beats.append(attention(line=720)))
        thread.start()
        assert ready.wait(20)
        other = attention(line=730)[1]  # another program runs meanwhile
        go.set()
        thread.join()
    assert np.array_equal(beats[0][1], other)


def test_the_capturing_threads_graph_can_be_flushed_by_another_thread():
    r = Recorder("suspended")
    y = r.neg(r.input(X))
    done = []
    thread = threading.Thread(target=lambda: done.append(r.graph.flush((y,))))
    thread.start()
    thread.join()
    assert done[0].done and np.array_equal(r.array(y), -X)


def test_fork_while_other_threads_launch():
    """The child inherits no held lock: it runs the same program at once."""
    p, bias = attention(line=740)
    stop = threading.Event()

    def train():
        while not stop.is_set():
            attention(line=740)
    threads = [threading.Thread(target=train) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                ok = np.array_equal(attention(line=740)[1], bias)
                os._exit(0 if ok else 1)
            deadline = time.monotonic() + 20
            status = (0, 0)
            while status[0] == 0 and time.monotonic() < deadline:
                status = os.waitpid(pid, os.WNOHANG)
                time.sleep(0.005)
            if status[0] == 0:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            assert status[0] == pid and os.waitstatus_to_exitcode(status[1]) == 0
    finally:
        stop.set()
        for t in threads:
            t.join()
