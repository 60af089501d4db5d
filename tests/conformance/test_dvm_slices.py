"""Parts of tensors: slices in the load and in the graph, views by strides, strided stores, concat and split."""

import numpy as np
import pytest
from dvm_kit import FLOATS, make, one
from numpy.lib.stride_tricks import as_strided

from dvm_core.tester import Tester

DTYPES = [*FLOATS, "bfloat16", "int32", "int64", "bool"]


def view(array, shape, stride, offset=0):
    flat = array.reshape(-1)[offset:]
    return as_strided(flat, shape, [step * array.itemsize for step in stride])


# ---- slices --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, start, size",
    [((100,), [7], [50]), ((32, 100), [3, 10], [20, 33]), ((8, 9, 33), [1, 0, 5], [6, 9, 17]), ((8, 9, 33), [7, 8, 32], [1, 1, 1])],
    ids=str,
)
def test_slice_in_the_load(shape, start, size, dtype):
    x, w = make(shape, dtype, -9, 9)
    t = Tester("vector")
    part = t.part(t.slice_load(list(shape), start, size, dtype), x)
    t.store_expect(t.copy(part), w[tuple(slice(a, a + n) for a, n in zip(start, size, strict=True))])
    t.run_check()


@pytest.mark.parametrize(
    "shape, start, end",
    [
        ((100,), [10], [60]),
        ((100,), [-60], [-10]),
        ((32, 100), [3, -20], [1000, -3]),
        ((8, 9, 33), [-3, 0, 4], [8, -1, 20]),
    ],
    ids=str,
)
def test_strided_slice_wraps_and_clamps(shape, start, end):
    x, w = make(shape)
    t = Tester("vector")
    part = t.part(t.stridedslice_load(list(shape), start, end, [1] * len(shape), "float32"), x)
    t.store_expect(t.exp(part), np.exp(w[tuple(slice(a, b) for a, b in zip(start, end, strict=True))]))
    t.run_check()


def test_slices_in_the_graph():
    x, w = make((6, 40, 33))
    one(
        "split",
        lambda t, a: [
            t.slice(t.exp(a), [1, 3, 5], [4, 30, 20]),
            t.slice_dim(a, 1, 2, -1),
            t.slice_dim(t.slice_dim(a, -1, -20, 100), 0, 1, 5),
            t.mul(t.slice_dim(t.abs(a), 1, 0, 20), t.slice_dim(a, 1, 20, 40)),
        ],
        [np.exp(w)[1:5, 3:33, 5:25], w[:, 2:-1], w[1:5, :, -20:], np.abs(w)[:, :20] * w[:, 20:]],
        x,
    )


def test_a_bound_given_at_the_call():
    x, w = make((9, 33))
    t = Tester("split:dyn")
    begin, end = t.scalar(), t.scalar()
    store = t.store(t.mul(t.slice_dim(t.load(x), 1, begin, end), 2.0))
    for a, b in ((0, 33), (3, 10), (-5, 33), (2, -2)):
        t.input(begin, a), t.input(end, b)
        t.run()
        np.testing.assert_allclose(t.output(store), 2 * w[:, a:b], rtol=1e-6)


def test_diamonds_of_slices():
    # two slices of one source that meet again, with work before, between and behind
    x, w = make((8, 64))
    one(
        "split",
        lambda t, a: t.concat([t.exp(t.slice_dim(a, 1, 32, 64)), t.mul(t.slice_dim(a, 1, 0, 32), -1.0)], 1),
        np.concatenate([np.exp(w[:, 32:]), -w[:, :32]], 1),
        x,
    )
    one("split", lambda t, a: t.add(t.slice_dim(t.exp(a), 0, 0, 4), t.slice_dim(t.exp(a), 0, 4, 8)), np.exp(w)[:4] + np.exp(w)[4:], x)


# ---- views --------------------------------------------------------------------------------

VIEWS = [
    ((30, 40), (40, 30), (1, 40), 0),
    ((8, 30, 512), (30, 8, 512), (512, 30 * 512, 1), 0),
    ((8, 6, 20, 64), (8, 20, 6, 64), (6 * 20 * 64, 64, 20 * 64, 1), 0),
    ((1024, 512), (512, 1024), (1, 512), 0),
    ((16, 33), (16, 7, 33), (33, 0, 1), 0),
    ((33,), (20, 33), (0, 1), 0),
    ((64, 50), (20, 10), (100, 3), 55),
    ((4, 5, 6, 7, 8), (5, 4, 7, 6, 8), (336, 1680, 8, 56, 1), 0),
    ((3, 4, 5, 6, 2, 3), (3, 2, 5, 4, 3, 6), (720, 3, 36, 180, 1, 6), 0),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("base, shape, stride, offset", VIEWS, ids=str)
def test_view_load(base, shape, stride, offset, dtype):
    x, w = make(base, dtype, -9, 9)
    t = Tester("vector")
    t.store_expect(t.copy(t.part(t.view_load(shape, stride, dtype), x, offset)), view(w, shape, stride, offset))
    t.run_check()


@pytest.mark.parametrize("step", [2, 3, 4, 5, 6, 7, 8, 10])
def test_every_nth_element(step):
    x, w = make((64, 129 * step))
    t = Tester("vector")
    a = t.part(t.view_load((64, 129), (129 * step, step), "float32"), x)
    t.store_expect(t.add(a, 1.0), w[:, ::step] + 1)
    t.tile(1, 1, 5)
    t.run_check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_second_element_of_a_wide_table(dtype):
    # (512, 20000) for the published (4096, 20000)
    x, w = make((512, 20000), dtype)
    t = Tester("vector")
    t.store_expect(t.abs(t.part(t.view_load((512, 10000), (20000, 2), dtype), x)), np.abs(w[:, ::2]))
    t.run_check()


def test_offsets_split_one_array():
    x, w = make((16, 96))
    t = Tester("vector")
    parts = [t.part(t.view_load((16, 32), (96, 1), "float32"), x, offset) for offset in (0, 32, 64)]
    t.store_expect(t.add(t.mul(parts[0], parts[1]), parts[2]), w[:, :32] * w[:, 32:64] + w[:, 64:])
    t.run_check()


def test_an_offset_in_the_declaration():
    x, w = make((16, 96))
    t = Tester("vector")
    t.store_expect(t.copy(t.part(t.view_load((16, 32), (96, 1), 32, "float32"), x)), w[:, 32:64])
    t.run_check()


def test_a_broadcast_after_a_view():
    x, w = make((40, 64))
    t = Tester("vector")
    a = t.part(t.view_load((64, 1), (1, 1), "float32"), x)
    t.store_expect(t.mul(t.broadcast(a, [64, 33]), 2.0), np.broadcast_to(2 * w[0][:, None], (64, 33)))
    t.run_check()


# ---- strided stores --------------------------------------------------------------------------------

STORES = [
    ((16, 33), (66, 1), (16, 66)),
    ((16, 33), (99, 3), (16, 99)),
    ((7, 8, 33), (16 * 40, 40, 1), (7, 16, 40)),
    ((4, 5, 6, 7), (5 * 12 * 7, 12 * 7, 14, 1), (4, 5, 12, 7)),
    ((2, 3, 4, 5, 6), (3 * 4 * 5 * 8, 4 * 5 * 8, 40, 8, 1), (2, 3, 4, 5, 8)),
    ((2, 2, 3, 2, 4, 3), (2 * 3 * 2 * 4 * 6, 3 * 2 * 4 * 6, 2 * 4 * 6, 24, 6, 2), (2, 2, 3, 2, 4, 6)),
    ((2000, 4000), (1, 2000), (4000, 2000)),  # transposed
]


@pytest.mark.parametrize("shape, stride, base", STORES, ids=str)
def test_view_store_into_a_larger_array(shape, stride, base):
    x, w = make(shape)
    expected = np.zeros(base)
    view(expected, shape, stride)[...] = np.exp(w)
    t = Tester("vector")
    t.view_store_expect(t.exp(t.load(x)), stride, expected)
    t.run_check()


def test_a_diamond_of_extents_that_change():
    t = Tester("split:dyn")
    a, half, end = t.load([-1, -1], "float32"), t.scalar(), t.scalar()
    e = t.exp(a)
    store = t.store(t.add(t.slice_dim(e, 1, 0, half), t.slice_dim(e, 1, half, end)))
    for shape in ((3, 8), (65, 130), (1, 2)):
        x, w = make(shape)
        t.input(a, x), t.input(half, shape[1] // 2), t.input(end, shape[1])
        t.run()
        left, right = np.split(np.exp(w), 2, 1)
        np.testing.assert_allclose(t.output(store), left + right, rtol=1e-5)


def test_what_lies_between_keeps_its_content_unless_it_is_cleared():
    x, w = make((10,))
    t = Tester("vector")
    kept, cleared = t.view_store(t.abs(t.load(x)), [3]), t.view_store(t.abs(t.load(x)), [3])
    a, b = np.full(30, 7, np.float32), np.full(30, 7, np.float32)
    t.set_output(kept, a), t.set_output(cleared, b)
    t.clear_store_memory(cleared)
    t.run()
    between = np.arange(30) % 3 != 0
    assert (a[between] == 7).all() and not b[between].any()
    np.testing.assert_array_equal(a[::3], np.abs(x))
    np.testing.assert_array_equal(b[::3], np.abs(x))


def test_a_sum_into_a_strided_output():
    x, w = make((3000, 33), low=-1, high=1)
    expected = np.zeros(66)
    expected[::2] = w.sum(0)
    t = Tester("vector")
    t.view_store_expect(t.sum(t.load(x), [0]), [2], expected, eps=1e-4)
    t.run_check()


# ---- concat and split --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_concat(count, axis, dtype):
    pairs = [make([5 + 3 * i if j == axis % 3 else n for j, n in enumerate((4, 6, 9))], dtype, -9, 9, seed=i) for i in range(count)]
    one(
        "split",
        lambda t, *parts: t.concat(list(parts), axis),
        np.concatenate([w for _, w in pairs], axis),
        *[x for x, _ in pairs],
        dtypes=[dtype],
    )


def test_concat_of_many_inputs_one_of_them_nearly_everything():
    rows = [1] * 69 + [6900]
    pairs = [make((n, 17), seed=i) for i, n in enumerate(rows)]
    expected = np.concatenate([w for _, w in pairs])
    one("split", lambda t, *parts: t.concat(list(parts), 0), expected, *[x for x, _ in pairs])
    t = Tester("split")
    t.expect(t.concat_store([t.load(x) for x, _ in pairs], 0), expected)
    t.run_check()


@pytest.mark.parametrize("rows", [(1, 5000), (5000, 1), (0, 7), (1, 1)])
def test_a_small_input_beside_a_large_one_is_not_forgotten(rows):
    pairs = [make((n, 64), low=1, high=2, seed=n) for n in rows]
    one("split", lambda t, a, b: t.concat([t.exp(a), b], 0), np.concatenate([np.exp(pairs[0][1]), pairs[1][1]]), *[x for x, _ in pairs])


def test_concat_with_what_comes_before_and_behind():
    (x, w), (y, v), (b, u) = make((8, 30)), make((8, 12)), make((1, 42))
    both = np.concatenate([np.exp(w), v], 1)
    one(
        "split",
        lambda t, p, q, r: [
            t.add(t.concat([t.exp(p), q], 1), r),
            t.sum(t.concat([t.exp(p), q], 1), [1]),
            t.reshape(t.concat([t.exp(p), q], 1), [42, 8]),
            t.concat([p, p, t.slice_dim(p, 1, 0, 3)], 1),
        ],
        [both + u, both.sum(1), both.reshape(42, 8), np.concatenate([w, w, w[:, :3]], 1)],
        x,
        y,
        b,
        eps=1e-4,
    )


def test_concat_of_shapes_that_change():
    t = Tester("split:dyn")
    a, b = t.load([-1, 5], "float32"), t.load([-1, 5], "float32")
    store = t.store(t.concat([a, t.mul(b, 2.0)], 0))
    for rows in ((3, 4), (1, 100), (77, 1)):
        (x, w), (y, v) = make((rows[0], 5)), make((rows[1], 5), seed=1)
        t.input(a, x), t.input(b, y)
        t.run()
        np.testing.assert_array_equal(t.output(store), np.concatenate([w, 2 * v]))


@pytest.mark.parametrize("axis, extent, size, count", [(0, 12, 4, 3), (1, 35, 10, 4), (-1, 33, 32, 2), (1, 7, 7, 1)])
def test_split(axis, extent, size, count):
    shape = [6, 5, 4]
    shape[axis] = extent
    x, w = make(shape)
    one("split", lambda t, a: t.split(a, axis, size, count), np.split(w, range(size, extent, size), axis), x)


def test_a_tree_of_splits_with_work_between():
    x, w = make((8, 64))
    left, right = np.exp(w[:, :32]), w[:, 32:]

    def body(t, a):
        p, q = t.split(a, 1, 32, 2)
        p1, p2 = t.split(t.exp(p), 1, 16, 2)
        q1, q2 = t.split(q, 0, 4, 2)
        return [t.mul(p1, p2), t.reshape(t.add(q1, q2), [2, 64])]

    one("split", body, [left[:, :16] * left[:, 16:], (right[:4] + right[4:]).reshape(2, 64)], x)
