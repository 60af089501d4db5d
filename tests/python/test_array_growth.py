"""Arrays that are dropped unread: a thread's graph, and the memory it holds, stay as small as what is still waited for."""
from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from core_kit import in_threads

import dvm_core as dvm
from dvm_core.frontends.array import concat
from dvm_core.frontends.array_record import current

DROPPED = 100_000
SMALL = 2048  # values: a graph is looked through before


class Held(np.ndarray):
    """Memory that tells when it goes."""


def held(value: float, shape: tuple[int, ...] = (4,)) -> np.ndarray:
    return np.full(shape, value, np.float32).view(Held)


def size() -> int:
    return current().graph.size()


def test_an_op_that_nobody_waits_for_is_forgotten_at_once():
    x = held(1.0)
    gone = weakref.ref(x)
    dvm.tensor(x) + 1
    assert size() == 0
    del x
    assert gone() is None


def test_dropped_ops_on_new_inputs_hold_neither_memory_nor_values():
    seen = []
    live = dvm.stats()["bytes_live"]
    last = None
    for i in range(DROPPED):
        x = held(i)
        if i % 100 == 0:
            seen.append(weakref.ref(x))
        last = dvm.tensor(x) * 2.0
        if i % 1000 == 0:
            assert size() < SMALL
    assert sum(ref() is not None for ref in seen) <= SMALL / 100 + 1 and size() < SMALL
    assert dvm.stats()["bytes_live"] == live
    np.testing.assert_array_equal(last.numpy(), np.full(4, 2.0 * (DROPPED - 1)))


def test_large_inputs_of_dropped_ops_go_before_many_are_there():
    shape = (1 << 20,)  # 4 MB
    seen, most = [], 0
    launches = dvm.stats()["launches"]
    for i in range(200):
        x = held(i, shape)
        seen.append(weakref.ref(x))
        last = dvm.tensor(x).sum()
        del x
        most = max(most, sum(ref() is not None for ref in seen))
    assert most <= 17 and dvm.stats()["launches"] == launches  # 64 MB, and nothing was run for it
    assert last.item() == 199.0 * shape[0]


def test_a_refused_op_leaves_no_operand_behind():
    a = dvm.tensor(np.ones((2, 3), np.float32))
    keep = a + 1
    before = size()
    seen = []
    for i in range(300):
        x = held(i, (7,))
        seen.append(weakref.ref(x))
        wrong = dvm.tensor(x)
        with pytest.raises(dvm.Error):
            a + wrong
        with pytest.raises(dvm.Error):
            concat([wrong, a])
        del x, wrong
    gc.collect()  # errors hold frames
    assert size() == before and not any(ref() for ref in seen)
    np.testing.assert_array_equal((keep + a).numpy(), np.full((2, 3), 3.0))


def test_a_refused_op_leaves_no_operand_behind_in_a_captured_call():
    graphs = []

    @dvm.jit
    def function(a, b):
        for _ in range(10):
            with pytest.raises(dvm.Error):
                a + b
        graphs.append((size(), a * 2 + 1))
        return graphs[-1][1]

    a, b = dvm.tensor(np.ones(3, np.float32)), dvm.tensor(np.ones(4, np.float32))
    assert function(a, b).tolist() == [3.0] * 3 and graphs[0][0] == 0


def test_dropped_and_refused_ops_in_between_leave_what_is_waited_for():
    total, expected = dvm.tensor(np.zeros(4, np.float32)), np.zeros(4, np.float32)
    wrong = dvm.tensor(np.zeros(5, np.float32))
    for i in range(20_000):
        x = dvm.tensor(held(i % 7))
        unread = (x * 3.0).exp()
        if i % 50 == 0:
            total = total + x
            expected += i % 7
        if i % 100 == 0:
            with pytest.raises(dvm.Error):
                unread + wrong
            assert size() < SMALL * 2
    np.testing.assert_array_equal(total.numpy(), expected)


def test_a_sum_that_is_never_read_is_computed_now_and_then():
    total, one = dvm.tensor(np.zeros(4, np.float32)), dvm.tensor(np.ones(4, np.float32))
    most = 0
    for _ in range(DROPPED):
        total = total + one
        most = max(most, size())
    assert most < 25_000
    assert total.tolist() == [float(DROPPED)] * 4


def test_an_error_of_what_is_computed_now_and_then_is_told_where_it_is_used():
    x = dvm.tensor(np.arange(4, dtype=np.float32))
    lost = x[dvm.tensor(np.array([99]))]
    total = x + 1
    with pytest.raises(dvm.Error, match="GATHER.*99"):  # one run computes both, as if either had been read
        for _ in range(30_000):
            total = total + 1
    for array in (lost, total):
        with pytest.raises(dvm.Error, match="GATHER.*99"):
            array.numpy()
    np.testing.assert_array_equal((x + 1).numpy(), [1, 2, 3, 4])


def test_operands_seen_again_after_a_graph_was_looked_through():
    x, y = dvm.tensor(np.arange(4, dtype=np.float32)), dvm.tensor(np.full(4, 2.0, np.float32))
    kept = [x * float(i) for i in range(20)]
    for i in range(5_000):
        (x + y) * float(i)
    more = [k + x * y for k in kept]
    for i, (first, second) in enumerate(zip(kept, more, strict=True)):
        np.testing.assert_array_equal(second.numpy(), np.arange(4) * i + np.arange(4) * 2)
        np.testing.assert_array_equal(first.numpy(), np.arange(4) * i)


def test_threads_that_drop_ops_on_arrays_they_share():
    shared = [dvm.tensor(held(i)) for i in range(8)]
    sizes: list[int] = []

    def body(number: int) -> None:
        total = shared[0]
        for i in range(DROPPED // 8):
            unread = shared[i % 8] + shared[(i + number) % 8]
            if i % 500 == 0:
                total = total + unread
                sizes.append(size())
        expected = sum(i % 8 + (i + number) % 8 for i in range(0, DROPPED // 8, 500))
        np.testing.assert_array_equal(total.numpy(), np.full(4, expected, np.float32))

    assert in_threads(4, body) == [] and max(sizes) < 2 * SMALL


def test_a_thread_whose_arrays_are_read_by_others_holds_nothing_of_them():
    box: list[dvm.Array] = []
    ready, read = threading.Semaphore(0), threading.Semaphore(0)
    sizes, values = [], []

    def reader() -> None:
        for _ in range(2000):
            ready.acquire()
            values.append(box.pop().item())
            read.release()

    thread = threading.Thread(target=reader, daemon=True)
    thread.start()
    seen = []
    for i in range(2000):
        x = held(i, (1,))
        seen.append(weakref.ref(x))
        box.append(dvm.tensor(x) * 2.0)
        del x
        ready.release()
        read.acquire()
        sizes.append(size())
    thread.join()
    assert values == [2.0 * i for i in range(2000)] and max(sizes) < 8 and sum(ref() is not None for ref in seen) <= 1


def test_a_thread_records_on_in_the_graph_that_was_run_if_nobody_holds_it():
    x = dvm.tensor(np.arange(4, dtype=np.float32))
    y = x + 1
    y.numpy()
    first, number = id(current().graph), size()
    assert number == 0
    for i in range(5):
        assert (y * i).sum().item() == 10.0 * i  # values of before are inputs now
        assert size() == 0 and id(current().graph) == first
    graph = current().graph
    assert (x + 1).sum().item() == 10.0
    assert current().graph is not graph and graph.size() == 3  # what is held stays as it was


def test_a_failure_is_not_mistaken_for_one_of_what_is_recorded_after_it():
    x = dvm.tensor(np.arange(4))
    for kept in (True, False):
        wrong = x[dvm.tensor(np.array([7]))]
        with pytest.raises(dvm.Error, match="out of range"):
            wrong.numpy()
        if not kept:
            del wrong
        right = [x + i for i in range(3)]
        assert [int(r.sum()) for r in right] == [6, 10, 14]
        if kept:
            with pytest.raises(dvm.Error, match="out of range"):
                bool(wrong)


def test_memory_that_goes_while_a_thread_begins_to_record_may_record_itself():
    out = []

    def goes() -> None:
        out.append((dvm.tensor(np.ones(3, np.float32)) + 1).sum().item())

    for i in range(20):
        x = held(i)
        weakref.finalize(x, goes)
        a = dvm.tensor(x) * 2
        del x
        assert a.sum().item() == 8.0 * i
        del a
        assert (dvm.tensor(np.ones(2, np.float32)) * i).sum().item() == 2.0 * i
    gc.collect()
    assert out == [6.0] * 20
