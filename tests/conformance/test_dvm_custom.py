"""Custom ops by the function that builds them, long elementwise chains, copy."""

import numpy as np
import pytest
from dvm_kit import make, one

import dvm_core as dvm
from dvm_core.tester import Tester


def silu(k, x):
    return k.div(x, k.add(k.exp(k.mul(x, -1.0)), 1.0))


def moments(k, x):
    mean = k.mul(k.sum(x, [-1], True), 1 / 65)
    return mean, k.sub(x, mean)


def test_a_custom_op_is_the_function_registered_for_it():
    dvm.Kernel.reg_custom("silu", silu)
    dvm.Kernel.reg_custom("moments", moments)
    x, w = make((33, 65))

    def body(t, a):
        mean, centred = t.custom("moments", [a])
        return [t.add(t.custom("silu", [a]), 1.0), mean, t.custom("silu", [centred])]

    mean = w.mean(-1, keepdims=True)
    c = w - mean
    t = one("split", body, [w / (1 + np.exp(-w)) + 1, mean, c / (1 + np.exp(-c))], x)
    assert t.dump().count("Exp") == 2  # fused like anything else


def test_what_custom_refuses():
    t = Tester()
    with pytest.raises(dvm.UnknownNameError, match="no custom op 'nothing' is registered"):
        t.custom("nothing", [])
    with pytest.raises(dvm.UnsupportedError, match="device source cannot run on a CPU"):
        dvm.Kernel.reg_custom("source", "__aicore__ void f() {}")
    dvm.Kernel.reg_custom("number", lambda k, x: 3)
    with pytest.raises(dvm.ArgumentError, match="must give tensors of the kernel, got 3"):
        t.custom("number", [t.load([3], "float32")])


@pytest.mark.parametrize("length", [2, 12, 13, 24, 25])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_chains_as_long_as_a_fused_loop_may_be_and_longer(length, level):
    (x, w), (y, v) = make((13, 1000), low=-1, high=1), make((13, 1000), low=-1, high=1, seed=1)

    def body(t, a, b):
        t.set_vf_fusion(level)
        value = a
        for i in range(length):
            value = [t.add, t.mul, t.maximum, t.sub][i % 4](value, b)
        return value

    expected = w
    for i in range(length):
        expected = [np.add, np.multiply, np.maximum, np.subtract][i % 4](expected, v)
    t = one("vector", body, expected, x, y)
    assert len(t.program().areas) == 1


def test_a_chain_of_sixteen_ins_and_outs():
    pairs = [make((7, 129), seed=i) for i in range(16)]
    one("vector", lambda t, *loads: [t.mul(item, 2.0) for item in loads], [2 * w for _, w in pairs], *[x for x, _ in pairs])


@pytest.mark.parametrize("dtype", ("bool", "float16", "bfloat16", "float32", "int32", "int64"))
@pytest.mark.parametrize("shape", [(1,), (33, 65), (3, 1, 129)], ids=str)
def test_copy(shape, dtype):
    x, w = make(shape, dtype, -9, 9)
    t = Tester("vector")
    a = t.load(x, dtype)
    t.store_expect(t.copy(a), w)
    t.expect(t.store(a), w)  # a store of a load is a copy
    t.run_check()
    assert t.dump().count("Copy(") == 2
