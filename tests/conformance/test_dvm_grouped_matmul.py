"""grouped_matmul: rows, columns and the inner axis by group, both kinds of list, bias, empty groups beside memory that is NaN."""

import numpy as np
import pytest
from dvm_kit import make

import dvm_core as dvm
from dvm_core.tester import Tester

EPS = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 3e-3}
LISTS = [[4, 4, 4], [1, 30, 9], [0, 7, 0, 0, 12], [17], [0, 0], [64] * 4]


def numbers(sizes, kind, dtype=np.int64):
    return np.asarray(sizes if kind else np.cumsum(sizes), dtype)


def bounds(sizes):
    ends = np.cumsum(sizes)
    return list(zip(ends - sizes, ends, strict=True))


def rows(w, v, sizes, bias=None):
    parts = [w[a:b] @ v[g] + (0 if bias is None else bias[g] if bias.ndim == 2 else bias) for g, (a, b) in enumerate(bounds(sizes))]
    return np.concatenate([*parts, np.zeros((len(w) - sum(sizes), v.shape[2]))])


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("sizes", LISTS, ids=str)
def test_groups_of_rows(sizes, kind, trans_b, dtype):
    (x, w), (y, v) = (
        make((sum(sizes), 33), dtype, -1, 1),
        make((len(sizes), *((20, 33) if trans_b else (33, 20))), dtype, -0.5, 0.5, seed=1),
    )
    t = Tester("cube")
    product = t.grouped_matmul(t.load(x, dtype), t.load(y, dtype), False, trans_b, None, t.load(numbers(sizes, kind)), 0, kind)
    t.store_expect(product, rows(w, v.swapaxes(1, 2) if trans_b else v, sizes), EPS[dtype])
    t.run_check()


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", ["one", "each"])
def test_bias(shape, dtype):
    sizes = [5, 0, 12, 3]
    (x, w), (y, v) = make((20, 33), dtype, -1, 1), make((4, 33, 18), dtype, -0.5, 0.5, seed=1)
    b, u = make((18,) if shape == "one" else (4, 18), dtype, seed=2)
    t = Tester("cube")
    product = t.grouped_matmul(t.load(x, dtype), t.load(y, dtype), False, False, t.load(b, dtype), t.load(numbers(sizes, 0)), 0)
    t.store_expect(product, rows(w, v, sizes, u), EPS[dtype] * 2)
    t.run_check()


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("sizes", LISTS, ids=str)
def test_groups_of_the_inner_axis(sizes, kind, trans_a):
    k = sum(sizes)
    (x, w), (y, v) = make((k, 15) if trans_a else (15, k), low=-1, high=1), make((k, 20), low=-1, high=1, seed=1)
    left = w.T if trans_a else w
    t = Tester("cube")
    product = t.grouped_matmul(t.load(x), t.load(y), trans_a, False, None, t.load(numbers(sizes, kind, np.int32)), 2, kind)
    t.store_expect(product, np.stack([left[:, a:b] @ v[a:b] for a, b in bounds(sizes)]), 1e-4)
    t.run_check()


@pytest.mark.parametrize("sizes", LISTS[:4], ids=str)
def test_groups_of_columns(sizes):
    n = sum(sizes)
    (x, w), (y, v), (b, u) = make((len(sizes), 9, 33), low=-1, high=1), make((33, n), low=-1, high=1, seed=1), make((n,), seed=2)
    t = Tester("cube")
    product = t.grouped_matmul(t.load(x), t.load(y), False, False, t.load(b), t.load(numbers(sizes, 0)), 1)
    t.store_expect(product, np.concatenate([w[g] @ v[:, p:q] for g, (p, q) in enumerate(bounds(sizes))], 1) + u, 1e-4)
    t.run_check()


def test_rows_of_no_group_are_zeros_whatever_lies_there():
    sizes = [3, 0, 4]
    (x, w), (y, v) = make((12, 17), low=-1, high=1), make((3, 17, 6), low=-1, high=1, seed=1)
    x[7:], y[1] = np.nan, np.nan
    t = Tester("cube")
    product = t.grouped_matmul(t.load(x), t.load(y), False, False, None, t.load(numbers(sizes, 1)), 0, 1)
    t.store_expect(product, np.concatenate([w[:3] @ v[0], w[3:7] @ v[2], np.zeros((5, 6))]), 1e-4)
    t.run_check()


@pytest.mark.parametrize("groups", [255, 256, 1024])
def test_many_groups(groups):
    sizes = np.random.default_rng(groups).integers(0, 3, groups)
    (x, w), (y, v) = make((int(sizes.sum()), 8), low=-1, high=1), make((groups, 8, 4), low=-1, high=1, seed=1)
    t = Tester("cube")
    t.store_expect(t.grouped_matmul(t.load(x), t.load(y), False, False, None, t.load(numbers(sizes, 0)), 0), rows(w, v, sizes), 1e-4)
    t.run_check()


def test_extents_that_change_from_run_to_run_are_no_new_program():
    t = Tester("cube:dyn")
    a, b, groups = t.load([-1, -1], "float32"), t.load([-1, -1, -1], "float32"), t.load([-1], "int64")
    store = t.store(t.exp(t.grouped_matmul(a, b, False, False, None, groups, 0, 1)))
    seen = set()
    for sizes in ([3, 4, 5], [0, 12, 0], [1, 1, 1], [100, 0, 28]):
        (x, w), (y, v) = make((sum(sizes), 9), low=-0.5, high=0.5), make((3, 9, 5), low=-0.5, high=0.5, seed=1)
        t.input(a, x), t.input(b, y), t.input(groups, numbers(sizes, 1))
        t.run()
        np.testing.assert_allclose(t.output(store), np.exp(rows(w, v, sizes)), rtol=1e-4, atol=1e-5)
        seen.add(t.program().id)
    assert len(seen) == 1


def test_a_list_that_the_kernel_computes():
    sizes = [3, 0, 4]
    (x, w), (y, v) = make((7, 9), low=-1, high=1), make((3, 9, 5), low=-1, high=1, seed=1)
    t = Tester("split")
    a = t.load(x)
    doubled = t.mul(a, 2.0)
    half = t.sub(t.load(np.asarray([13, 10, 14], np.int32)), 10)
    product = t.grouped_matmul(doubled, t.load(y), False, False, None, half, 0, 1)
    t.store_expect(product, rows(2 * w, v, sizes), 1e-4)
    t.store_expect(doubled, 2 * w)
    t.run_check()


def test_what_is_refused():
    k = dvm.Kernel("cube")
    a, b, groups = k.load([6, 4], "float32"), k.load([2, 4, 3], "float32"), k.load([2], "int32")
    for call, text in (
        (lambda: k.grouped_matmul(a, b, False, False, None, a, 0), "group_list takes int32 or int64"),
        (lambda: k.grouped_matmul(a, b, False, False, None, groups, 3), r"group_type is 0 \(M\), 1 \(N\) or 2 \(K\)"),
        (lambda: k.grouped_matmul(a, b), "takes a tensor of this kernel, got None"),
        (lambda: k.grouped_matmul(groups, groups, False, False, None, groups), "MatMul.*got int32|takes float32"),
    ):
        with pytest.raises(dvm.Error, match=text):
            call()
    k.store(k.grouped_matmul(a, b, False, False, None, groups, 0))
    k.input(a, np.ones((6, 4), np.float32)), k.input(b, np.ones((2, 4, 3), np.float32))
    for wrong in ([5, 3], [2, 7], [-1, 3]):
        k.input(groups, np.asarray(wrong, np.int32))
        with pytest.raises(dvm.ShapeError, match="does not divide an extent of 6"):
            k.run()
    t = Tester("cube")
    t.store(t.grouped_matmul(t.load(np.ones((6, 4), np.float32)), t.load(np.ones((3, 4, 2), np.float32)), False, False, None,
                             t.load(np.asarray([2, 6])), 0))  # fmt: skip
    with pytest.raises(dvm.ShapeError, match="2 groups, and 3 matrices"):
        t.run()
