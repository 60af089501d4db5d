"""dvm.constant: arrays that nobody can write, and the panels that products keep of them."""
from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core

RNG = np.random.default_rng(11)
product = dvm.jit(lambda a, b: a @ b, mode="graph")
linear = dvm.jit(lambda a, w: a.matmul(w, transpose_b=True), mode="graph")


@pytest.fixture(autouse=True)
def default_settings():
    yield
    _core.set_threads(0)
    _core.set_tile_elements(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


def panels() -> dict[str, int]:
    return dvm.stats()["panels"]


def same(a: dvm.Array, b: dvm.Array) -> bool:
    return a._memory().tobytes() == b._memory().tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_a_constant_is_a_copy_of_what_it_is_made_from(dtype: str) -> None:
    values = RNG.integers(0, 2, (3, 4))
    source = dvm.tensor(values).astype(dtype)
    made = dvm.constant(source)
    assert made.constant and not source.constant
    assert made.dtype is source.dtype and made.shape == (3, 4) and made.tolist() == source.tolist()
    assert made._memory().ctypes.data != source._memory().ctypes.data
    assert dvm.constant(source.T).tolist() == source.T.tolist()  # contiguous, whatever lay how


@pytest.mark.parametrize("data", [2.5, [[1, 2], [3, 4]], np.zeros((0, 5), np.float32), np.float32(3), np.arange(12.0)[::-3]], ids=repr)
def test_a_constant_is_made_from_whatever_an_array_is(data: object) -> None:
    made, array = dvm.constant(data), dvm.tensor(data)
    assert made.shape == array.shape and made.dtype is array.dtype and made.tolist() == array.tolist()


def test_a_dtype_that_is_none_of_ours_is_named_with_the_line() -> None:
    with pytest.raises(dvm.DtypeError, match=r"test_constants.py:\d+"):
        dvm.constant(np.zeros(3, np.complex64))


def test_what_it_was_made_from_may_be_written() -> None:
    x, w = normal(2, 70), normal(90, 70)
    made = dvm.constant(w)
    before = linear(dvm.tensor(x), made).numpy().copy()
    w[:] = 0
    assert np.array_equal(linear(dvm.tensor(x), made).numpy(), before) and before.any()


def test_numpy_cannot_write_it() -> None:
    made = dvm.constant(normal(4, 5))
    for view in (made.numpy(), np.asarray(made), made.numpy()[1:]):
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def test_a_kernel_cannot_write_it() -> None:
    made = dvm.constant(normal(4, 8))
    before = made.numpy().copy()

    @dvm.kernel
    def double(k):
        x = k.load((4, 8), dvm.float32)
        k.store(k.add(x, x))

    out = np.zeros((4, 8), np.float32)
    double.run(before, out)
    assert np.array_equal(out, before + before)
    with pytest.raises(dvm.ArgumentError, match=r"test_constants.py:\d+.*read only.*copy\(\)"):
        double.run(before, made.numpy())
    assert np.array_equal(made.numpy(), before)


def test_dlpack_gives_a_copy_of_it() -> None:
    made = dvm.constant(normal(4, 5))
    taken = np.from_dlpack(made)
    assert taken.ctypes.data != made.numpy().ctypes.data and np.array_equal(taken, made.numpy())
    with pytest.raises(BufferError, match="constant"):
        made.__dlpack__(copy=False)


def test_what_torch_writes_is_not_in_it() -> None:
    torch = pytest.importorskip("torch")
    values = normal(4, 5)
    made = dvm.constant(values)
    torch.from_dlpack(made).zero_()
    assert np.array_equal(made.numpy(), values)


def test_a_constant_is_not_given_away() -> None:
    given = dvm.jit(lambda x, y: x + y, mode="graph", donate=(0,))
    x, y = dvm.constant(normal(8, 8)), dvm.tensor(normal(8, 8))
    for _ in range(3):  # traced, then replayed
        with pytest.raises(dvm.Error, match=r"(?s)constant.*x\.copy\(\)"):
            given(x, y)
        assert x.in_memory and same(given(x.copy(), y), x + y)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 4096, 24), (1, 40, 300), (2, 513, 65), (3, 600, 100), (6, 1025, 33), (15, 33, 31), (200, 130, 97),
                                   (600, 70, 290)], ids=str)
def test_panels_change_no_bit(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    x, w = normal(m, k), normal(k, n)
    x[0, :3] = (0, -0.0, 1e-39)
    w[1, :2] = (np.inf, np.nan)
    a, b, t = (dvm.tensor(v).astype(dtype) for v in (x, w, np.ascontiguousarray(w.T)))
    const_b, const_t = dvm.constant(b), dvm.constant(t)
    _core.set_threads(1)
    want = product(a, b)
    with np.errstate(invalid="ignore"):
        reference = a.astype("float64").numpy() @ b.astype("float64").numpy()
    ours = want.astype("float64").numpy()
    finite = np.isfinite(reference) & (np.abs(reference) < 6e4)
    eps = {"float32": 2.0**-23, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    assert np.all(np.abs(ours[finite] - reference[finite]) <= eps * np.abs(reference[finite]) + 1e-6 * k)
    assert np.array_equal(np.isnan(ours), np.isnan(reference))
    for threads in (1, 2, 3):
        for elements in (0, 64, 1000):
            _core.set_threads(threads)
            _core.set_tile_elements(elements)
            _core.forget_segments()
            assert same(product(a, const_b), want) and same(linear(a, const_t), want)
            assert same(a @ const_b, want) and same(a.matmul(const_t, transpose_b=True), want)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_batches_have_panels_of_every_matrix(batch: tuple[int, ...]) -> None:
    x, w = normal(2, 3, 4, 50), normal(*batch, 70, 50)
    a, t, made = dvm.tensor(x), dvm.tensor(w), dvm.constant(w)
    before = panels()["built"]
    want = linear(a, t)
    assert panels()["built"] == before
    for _ in range(3):
        assert same(linear(a, made), want)
    assert panels()["built"] == before + 1
    np.testing.assert_allclose(want.numpy(), x @ np.swapaxes(w, -1, -2), rtol=1e-5, atol=1e-4)


def test_parts_of_a_constant_have_panels_of_their_own() -> None:
    x, w = normal(3, 64), normal(128, 64)
    a, made = dvm.tensor(x), dvm.constant(w)
    part = dvm.jit(lambda a, w, at: a.matmul(w[at : at + 32], transpose_b=True), mode="graph")
    before = panels()
    for at in (0, 8, 16, 24, 32, 96, 0, 8):  # more of them than are kept
        np.testing.assert_allclose(part(a, made, at).numpy(), x @ w[at : at + 32].T, rtol=1e-5, atol=1e-4)
    assert panels()["built"] == before["built"] + 4
    assert panels()["used"] == before["used"] + 6


def test_panels_are_made_once_counted_and_dropped_with_the_constant() -> None:
    gc.collect()
    live, before = dvm.stats()["bytes_live"], panels()
    a, made = dvm.tensor(normal(2, 256)), dvm.constant(normal(300, 256))
    assert panels()["bytes"] == before["bytes"] and dvm.stats()["bytes_live"] == live + 300 * 256 * 4
    for _ in range(5):
        linear(a, made)
    stats = dvm.stats()
    kept = stats["panels"]["bytes"] - before["bytes"]
    assert stats["panels"]["built"] == before["built"] + 1 and stats["panels"]["used"] == before["used"] + 5
    assert kept == 320 * 256 * 4 and stats["bytes_live"] == live + 300 * 256 * 4 + kept
    del made
    gc.collect()
    assert panels()["bytes"] == before["bytes"] and dvm.stats()["bytes_live"] == live


def test_the_memory_log_has_constants_and_panels_as_parameters() -> None:
    _core.memory_log(True)
    try:
        since = max((event["id"] for event in _core.memory_events()), default=-1) + 1
        a, made = dvm.tensor(normal(2, 64)), dvm.constant(normal(96, 64))
        (a.matmul(made, transpose_b=True)).numpy()
        found = {event["name"]: event for event in _core.memory_events(since)}
        assert found["constant"]["cls"] == found["panels"]["cls"] == "parameter"
        assert found["constant"]["bytes"] == found["panels"]["bytes"] == 96 * 64 * 4
        assert found["panels"]["freed"] < 0
        del made, a
        gc.collect()
        found = {event["name"]: event for event in _core.memory_events(since)}
        assert found["constant"]["freed"] >= 0 and found["panels"]["freed"] >= 0
    finally:
        _core.memory_log(False)


def test_a_constant_that_a_trace_reads_from_outside_keeps_its_panels() -> None:
    x, w = normal(2, 80), normal(120, 80)
    made, a = dvm.constant(w), dvm.tensor(x)
    reads = dvm.jit(lambda a: a.matmul(made, transpose_b=True), mode="graph")
    before = panels()
    want = linear(a, dvm.tensor(w))
    for _ in range(4):
        assert same(reads(a), want)
    assert panels()["built"] == before["built"] + 1 and panels()["used"] == before["used"] + 4


def test_a_numpy_array_that_a_trace_reads_is_no_constant() -> None:
    x, w = normal(2, 80), normal(120, 80)
    array, a = dvm.tensor(w), dvm.tensor(x)
    reads = dvm.jit(lambda a: a.matmul(array, transpose_b=True), mode="graph")
    before = panels()["built"]
    for _ in range(3):
        w *= -1  # its memory is the user's, and is read anew at every call
        np.testing.assert_allclose(reads(a).numpy(), x @ w.T, rtol=1e-5, atol=1e-4)
    assert panels()["built"] == before


def test_a_loop_over_time_steps_packs_its_weight_once_for_all_calls() -> None:
    w, u = normal(96, 32), normal(96, 24)

    def unrolled(x, h, w, u):
        for t in range(x.shape[0]):
            gates = x[t].matmul(w, transpose_b=True) + h.matmul(u, transpose_b=True)
            h = (gates[:, :24].tanh() * gates[:, 24:48].sigmoid() + gates[:, 48:72]).tanh()
        return h

    call = dvm.jit(unrolled)
    plain, made = (dvm.tensor(w), dvm.tensor(u)), (dvm.constant(w), dvm.constant(u))
    before = panels()
    for steps in (3, 5, 7, 5):
        x, h = dvm.tensor(normal(steps, 4, 32)), dvm.tensor(normal(4, 24))
        assert same(call(x, h, *made), call(x, h, *plain))
    assert panels()["built"] == before["built"] + 2
    assert panels()["used"] > before["used"] + 2 * (3 + 5 + 7 + 5) - 8


def test_hooks_and_cuts_change_no_bit() -> None:
    a, w = dvm.tensor(normal(5, 64)), normal(64, 64)

    def two_products_of_one_weight(a, w):
        return (a.matmul(w, transpose_b=True).relu() * 0.5).matmul(w) + 1.0

    call = dvm.jit(two_products_of_one_weight)
    want, made = call(a, dvm.tensor(w)), dvm.constant(w)
    before = panels()["used"]
    assert same(call(a, made), want) and panels()["used"] == before + 1  # the second reads rows that lie near
    program = next(p for p in _core.programs() if p.name.endswith("two_products_of_one_weight"))
    for i in range(len(program.instructions)):
        _core.set_hook(program.id, i, _core.HOOK_CAPTURE, 7000 + i)
    try:
        assert same(call(a, made), want) and panels()["used"] > before + 1
    finally:
        _core.clear_hooks()
        _core.poll_events()


def test_threads_that_want_the_same_panels_get_the_same() -> None:
    x, w = normal(3, 512), normal(700, 512)
    a, want = dvm.tensor(x), linear(dvm.tensor(x), dvm.tensor(w))
    for _ in range(5):
        made, before, wrong = dvm.constant(w), panels()["built"], []
        begin = threading.Barrier(4)

        def call(made=made, wrong=wrong, begin=begin) -> None:
            begin.wait()
            for _ in range(4):
                if not same(a.matmul(made, transpose_b=True), want):
                    wrong.append(1)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and panels()["built"] == before + 1


@pytest.fixture
def npu():
    yield
    dvm.set_device("cpu")


def test_a_constant_goes_along_when_the_device_is_switched(npu) -> None:
    x, w = normal(2, 64), normal(96, 64)
    made, a = dvm.constant(w), dvm.tensor(x)
    want = linear(a, made).numpy().copy()
    dvm.set_device("npu-sim:910b")
    np.testing.assert_allclose((a.matmul(made, transpose_b=True)).numpy(), want, rtol=1e-4, atol=1e-4)
    assert made.constant
    dvm.set_device("cpu")
    before = panels()["built"]
    assert made.constant and np.array_equal(linear(a, made).numpy(), want) and np.array_equal(made.numpy(), w)
    assert panels()["built"] == before + 1
