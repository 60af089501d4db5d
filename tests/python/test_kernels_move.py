"""Strided copies, fill and matrix products, at every SIMD level."""
import numpy as np
import pytest
from kernel_calls import CODE, LEVELS, SIZES, call, same_bits

from dvm_core import _core

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

VIEWS = {  # name: view of a (rows, cols) kind cut from a big array
    "contiguous": lambda x: x[:37, :53], "transposed": lambda x: x[:53, :37].T, "every other column": lambda x: x[:20, ::2],
    "backward": lambda x: x[10::-1, 30::-3],
    "row broadcast": lambda x: np.broadcast_to(x[3], (9, x.shape[1])),
    "column broadcast": lambda x: np.broadcast_to(x[:40, :1], (40, 23)),
    "one element": lambda x: np.broadcast_to(x[5, 5], (7, 31)), "one column": lambda x: x[:, 3:4],
    "one row": lambda x: x[3:4, ::5], "empty": lambda x: x[:0, :5],
    "transposed and backward": lambda x: x[40::-1, :18].T, "big transpose": lambda x: x.T,
    **{f"runs of {n}": lambda x, n=n: x[::2, 90 - n:] for n in (4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65)},
    "runs backward": lambda x: x[20::-1, 5:38],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "float16"])
@pytest.mark.parametrize("name", VIEWS)
def test_copy_from_and_to_strided_memory(name, dtype):
    base = (np.arange(70 * 90) % 251).astype(dtype).reshape(70, 90)
    view = VIEWS[name](base)
    rows, cols = view.shape
    for level in LEVELS:
        packed = np.zeros(view.shape, dtype)
        call(level, "copy_in", 0, dtype, packed, view, rows, cols, *view.strides)
        assert np.array_equal(packed, view), level
        if "broadcast" in name or name == "one element":
            continue
        target = np.zeros_like(base)
        target_view, want = VIEWS[name](target), np.zeros_like(base)
        call(level, "copy_out", 0, dtype, target_view, packed, rows, cols, *target_view.strides)
        VIEWS[name](want)[...] = view
        assert np.array_equal(target, want), level


def test_fill():
    for level in LEVELS:
        for dtype in ("uint8", "float16", "int32", "float64"):
            for n in SIZES:
                x = np.zeros(n + 1, dtype)
                call(level, "fill", 0, dtype, x, np.full(1, 3, dtype), n)
                assert np.all(x[:n] == 3) and x[n] == 0


# ---- matrix product ------------------------------------------------------------


def gemm(level, a, b, ldc=None, rounded=False):
    """With b packed and with b as it lies: the same bits. rounded: the result is as wide as the operands."""
    (m, k), n = a.shape, b.shape[1]
    dtype = "bfloat16" if a.dtype == np.uint16 else a.dtype.name
    strides = [s // a.itemsize for s in (*a.strides, *b.strides)]

    def kernel(name, *args):
        return _core.selftest_kernel(level, name, 0, CODE[dtype], *args)
    packed = np.full(kernel("packed_b_bytes", k, n) // 4 + 16, np.nan, np.float32)
    kernel("pack_b", packed, b, k, n, *strides[2:])
    results = []
    for panels in (packed, None):
        c = np.full((m, ldc or n), 99, a.dtype if rounded else np.float32)
        kernel("gemm", c, a, panels, b, m, n, k, *strides, ldc or n)
        assert np.all(c[:, n:] == 99), "wrote beyond the columns of the result"
        results.append(c[:, :n])
    assert same_bits(*results), (level, dtype, "packing changed the bits")
    return results[0]


def matrix(rows, cols, layout="rows", seed=0):
    shape = {"rows": (rows, cols), "transposed": (cols, rows), "strided": (rows, 2 * cols)}[layout]
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return x.T if layout == "transposed" else x[:, ::2] if layout == "strided" else x


SHAPES = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 7, 33), (1, 600, 300), (2, 5, 31), (5, 513, 64), (6, 64, 65), (7, 100, 32),
          (12, 31, 96), (13, 512, 97), (15, 1025, 33), (33, 70, 130), (100, 64, 1), (169, 40, 50), (200, 530, 40),
          (49, 520, 150), (170, 33, 131)]


@pytest.mark.parametrize("layout", ["rows", "transposed", "strided"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gemm(shape, layout):
    m, k, n = shape
    a, b = matrix(m, k, layout, 1), matrix(k, n, layout, 2)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (k + 2) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    for level in LEVELS:
        got = gemm(level, a, b, ldc=n + 3)
        assert np.all(np.abs(got - exact) <= bound), level
        assert same_bits(got, gemm(level, np.ascontiguousarray(a), np.ascontiguousarray(b))), (level, "strides changed the bits")


@pytest.mark.skipif("avx512" not in LEVELS, reason="needs two levels with fused multiply-add")
def test_gemm_has_the_same_bits_with_avx2_and_avx512():
    for m, k, n in SHAPES:
        a, b = matrix(m, k), matrix(k, n)
        assert same_bits(gemm("avx2", a, b), gemm("avx512", a, b)), (m, k, n)


def test_gemm_element_does_not_depend_on_the_rows_and_columns_around_it():
    a, b = matrix(190, 1100), matrix(1100, 100)
    for level in LEVELS:
        whole = gemm(level, a, b)
        for begin, end in ((0, 1), (1, 3), (3, 9), (4, 16), (17, 50), (100, 190), (189, 190)):
            assert same_bits(gemm(level, a[begin:end], b), whole[begin:end]), (level, begin, end)
        for begin, end in ((0, 32), (32, 100), (96, 100), (64, 65)):
            assert same_bits(gemm(level, a, b[:, begin:end]), whole[:, begin:end]), (level, begin, end)


def test_gemm_order_is_one_sum_over_k_in_blocks_of_512():
    """Emulated in extended precision, where the product of two floats is exact: each step rounds once, like a fused multiply-add."""
    a, b = matrix(3, 1100), matrix(1100, 5)
    total = None
    for begin in range(0, 1100, 512):
        block = np.zeros((3, 5), np.float32)
        for i in range(begin, min(begin + 512, 1100)):
            block = (block.astype(np.longdouble) + np.outer(a[:, i].astype(np.longdouble), b[i].astype(np.longdouble))).astype(np.float32)
        total = block if total is None else total + block
    for level in LEVELS:
        if level != "baseline":
            assert same_bits(gemm(level, a, b), total), level


def with_zeros(kind, m, k):
    """A left side whose rows begin or end with zeros of both signs."""
    random = np.random.default_rng(m)
    a, i, j = matrix(m, k), np.arange(m)[:, None], np.arange(k)
    zero = {"end": j > i * k // m, "begin": j < i * k // m, "both": np.abs(j - i * k // m) > k // 8,
            "blocks": (j // 256 + i // 32) % 3 > 0, "rows": (i % 40 < 30) & (j >= 0)}[kind]
    return np.where(zero, np.where(random.random((m, k)) < 0.5, np.float32(0), np.float32(-0.0)), a)


@pytest.mark.parametrize("layout", ["rows", "transposed"])
@pytest.mark.parametrize("kind", ["end", "begin", "both", "blocks", "rows"])
def test_gemm_leaves_zeros_out_without_a_trace(kind, layout):
    """A column of NaN at the end: beside it nothing is left out."""
    for m, k, n in ((14, 60, 31), (180, 700, 40), (300, 1100, 66)):
        a, b = with_zeros(kind, m, k), matrix(k, n, layout, 2)
        a[::5] *= np.float32(1e-30)  # sums that underflow, also to -0
        b[:, ::3] *= np.float32(1e-30)
        b[:, 3:9] = -np.abs(b[:, 3:9])
        if layout == "transposed":
            a = np.ascontiguousarray(a.T).T
        whole = np.concatenate([b, np.full((k, 1), np.nan, np.float32)], axis=1)
        for level in LEVELS:
            assert same_bits(gemm(level, a, b), gemm(level, a, whole)[:, :n]), (level, m, k, n)


def test_gemm_of_few_rows_and_columns_along_k():
    for m in (1, 2, 3, 6, 7):
        for n in (1, 8, 15, 16, 17, 24, 31, 33, 40, 57, 63):
            for k in (5, 16, 530):
                a, b = matrix(m, k, seed=n), matrix(k, n, "transposed", 2)
                for level in LEVELS:
                    assert same_bits(gemm(level, a, b, ldc=n + 3), gemm(level, a, np.ascontiguousarray(b))), (level, m, k, n)


def test_gemm_passes_nan_and_infinity_on():
    a, b = np.ones((4, 40), np.float32), np.ones((40, 40), np.float32)
    a[1, 3], a[2, 5], b[0, 7] = np.nan, np.inf, -np.inf
    for level in LEVELS:
        got = gemm(level, a, b)
        assert np.isnan(got[1]).all() and np.isnan(got[2, 7]) and got[0, 7] == -np.inf and np.all(np.delete(got[2], 7) == np.inf)


def halves(x, dtype):
    """As that dtype (bfloat16 as uint16, cut off), in the same memory layout."""
    if dtype == "float16":
        return x.astype(np.float16, order="K")
    return (x.astype(np.float32, order="K").view(np.uint32) >> 16).astype(np.uint16)


def halves_nearest(x, dtype):
    if dtype == "float16":
        return x.astype(np.float16)
    u = x.view(np.uint32).astype(np.uint64)
    return np.where(np.isnan(x), 0x7fc0, (u + 0x7fff + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def widened(x):
    return x.astype(np.float32) if x.dtype == np.float16 else (x.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["rows", "transposed", "strided"])
def test_gemm_of_halves_sums_in_float32(layout, dtype):
    """The bits of the float32 product of the widened operands, at every level: products of halves are exact in float32."""
    for m, k, n in SHAPES:
        a, b = halves(matrix(m, k, layout, 1), dtype), halves(matrix(k, n, layout, 2), dtype)
        want = gemm("avx512" if "avx512" in LEVELS else LEVELS[0], widened(a).copy(), widened(b).copy())
        for level in LEVELS:
            assert same_bits(gemm(level, a, b, ldc=n + 3), want), (level, m, k, n)
            half = gemm(level, a, b, ldc=n + 3, rounded=True)
            assert same_bits(widened(half), widened(halves_nearest(want, dtype))), (level, m, k, n)


def test_gemm_of_bfloat16_takes_denormals_for_zero():
    """As the processor's instruction does, whether it is there or not: operands, products and sums."""
    tiny, least = np.uint16(0x0080), np.uint16(0x0001)  # the smallest normal number and the smallest denormal
    for first, second, want in ((least, 0x7f00, 0.0), (tiny, 0x3f80, 2.0**-126), (tiny, 0x3f00, 0.0), (0x0090, 0x3f80, 1.125 * 2.0**-126)):
        for k in (1, 2, 3):
            a, b = np.zeros((2, k), np.uint16), np.zeros((k, 40), np.uint16)
            a[:, -1], b[-1] = first, second
            for level in LEVELS:
                assert np.all(gemm(level, a, b) == np.float32(want)), (level, first, second, k)


def test_gemm_of_bfloat16_has_the_same_bits_at_every_level_for_awkward_values():
    rng = np.random.default_rng(5)
    # Ordinary numbers, denormals, numbers with denormal products, overflow.
    for low, high in ((0x3f00, 0x4080), (0x0000, 0x0200), (0x1f00, 0x2100), (0x7e00, 0x7fff)):
        for m, k, n in ((3, 61, 40), (15, 130, 33), (1, 9, 70)):
            a, b = ((rng.integers(low, high, s) | rng.integers(0, 2, s) << 15).astype(np.uint16) for s in ((m, k), (k, n)))
            for rounded in (False, True):
                got = [gemm(level, a, b, rounded=rounded) for level in LEVELS if level != "baseline"]
                assert all(same_bits(x, got[0]) for x in got), (low, m, k, n)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_generic_matrix_product(dtype):
    rng = np.random.default_rng(0)
    for m, k, n in ((0, 2, 3), (2, 0, 3), (1, 1, 1), (5, 17, 9), (20, 33, 40)):
        for transpose in (False, True):
            a, b = rng.integers(-50, 50, (m, k)).astype(dtype), rng.integers(-50, 50, (k, n)).astype(dtype)
            if transpose:
                a, b = np.asfortranarray(a), np.asfortranarray(b)
            item = a.itemsize
            for level in LEVELS:
                c = np.full((m, n + 1), 9, dtype)
                strides = [s // item for s in (*a.strides, *b.strides)]
                call(level, "gemm_generic", 0, dtype, c, a, b, m, n, k, *strides, n + 1)
                assert np.array_equal(c[:, :n], a @ b) and np.all(c[:, n] == 9)


@pytest.mark.parametrize("k", [512, 530])
@pytest.mark.parametrize("zeros", [16, 20, 31])
@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf])
def test_gemm_of_a_turned_left_side_that_begins_with_a_few_zeros(zeros, k, spoilt):
    for level in LEVELS:
        for m, n in ((16, 40), (30, 33), (170, 16)):
            a, b = matrix(m, k), matrix(k, n, seed=2)
            a[:, :zeros] = 0
            if spoilt is not None:
                b[3, 5] = spoilt
            with np.errstate(invalid="ignore"):
                want = gemm(level, a, b)
                gemm(level, np.full((m, k), np.nan, np.float32), b)  # what an earlier product leaves behind
                got = gemm(level, np.asfortranarray(a), b)
            assert same_bits(got, want), (level, m, n)
            assert np.isnan(got[:, 5]).all() == (spoilt is not None)
