"""Matrix products through the VM: operands that change between calls, and layouts, dtypes and batches that must not change a bit."""
import numpy as np
import pytest
from core_kit import run_at

import dvm_core as dvm
from dvm_core import _core

RNG = np.random.default_rng(3)
product = dvm.jit(lambda a, b: a @ b, mode="graph")
linear = dvm.jit(lambda a, w: a.matmul(w, transpose_b=True), mode="graph")
dense = dvm.jit(lambda a, b, c: (a @ b + c).relu(), mode="graph")


@pytest.fixture(autouse=True)
def default_threads():
    yield
    _core.set_threads(0)


def small_integers(*shape):
    """Their products are exact in any order."""
    return RNG.integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 3, 20, 700])
def test_a_weight_changed_behind_our_back_is_seen(rows):
    x, w = small_integers(rows, 70), small_integers(70, 90)
    a, b = dvm.tensor(x), dvm.tensor(w)
    for step in range(3):
        w[step] += 1
        w[:, 5 * step] *= -1
        assert np.array_equal(product(a, b).numpy(), x @ w)
        assert np.array_equal((a @ b).numpy(), x @ w)


def test_a_transposed_weight_changed_behind_our_back_is_seen():
    x, w = small_integers(2, 70), small_integers(90, 70)
    a, t = dvm.tensor(x), dvm.tensor(w)
    for step in range(3):
        w[step] += 1
        assert np.array_equal(linear(a, t).numpy(), x @ w.T)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 40, 300), (2, 513, 65), (5, 600, 100), (6, 16, 33), (9, 33, 31), (600, 70, 90)], ids=str)
def test_how_the_right_side_lies_and_the_number_of_workers_change_no_bit(shape, dtype):
    m, k, n = shape
    x, w = (RNG.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n)))
    a, b, t = (dvm.tensor(v).astype(dtype) for v in (x, w, np.ascontiguousarray(w.T)))
    _core.set_threads(1)
    want = product(a, b).astype("float32").numpy()
    reference = a.astype("float64").numpy() @ b.astype("float64").numpy()
    eps = {"float32": 2.0**-23, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    assert np.all(np.abs(want - reference) <= eps * np.abs(reference) + 1e-6 * k)
    for threads in (1, 2, 3):
        _core.set_threads(threads)
        assert np.array_equal(linear(a, t).astype("float32").numpy(), want)
        assert np.array_equal(product(a, b).astype("float32").numpy(), want)
        bias = dvm.tensor(np.zeros(n, np.float32)).astype(dtype)
        assert np.array_equal(dense(a, b, bias).astype("float32").numpy(), np.maximum(want, 0))


@pytest.mark.parametrize("k", [1, 7, 8, 9, 16, 31, 32, 45, 512, 515, 1024])
def test_few_rows_are_multiplied_alike_by_columns_that_lie_along_k(k):
    for m in range(1, 10):
        x = RNG.standard_normal((m, k), dtype=np.float32)
        for n in (2, 7, 8, 15, 16, 17, 24, 31, 33):
            w = RNG.standard_normal((n, k), dtype=np.float32)
            want = product(dvm.tensor(x), dvm.tensor(np.ascontiguousarray(w.T))).numpy()
            assert np.array_equal(linear(dvm.tensor(x), dvm.tensor(w)).numpy(), want), (m, n)
            np.testing.assert_allclose(want, x.astype(np.float64) @ w.T.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", _core.simd_levels())
def test_few_rows_are_multiplied_alike_at_every_simd_level(level):
    run_at(level, "from test_products import test_few_rows_are_multiplied_alike_by_columns_that_lie_along_k as check\n"
                  "for k in (1, 4, 6, 9, 13, 16, 28, 31): check(k)")


@pytest.mark.parametrize("n", [1, 5, 40])
def test_batches_broadcast_and_each_is_the_product_of_its_matrices(n):
    x, w = small_integers(6, 1, 7, 9), small_integers(4, 9, n)
    assert np.array_equal(product(dvm.tensor(x), dvm.tensor(w)).numpy(), x @ w)


def unrolled(x, w, cut=None):
    """Products with one transposed right side; `cut` reads the state after that step, so that the rest is another program."""
    h = x
    for step in range(4):
        h = h.matmul(w, transpose_b=True) * 0.5 + x
        if step == cut:
            h.numpy()
    return h.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 2, 8, 40, 200])
def test_a_right_side_packed_once_for_many_products_changes_no_bit(rows, dtype):
    x, w = (dvm.tensor(RNG.standard_normal(s, dtype=np.float32)).astype(dtype) for s in ((rows, 70), (70, 70)))
    for right in (w, w * 0.25):  # an input; made by the program itself
        for threads in (1, 2):
            _core.set_threads(threads)
            want = unrolled(x, right)
            for cut in range(4):
                assert np.array_equal(unrolled(x, right, cut), want), (threads, cut)


def test_right_sides_of_one_array_that_lie_elsewhere_are_told_apart():
    x, w = small_integers(20, 40), small_integers(90, 40)

    @dvm.jit(mode="graph")
    def both(x, w):
        return [x.matmul(w[i:i + 30], transpose_b=True) for i in (0, 30, 60, 0)]
    got = both(dvm.tensor(x), dvm.tensor(w))
    for part, i in zip(got, (0, 30, 60, 0), strict=True):
        assert np.array_equal(part.numpy(), x @ w[i:i + 30].T)


@pytest.mark.parametrize("n", [2, 15, 31, 33, 64, 95, 513, 640])
@pytest.mark.parametrize("k", [1, 2, 7, 19, 64, 65])
def test_many_rows_of_short_bfloat16_sums_are_rounded_once(k, n):
    x, w = small_integers(1100, k), small_integers(k, n)
    x[:, 0] *= 32  # sums of more than eight bits
    x[3, 0], x[1099, 0], w[0, n - 1], w[0, 0] = np.inf, np.nan, 255, -0.0  # all are bfloat16
    with np.errstate(invalid="ignore"):
        exact = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)  # exact in any order
    want = dvm.convert_from_bf16(dvm.convert_to_bf16(exact))
    a, b, t = (dvm.tensor(v, dvm.bfloat16) for v in (x, w, np.ascontiguousarray(w.T)))
    for right, call in ((b, product), (t, linear), (dvm.constant(t), linear)):
        assert np.array_equal(call(a, right).numpy(), want, equal_nan=True)
