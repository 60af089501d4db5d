"""Gradient rules on float16 and bfloat16, against float64 differences at the same (rounded) points."""
from __future__ import annotations

import numpy as np
import pytest
from gradient_reference import differences, weights
from halves import EPS, HALVES, bits_of, rounded, widen
from test_grad import CASES, Recorded

from dvm_core.frontends.emit import BF16, F16, F32
from dvm_core.frontends.plan import replay

HALF = {"float16": F16, "bfloat16": BF16}
# These name float32 themselves, or look at points where a rounded operand is another case.
SKIPPED = {"select of a constant", "cast to an integer and back has none"}


def narrow(array, dtype):
    return np.ascontiguousarray(bits_of(rounded(array, dtype), dtype)).reshape(array.shape)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", sorted(set(CASES) - SKIPPED))
def test_gradients_of_halves(name, dtype):
    """Every step of a rule rounds to the dtype: a handful of half ulps of the largest gradient."""
    record, reference, arrays = CASES[name]
    exact = [widen(narrow(a, dtype), dtype) if a.dtype == np.float32 else a for a in arrays]
    tape = Recorded()
    memory = [narrow(a, dtype) if a.dtype == np.float32 else a for a in arrays]
    values = [tape.input(a, False) if a.dtype != np.float32 else
              tape.add_input(m.ctypes.data, m.shape, HALF[dtype], None, m, needs_grad=True) for a, m in zip(arrays, memory, strict=True)]
    out = record(tape, *values)
    assert tape.dtype(out) == HALF[dtype]
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    seed = narrow(weights(tape.shape(out)), dtype)
    ids = replay(tape.graph, plan, [seed], tape.imms, lambda step: None,
                 lambda s: tape.graph.input(s.ctypes.data, s.shape, HALF[dtype], None, s))
    tape.graph.flush([i for i in ids if i >= 0])
    assert all(tape.graph.dtype(i) == HALF[dtype] for i in ids if i >= 0)
    for i, want in zip(ids, differences(reference, exact), strict=True):
        found = np.zeros_like(want) if i < 0 else widen(np.array(tape.graph.array(i)).view(np.uint16), dtype).reshape(want.shape)
        np.testing.assert_allclose(found, want, rtol=6 * EPS[dtype], atol=6 * EPS[dtype] * np.abs(want).max(initial=0) + 1e-6)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("extent", [1000, 70000])
def test_the_gradient_of_a_long_mean_neither_vanishes_nor_drifts(extent, dtype):
    """float16 holds no 70,000 and bfloat16 no 1,000: the share is computed in float32."""
    memory = narrow(np.ones(extent, np.float32), dtype)
    tape = Recorded()
    out = tape.mean(tape.add_input(memory.ctypes.data, (extent,), HALF[dtype], None, memory, needs_grad=True), (0,))
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    seed = narrow(np.array(512.0), dtype)
    (i,) = replay(tape.graph, plan, [seed], tape.imms, lambda step: None,
                  lambda s: tape.graph.input(s.ctypes.data, (), HALF[dtype], None, s))
    tape.graph.flush([i])
    found = widen(np.array(tape.graph.array(i)).view(np.uint16), dtype)
    assert (found == rounded(512.0 / extent, dtype)).all()


def test_a_cast_carries_the_gradient_in_the_wider_dtype():
    x = np.full(3, 1 / 3, np.float32)
    tape = Recorded()
    out = tape.cast(tape.cast(tape.input(x, True), BF16), F32)
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    (found,) = tape.replay(plan, [np.full(3, 1 + 2.0 ** -12, np.float32)])
    assert found.dtype == np.float32 and (found == 1).all()  # the seed went through bfloat16
