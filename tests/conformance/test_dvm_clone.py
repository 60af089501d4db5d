"""clone: another kernel's graph in this one, with everything given at a run standing on its own."""

import re

import numpy as np
import pytest
from dvm_kit import make

import dvm_core as dvm
from dvm_core.tester import Tester


def base(kind):
    k = dvm.Kernel(kind)
    x, y, s = k.load([-1, -1], "float32"), k.load([-1, -1], "float32"), k.scalar()
    body = k.matmul(x, y, False, True) if kind.startswith(("mix", "split")) else k.add(x, y)
    return k, x, y, s, k.store(k.sum(k.mul(body, s), [1]))


def expected(kind, w, v, s):
    return ((w @ v.T if kind.startswith(("mix", "split")) else w + v) * s).sum(1)


@pytest.mark.parametrize("kind", ["vector", "vector:dyn", "vector:spec", "mix", "split", "split:dyn"])
def test_a_clone_computes_the_same_on_its_own(kind):
    k, x, y, s, out = base(kind)
    (a, w), (b, v) = make((12, 33)), make((12, 33), seed=1)
    k.input(x, a), k.input(y, b), k.input(s, 2.0)
    k.run()
    copy = dvm.Kernel(kind)
    x2, y2, s2, out2 = copy.clone(k, [x, y, s, out])
    assert out2.dtype() == "float32" and x2 is not x and s2 is not s
    (c, u), (d, t) = make((5, 7)), make((5, 7), seed=1)
    copy.input(x2, c), copy.input(y2, d), copy.input(s2, -0.5)
    copy.run()
    np.testing.assert_allclose(copy.output(out2), expected(kind, u, t, -0.5), rtol=1e-4, atol=1e-4)
    k.run()  # the first kept its arrays and its number
    np.testing.assert_allclose(k.output(out), expected(kind, w, v, 2.0), rtol=1e-4, atol=1e-4)
    names = [re.findall(r"= (\w+)", kernel.dump()) for kernel in (copy, k)]
    assert names[0] == names[1]


def test_two_clones_in_one_kernel_and_work_on_top():
    k, x, y, s, _ = base("vector")
    t = Tester("parallel")
    total = []
    for number in range(2):
        if number:
            t.parallel_add("vector")
        x2, y2, s2 = t.clone(k, [x, y, s])
        (a, w), (b, v) = make((6, 9), seed=number), make((6, 9), seed=number + 5)
        t.input(x2, a), t.input(y2, b), t.input(s2, number + 1)
        total.append(((w + v) * (number + 1)).sum(1))
        t.expect(t.stores[-1], total[-1], 1e-4)
    t.run_check()
    assert len(t.stores) == 2


def test_lists_of_the_run_are_cloned_too():
    k = dvm.Kernel("vector:dyn")
    x, dims, axes = k.load([-1], "float32"), k.int_array(), k.int_array()
    out = k.store(k.max(k.reshape(x, dims), axes))
    dims.update([2, 3]), axes.update([0])
    t = Tester("vector:dyn")
    x2, dims2, axes2, out2 = t.clone(k, (x, dims, axes, out))
    assert dims2.shape() == [2, 3]
    data, w = make((12,))
    dims2.update([3, 4]), axes2.update([1])
    assert dims.shape() == [2, 3] and axes.shape() == [0]
    t.input(x2, data)
    t.expect(out2, w.reshape(3, 4).max(1))
    t.run_check()


def test_one_object_is_enough_and_a_stranger_is_an_error():
    k, x, *_ = base("vector")
    (only,) = dvm.Kernel("vector").clone(k, x)
    assert only.op == "Load"
    with pytest.raises(dvm.ArgumentError, match="is not of the kernel"):
        dvm.Kernel("vector").clone(k, [only])


def test_a_decorated_kernel_is_cloned_by_its_object():
    @dvm.kernel
    def double(k):
        return k.store(k.mul(k.load([-1, 4], "float32"), 2.0))

    t = Tester("split")
    x, out = t.clone(double.kobj, [double.kobj.nodes[0], double.kobj.stores[0]])
    data, w = make((3, 4))
    t.input(x, data)
    t.expect(out, 2 * w)
    t.run_check()
