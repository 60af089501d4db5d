"""Extents that fill no tile, no vector and no core: the same numbers at every tile size."""

import numpy as np
import pytest
from dvm_kit import FLOATS, make, one

from dvm_core import _core
from dvm_core.tester import Tester


@pytest.fixture(params=[0, 1, 8, 100, 4096])
def tile_elements(request):
    _core.set_tile_elements(request.param)
    yield request.param
    _core.set_tile_elements(0)


@pytest.mark.parametrize("shape", [(127, 64), (127, 33), (8, 4080), (33, 4080), (1, 10001), (10001, 1), (3, 5, 7, 11)], ids=str)
def test_tails(shape, tile_elements):
    (x, w), (y, v) = make(shape), make(shape[-1:], seed=1)
    t = one(
        "vector",
        lambda t, a, b: [t.add(t.exp(a), b), t.max(a, [-1]), t.broadcast(b, list(shape))],
        [np.exp(w) + v, w.max(-1), np.broadcast_to(v, shape)],
        x,
        y,
    )
    assert t.program().areas


@pytest.mark.parametrize("start, end, num", [(0, 0, 32), (1, 1, 8), (0, 1, 16), (1, 1, 127)])
def test_tiles_by_hand_are_checked_and_change_nothing(start, end, num):
    x, w = make((127, 4080 // 16))
    t = Tester("vector")
    t.store_expect(t.mul(t.load(x), 3.0), 3 * w)
    t.tile(start, end, num)
    t.run_check()


@pytest.mark.parametrize("bad", [(1, 0, 3), (-1, 0, 3), (0, 0, 0), (0, 0, 2, -1), (0, 0, 1.5)])
def test_tiles_that_cannot_be(bad):
    t = Tester("vector")
    with pytest.raises(ValueError, match="axes count from 0 at the last"):
        t.tile(*bad)


def test_parts_of_one_kernel_with_domains_of_their_own():
    (x, w), (y, v), (z, u) = make((64, 33)), make((1000,)), make((2, 3, 4))
    t = Tester("split")
    a, b, c = t.load(x), t.load(y), t.load(z)
    t.store_expect(t.exp(a), np.exp(w))
    t.store_expect(t.abs(b), np.abs(v))
    t.store_expect(t.sum(c, [1]), u.sum(1))
    t.store_expect(t.sum(t.mul(b, b)), (v * v).sum(), 1e-4)
    t.run_check()


def test_the_largest_operand_rules_and_small_ones_follow():
    (x, w), (y, v), (z, u) = make((1, 65)), make((300, 1)), make((300, 65))
    one(
        "vector",
        lambda t, a, b, c: [t.add(t.mul(a, a), t.mul(t.abs(b), c)), t.mul(a, a), t.abs(b)],
        [w * w + np.abs(v) * u, w * w, np.abs(v)],
        x,
        y,
        z,
    )


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4)], ids=str)
def test_no_element_at_all(shape):
    x = np.zeros(shape, np.float32)
    t = one("vector", lambda t, a: t.exp(t.add(a, 1.0)), np.zeros(shape), x)
    assert t.das() == "vmain.idle() {}\n"


def test_a_scalar_tensor():
    x = np.asarray(2.0, np.float32)
    one("vector", lambda t, a: [t.exp(a), t.sum(a), t.broadcast(a, [3])], [np.exp(2.0), np.asarray(2.0), np.full(3, 2.0)], x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_unaligned_rows_next_to_aligned_ones(dtype):
    pairs = [make((129, n), dtype, seed=n) for n in (1, 7, 8, 15, 16, 17, 63, 64, 65)]
    t = Tester("split")
    for x, w in pairs:
        a = t.load(x, dtype)
        t.store_expect(t.mul(a, 2.0), 2 * w)
        t.store_expect(t.max(a, [1]), w.max(1))
    t.run_check()
