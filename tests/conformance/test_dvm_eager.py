"""Eager kernels: dead nodes, use after reset, long chains, products and vector parts side by side, tuning switches."""

import numpy as np
from dvm_kit import make, one

from dvm_core.tester import Tester


def test_a_dead_node_loads_nothing():
    (x, w), (y, _) = make((33, 65)), make((33, 65), seed=1)
    t = Tester("eager")
    a, b = t.load(x), t.load(y)
    t.mul(t.exp(b), a)
    t.store_expect(t.add(a, 1.0), w + 1)
    t.run_check()
    assert t.das().count("load.") == 1 and "Exp" not in t.das()


def test_a_kernel_is_used_again_after_reset():
    t = Tester("eager")
    for shape in ((3, 5), (64, 33), (3, 5)):
        x, w = make(shape)
        t.reset()
        assert not t.nodes and not t.stores
        t.store_expect(t.sum(t.exp(t.load(x)), [1]), np.exp(w).sum(1), 1e-4)
        t.run_check()


def test_two_hundred_sums():
    x, w = make((65, 33))

    def body(t, a):
        value = a
        for _ in range(200):
            value = t.add(value, a)
        return value

    one("eager", body, 201 * w, x, eps=1e-4)


def test_cube_and_vector_parts_side_by_side():
    (x, w), (y, v), (z, u) = make((32, 33), low=-1, high=1), make((33, 48), low=-1, high=1), make((1000, 7))
    one("eager", lambda t, p, q, r: [t.matmul(p, q, False, False), t.exp(r)], [w @ v, np.exp(u)], x, y, z, eps=1e-4)


def test_tuning_switches_change_nothing():
    (x, w), (y, v) = make((32, 33), low=-1, high=1), make((33, 48), low=-1, high=1)
    t = Tester("eager")
    t.set_lazy_tuning(True), t.set_online_tuning(True), t.set_cube_store_type(1), t.set_vf_fusion(2)
    store = t.expect(t.store(t.matmul(t.load(x), t.load(y), False, False)), w @ v, 1e-4)
    t.run_check()
    first = t.output(store).tobytes()
    for _ in range(3):
        t.run()
        assert t.output(store).tobytes() == first
