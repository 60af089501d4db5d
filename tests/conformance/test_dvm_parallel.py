"""Parallel kernels: several independent graphs in one, the same bits each time."""

import numpy as np
import pytest
from dvm_kit import make

import dvm_core as dvm
from dvm_core import devices
from dvm_core.tester import Tester


@pytest.mark.parametrize("spelling", ["parallel_add", "p_next"])
def test_independent_graphs_in_one_kernel(spelling):
    pairs = [make((n, 33), seed=n) for n in (1, 100, 7, 3000)]
    t = Tester("parallel")
    for number, (x, w) in enumerate(pairs):
        if number:
            getattr(t, spelling)(*(["vector", dvm.F_DYN, 2] if spelling == "parallel_add" else []))
        a = t.load(x)
        t.store_expect(t.mul(t.exp(a), number + 1.0), np.exp(w) * (number + 1))
        t.store_expect(t.sum(a, [0]), w.sum(0), 1e-4)
    t.run_check()


def test_parallel_parts_give_the_same_bits_each_time():
    x, _ = make((999, 65))
    y, _ = make((65, 999))
    found = set()
    # A faithful device adds in another order each time unless it is told not to: that is what it is there to show.
    for deterministic in (True, True, True) if devices.faithful() else (True, False, True):
        t = Tester("parallel")
        t.set_deterministic(deterministic)
        stores = [t.store(t.sum(t.exp(t.load(x)), [0]))]
        t.parallel_add(dvm.K_VEC)
        stores.append(t.store(t.sum(t.exp(t.load(y)), [1])))
        t.run()
        found.add(b"".join(t.output(store).tobytes() for store in stores))
    assert len(found) == 1
