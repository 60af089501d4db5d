"""pad, one-hot, permute and gather."""

import itertools

import numpy as np
import pytest
from dvm_kit import FLOATS, make, one

import dvm_core as dvm
from dvm_core.tester import Tester

DTYPES = [*FLOATS, "bfloat16", "int32"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(32, 100), (2, 3, 7, 33), (17,), (128, 64)], ids=str)
@pytest.mark.parametrize("pad", [1, 28, 64])
def test_a_pad_lengthens_the_last_axis_by_zeros(shape, pad, dtype):
    x, w = make(shape, dtype, -9, 9)
    t = Tester("vector")
    t.expect(t.pad_store(t.abs(t.load(x, dtype)), pad), np.pad(np.abs(w), [(0, 0)] * (len(shape) - 1) + [(0, pad)]))
    t.run_check()


def test_a_pad_for_each_axis():
    x, w = make((2, 3, 7))
    t = Tester("vector")
    t.expect(t.pad_store(t.load(x), [1, 0, 5]), np.pad(w, [(0, 1), (0, 0), (0, 5)]))
    t.run_check()


@pytest.mark.parametrize("dtype", ("float32", "int32", "float16", "bfloat16"))
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("shape, depth", [((33, 7), 20), ((4, 130), 64)], ids=str)
def test_one_hot(shape, depth, axis, dtype):
    x, w = make(shape, "int32", 0, depth - 1)
    hot = np.moveaxis(np.where(np.arange(depth) == w[..., None], 3, -1), -1, axis)
    t = Tester("vector")
    t.store_expect(t.one_hot(t.load(x), depth, axis, 3, -1, dtype), hot)
    t.run_check()


def test_an_index_outside_is_hot_nowhere():
    x = np.array([-1, 0, 5, 6, 2**30, -(2**31)], np.int32)
    one("vector", lambda t, a: t.one_hot(a, 6, -1, 1, 0, "float32"), (np.arange(6) == x[:, None]).astype(float), x, dtypes=["int32"])


def test_one_hot_of_one_vector_and_work_on_it():
    x, w = make((65,), "int32", 0, 9)
    v, u = make((10,))
    one("split", lambda t, i, p: t.sum(t.mul(t.one_hot(i, 10, -1, 1, 0, "float32"), p), [1]), u[w], x, v, dtypes=["int32", "float32"])


@pytest.mark.parametrize("dims", list(itertools.permutations(range(4))), ids=str)
def test_permute(dims):
    x, w = make((5, 6, 7, 33))
    t = Tester("vector:spec,priv1")
    t.store_expect(t.permute(t.load(x), dims), w.transpose(dims))
    t.store_expect(t.mul(t.permute(t.exp(t.load(x)), dims), 2.0), 2 * np.exp(w.transpose(dims)))
    t.run_check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1024, 2048), (7, 12), (12, 7), (65, 129), (1, 33)], ids=str)
def test_transposes_over_full_and_ragged_tiles(shape, dtype):
    x, w = make(shape, dtype, -9, 9)
    one("vector:opt_fractal", lambda t, a: [t.permute(a, [1, 0]), t.abs(t.permute(a, [-1, 0]))], [w.T, np.abs(w.T)], x, dtypes=[dtype])


def test_a_permute_feeds_a_sum_and_a_sum_a_permute():
    x, w = make((12, 20, 33), low=-1, high=1)
    one(
        "vector:spec,priv1",
        lambda t, a: [t.sum(t.permute(a, [2, 0, 1]), [2]), t.permute(t.sum(a, [2]), [1, 0])],
        [w.transpose(2, 0, 1).sum(2), w.sum(2).T],
        x,
        eps=1e-4,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 40])
def test_gather_of_slices(count, axis, dtype):
    x, w = make((6, 9, 33), dtype, -9, 9)
    index, i = make((count,), "int32", 0, w.shape[axis] - 1)
    t = Tester("vector")
    place = t.global_access([count], "int32")
    t.input(place, index)
    t.store_expect(t.copy(t.part(t.gather_load([6, 9, 33], place, dtype, axis, 1), x)), np.take(w, i, axis))
    t.run_check()


def test_gather_load_is_an_op_of_c310():
    t = Tester("vector")
    t.store(t.part(t.gather_load([5, 3], t.load(np.array([0, 4], np.int32)), "float32", 0, 1), np.zeros((5, 3), np.float32)))
    before = dvm.device()
    dvm.set_device("npu-sim:910b")
    try:
        with pytest.raises(dvm.UnsupportedError, match="GatherLoad; run it on the cpu or npu-sim:950 .rule chip-op"):
            t.run()
        dvm.set_device("npu-sim:950")
        t.run()
    finally:
        dvm.set_device(before)


def test_a_table_of_rows_by_an_index_of_two_axes():
    (x, w), (index, i) = make((50, 33)), make((4, 7), "int32", 0, 49)
    t = Tester("vector")
    rows = t.part(t.gather_load([50, 33], t.load(index), "float32", 0, 1), x)
    t.store_expect(t.exp(rows), np.exp(w[i]))
    t.run_check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 9, 40])
def test_gather_of_elements(count, axis, dtype):
    x, w = make((6, 9, 33), dtype, -9, 9)
    shape = tuple(count if i == axis else n for i, n in enumerate(w.shape))
    index, i = make(shape, "int32", 0, w.shape[axis] - 1)
    t = Tester("vector")
    place = t.global_access(shape, "int32")
    t.input(place, index)
    part = t.part(t.gather_load([6, 9, 33], place, dtype, axis), x)
    t.store_expect(t.abs(part), np.abs(np.take_along_axis(w, i, axis)))
    assert f"GatherLoad<axis={axis}, gather_mode=0>" in t.dump()
    t.run_check()
    assert f"GatherLoad<axis={axis}, gather_mode=0>" in t.dump()


def test_a_gather_mode_that_does_not_exist():
    t = Tester("vector")
    with pytest.raises(ValueError, match=r"gather_mode is 0 \(elements\) or 1 \(slices\), got 2"):
        t.gather_load([5], t.load([3], "int32"), "float32", 0, 2)


def test_an_index_outside_is_an_error_that_says_where():
    t = Tester("vector")
    t.store(t.part(t.gather_load([5, 3], t.load(np.array([0, 7], np.int32)), "float32", 0, 1), np.zeros((5, 3), np.float32)))
    if dvm.Device.arch() == "AscendC220":
        t.run()  # has no gather_load
    with pytest.raises(Exception, match=r"7.*(extent|out of range).*5|5.*7"):
        t.run()
