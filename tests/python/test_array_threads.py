"""Threads that share dvm.tensor arrays and functions in graph mode: one flush at a time, and no replay on memory that is gone."""
from __future__ import annotations

import threading

import numpy as np
import pytest
from core_kit import OP, in_threads, stop_handler

import dvm_core as dvm
from dvm_core import _core

X = np.random.default_rng(3).standard_normal((200, 300)).astype(np.float32)
Y = np.exp(X * 2)


def pending():
    return (dvm.tensor(X) * 2).exp()


def program_of_pending():
    array = pending()
    array.numpy()
    codes = [OP["MUL"], OP["EXP"]]
    return next(p for p in reversed(_core.programs()) if [i.opcode for i in p.instructions] == codes and p.name == "arrays")


class Stopped:
    """A thread that reads a pending array, inside the launch that computes it until `go` is set."""

    def __init__(self) -> None:
        self.program = program_of_pending()
        self.inside, self.go, self.read = threading.Event(), threading.Event(), []
        self.array = pending()
        self.thread = threading.Thread(target=lambda: self.read.append(self.array.numpy()))

    def __enter__(self) -> Stopped:
        self.handler = stop_handler(self.stop)
        self.handler.__enter__()
        _core.set_hook(self.program.id, 1, _core.HOOK_STOP, 1)
        self.thread.start()
        assert self.inside.wait(20)
        return self

    def __exit__(self, *error) -> None:
        self.go.set()
        self.thread.join()
        self.handler.__exit__(*error)

    def stop(self, *_) -> None:
        self.inside.set()
        assert self.go.wait(20)


def test_a_second_reader_of_a_pending_array_waits_for_the_first():
    with Stopped() as first:
        second = threading.Thread(target=lambda: first.read.append(first.array.numpy()))
        second.start()
        second.join(0.1)
        assert second.is_alive()
        first.go.set()
        second.join()
    assert len(first.read) == 2
    for read in first.read:
        np.testing.assert_allclose(read, Y, rtol=1e-5)


def test_recording_on_with_an_array_that_another_thread_computes():
    with Stopped() as first:
        threading.Timer(0.1, first.go.set).start()
        more = first.array + 1
    np.testing.assert_allclose(more.numpy(), Y + 1, rtol=1e-5)


def test_a_stop_handler_that_reads_the_array_being_computed_is_told_and_does_not_wait():
    told = []
    program = program_of_pending()
    array = pending()

    def handler(*_) -> None:
        try:
            array.numpy()
        except dvm.Error as error:
            told.append(str(error))

    with stop_handler(handler):
        _core.set_hook(program.id, 1, _core.HOOK_STOP, 1)
        read = array.numpy()
    assert len(told) == 1
    np.testing.assert_allclose(read, Y, rtol=1e-5)


def test_many_readers_of_pending_arrays():
    for _ in range(30):
        arrays = [pending() for _ in range(3)]
        read = []
        assert in_threads(4, lambda i, arrays=arrays, read=read: read.extend(arrays[(i + k) % 3].numpy() for k in range(3))) == []
        assert len(read) == 12 and all(np.array_equal(a, read[0]) for a in read)


def test_threads_replay_one_function_with_pending_arguments_of_many_shapes():
    function = dvm.jit(lambda x: (x * 2).softmax(-1) - x, mode="graph")
    inputs = [dvm.tensor(X[: 200 - i]) for i in range(8)]
    expected = [((x + 1) * 2).softmax(-1) - (x + 1) for x in inputs]
    for e in expected:
        e.numpy()

    def body(i: int) -> None:
        for k in range(60):
            n = (i * 3 + k * 5) % len(inputs)
            np.testing.assert_array_equal(function(inputs[n] + 1).numpy(), expected[n].numpy())

    assert in_threads(4, body) == []


def test_memory_given_away_by_another_thread_is_not_written_under_a_replay():
    reads = dvm.jit(lambda x: (x * 2).exp().sum(), mode="graph")
    takes = dvm.jit(lambda x: x * 0, mode="graph", donate=(0,))
    right = (dvm.tensor(X) * 2).exp().sum().numpy()
    for _ in range(30):
        x = dvm.tensor(X) * 1
        x.numpy()
        x = x * 1  # which no view is on
        (x + 0).numpy()

        def body(i: int, x=x) -> None:
            if i:
                takes(x)
                return
            try:
                got = reads(x).numpy()
            except dvm.Error as error:
                assert "given away" in str(error)
            else:
                assert got == right

        assert in_threads(2, body) == []
        with pytest.raises(dvm.Error, match="given away"):
            x.numpy()


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("donate", [(), (0,)])
def test_a_call_with_an_array_that_was_given_away_is_told_whether_it_is_traced_or_replayed(used, donate):
    takes = dvm.jit(lambda x: x * 0, mode="graph", donate=(0,))
    reads = dvm.jit(lambda x: x * 2, mode="graph", donate=donate)
    if used:
        reads(dvm.tensor(X) * 1)
    x = dvm.tensor(X) * 1
    takes(x)
    with pytest.raises(dvm.Error, match="given away"):
        reads(x)
