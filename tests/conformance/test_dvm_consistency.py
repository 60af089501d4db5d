"""The same kernel and shapes make the same code, whatever the object did before."""

import numpy as np
import pytest

import dvm_core as dvm


def softmax(t, x, y):
    e = t.exp(t.sub(x, t.max(x, [1], True)))
    t.store(t.div(e, t.sum(e, [1], True)))
    t.store(t.mul(y, 2.0))


def norm(t, x, y):
    mean = t.mul(t.sum(x, [0], True), 0.01)
    t.store(t.mul(t.sub(x, mean), y))


def cube(t, x, y):
    t.store(t.exp(t.matmul(x, y, False, True)))
    t.store(t.sum(x, [0]))


def parts(t, x, y):
    t.store(t.concat([t.exp(x), t.slice_dim(y, 1, 0, 1)], 1))
    t.store(t.permute(y, [1, 0]))
    t.store(t.element_any(x))


GRAPHS = [softmax, norm, cube, parts]


SHAPES = [(7, 33), (64, 64), (1, 1000), (300, 3), (7, 33), (2, 2), (0, 5)]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_kernel_that_saw_other_shapes_makes_the_code_of_a_fresh_one(graph):
    used = dvm.Kernel("split:dyn", "das")
    x, y = used.load([-1, -1], "float32"), used.load([-1, -1], "float32")
    graph(used, x, y)
    for shape in SHAPES:
        if graph is parts and 0 in shape:
            continue
        array = np.zeros(shape, np.float32)
        used.input(x, array), used.input(y, array)
        used.codegen()
        fresh = dvm.Kernel("split:dyn", "das")
        a, b = fresh.load([-1, -1], "float32"), fresh.load([-1, -1], "float32")
        graph(fresh, a, b)
        fresh.input(a, array), fresh.input(b, array)
        fresh.codegen()
        assert used.das() == fresh.das() and used.dump() == fresh.dump()


def test_an_eager_kernel_after_reset_makes_the_code_of_a_fresh_one():
    # 60 draws of the published millions
    rng = np.random.default_rng(11)
    used = dvm.Kernel("eager", "das")
    for _ in range(60):
        graph, shape = GRAPHS[rng.integers(len(GRAPHS))], [int(extent) for extent in rng.integers(1, 80, 2)]
        texts = []
        used.reset()
        for k in (used, dvm.Kernel("eager", "das")):
            graph(k, k.load(shape, "float32"), k.load(shape, "float32"))
            k.codegen()
            texts.append((k.das(), k.dump()))
        assert texts[0] == texts[1]


def test_two_kernels_of_the_same_lines_show_their_own_code():
    made = []
    for rows in (5, 500):
        k = dvm.Kernel("vector")
        k.store(k.exp(k.load([rows, 33], "float32")))
        made.append((k, k.das()))
    assert made[0][1] != made[1][1]
    assert [k.das() for k, _ in made] == [text for _, text in made]
