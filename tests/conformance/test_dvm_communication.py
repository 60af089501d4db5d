"""Collectives between ranks of one machine: sizes around a chunk of shared memory, dtypes, work before and behind, failures."""

import os
import time

import numpy as np
import pytest
from dvm_kit import make

import dvm_core as dvm
from dvm_core.devices import ranks
from dvm_core.tester import CommScope, Tester

# the published largest, 104,857,612 elements, is cut to what takes well under a second here
SIZES = [9, 4096, 12345, 262144 + 7, 1048576 + 12]
EPS = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 2e-2, "int32": 0}


def each(size, shape, dtype):
    return [make(shape, dtype, -4, 4, seed=rank) for rank in range(size)]


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16", "int32"))
@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("count", SIZES)
def test_allreduce(count, kind, dtype):
    data = each(2, count, dtype)
    expected = getattr(np, kind)([w for _, w in data], axis=0)
    with CommScope(2) as comm:
        t = Tester("vector", comm=comm)
        t.store_expect(t.allreduce(kind, t.load(data[comm.rank][0], dtype)), expected, EPS[dtype])
        t.run_check()


SHAPES = [(4, 256), (4, 16384), (4, 32, 256), (4, 127849), (32, 256)]  # (4, 127849) for the published (4, 1278487)


@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["allgather", "allgatherv2"])
def test_allgather(name, shape, dtype):
    data = each(2, shape, dtype)
    with CommScope(2) as comm:
        t = Tester("vector", comm=comm)
        t.store_expect(getattr(t, name)(t.load(data[comm.rank][0], dtype)), np.concatenate([w for _, w in data]), EPS[dtype])
        t.run_check()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reducescatter_and_work_on_it(shape):
    data = each(2, shape, "float32")
    half = shape[0] // 2
    with CommScope(2) as comm:
        t = Tester("vector", comm=comm)
        part = t.reducescatter(t.part(t.multi_load(list(shape), "float32"), data[comm.rank][0]))
        t.store_expect(t.abs(part), np.abs(sum(w for _, w in data)[comm.rank * half : (comm.rank + 1) * half]), 1e-2)
        t.run_check()


def test_a_matmul_split_over_its_inner_axis():
    (x, w), (y, v) = make((33, 64)), make((64, 20), seed=1)
    with CommScope(2) as comm:
        inner = slice(32 * comm.rank, 32 * comm.rank + 32)
        t = Tester("mix", comm=comm)
        product = t.matmul(t.load(np.ascontiguousarray(x[:, inner])), t.load(np.ascontiguousarray(y[inner])), False, False)
        t.store_expect(product, w[:, inner] @ v[inner], 1e-4)  # before the exchange
        t.store_expect(t.exp(t.mul(t.allreduce("sum", product), 0.1)), np.exp(w @ v * 0.1), 1e-4)
        t.store_expect(t.add(product, 1.0), w[:, inner] @ v[inner] + 1, 1e-4)  # from a value of before, after it
        t.run_check()


def test_two_exchanges_and_three_ranks():
    data = each(3, (6, 5), "float32")
    total = sum(w for _, w in data)
    with CommScope(3) as comm:
        t = Tester("split", comm=comm)
        reduced = t.allreduce("sum", t.mul(t.load(data[comm.rank][0]), 0.5))
        t.store_expect(t.allgather(t.slice_dim(reduced, 0, 0, 2)), np.concatenate([total[:2] * 0.5] * 3))
        t.store_expect(reduced, total * 0.5)
        for _ in range(3):
            t.run_check()


def test_the_sum_has_one_order_on_every_rank():
    data = each(3, 4097, "float32")
    expected = (data[0][0] + data[1][0]) + data[2][0]
    with CommScope(3) as comm:
        t = Tester("vector", comm=comm)
        store = t.store(t.allreduce("sum", t.load(data[comm.rank][0])))
        t.run()
        np.testing.assert_array_equal(t.output(store), expected)


def test_ranks_know_themselves_and_wait_for_each_other(tmp_path):
    with CommScope(4) as comm:
        assert (dvm.Kernel.rank_id(), dvm.Kernel.rank_size()) == (comm.rank, 4)
        if comm.rank == 3:
            time.sleep(0.1)
        (tmp_path / str(comm.rank)).touch()
        dvm.Kernel.barrier()
        assert len(os.listdir(tmp_path)) == 4
    assert (dvm.Kernel.rank_id(), dvm.Kernel.rank_size()) == (0, 1)


def test_one_rank_alone():
    x, w = make((6, 5))
    dvm.Kernel.init_comm(0, 1, "dummy")
    try:
        t = Tester("vector")
        a = t.load(x)
        for item in (t.allreduce("max", a), t.allgather(a), t.reducescatter(a)):
            t.store_expect(item, w)
        t.run_check()
    finally:
        dvm.Kernel.join()


def test_a_rank_that_fails_is_an_error_of_all(capfd):
    with pytest.raises(dvm.DeviceError, match="another rank failed|rank 1 ended with"), CommScope(2) as comm:
        if comm.rank == 1:
            raise ValueError("on purpose")
        ranks.barrier()
    assert "on purpose" in capfd.readouterr().err


def test_what_is_refused():
    t = Tester("vector")
    x = t.load(np.ones((3, 4), np.float32))
    with pytest.raises(dvm.ArgumentError, match="takes 'sum' or 'max', got 'mean'"):
        t.allreduce("mean", x)
    t.store(t.allreduce("sum", x))
    with pytest.raises(dvm.ArgumentError, match="a collective needs ranks"):
        t.run()
    with pytest.raises(dvm.ArgumentError, match="33 ranks; there may be 1 to 32"):
        dvm.Kernel.fork(33)
    with CommScope(2) as comm:
        u = Tester("vector", comm=comm)
        u.store(u.reducescatter(u.load(np.ones((3, 4), np.float32))))
        with pytest.raises(dvm.ShapeError, match="3 rows do not divide among 2 ranks"):
            u.run()


def test_code_is_made_without_ranks():
    k = dvm.Kernel("vector", "das")
    k.store(k.exp(k.allreduce("sum", k.abs(k.load([4, 8], "float32")))))
    assert "AllReduce" in k.dump()
    k.codegen()
    assert "Exp.fp32" in k.das() and "Abs.fp32" in k.das()
