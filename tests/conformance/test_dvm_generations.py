"""The interface as it was in other years: names, spellings, kinds, flags, both forms of the decorator."""

import subprocess
import sys

import numpy as np
import pytest
from dvm_kit import make, one

import dvm_core as dvm
from dvm_core.tester import Tester

SPELLED = ["float32", dvm.float32, dvm.DataType.float32, np.float32, "f32", "fp32"]


def test_classes_under_each_of_their_names():
    assert dvm.Kernel is dvm.PyKernel is dvm.KernelBase
    assert dvm.ShapeRef is dvm.IntArrayRef and dvm.NDSymInt is dvm.NDSymFloat is dvm.ScalarRef
    assert dvm.tester.Tester is Tester and issubclass(Tester, dvm.Kernel)


def test_what_scripts_ask_about_the_hardware():
    for ask in (dvm.Device, dvm.device):
        assert ask.core_num() >= 1 and ask.soc_name() and ask.arch() in ("CPU", "AscendC220", "AscendC310")
    assert isinstance(dvm.device(), str)


def test_dtypes_are_equal_to_their_names_and_nothing_else():
    k = dvm.Kernel("vector")
    for spelling in SPELLED:
        x = k.load([3], spelling)
        assert x.dtype() == dvm.float32 == dvm.DataType.float32 and x.dtype() == "float32" and x.dtype() != "int32"
    assert [getattr(dvm.DataType, name) for name in ("bool", "float16", "bfloat16", "int32", "int64")] == [
        dvm.bool_, dvm.float16, dvm.bfloat16, dvm.int32, dvm.int64]  # fmt: skip


@pytest.mark.parametrize("kind", [dvm.K_VEC, dvm.K_CUBE, dvm.K_MIX, dvm.K_PARAL, dvm.K_SEQ, dvm.K_SPLIT, dvm.K_EAGER])
def test_kinds_by_number(kind):
    x, w = make((5, 7))
    t = one(kind, lambda t, a: t.exp(a), np.exp(w), x)
    assert t.kind == ("vector", "cube", "mix", "parallel", "seq", "split", "eager")[kind]


def test_kinds_and_flags_that_do_not_exist():
    for bad in ("vectorr", 7, -1):
        with pytest.raises(dvm.ArgumentError, match="kernel type error"):
            dvm.Kernel(bad)
    with pytest.raises(dvm.ArgumentError, match="kernel flag error: fast; there are dyn, unify_ws"):
        dvm.Kernel("vector:dyn,fast")
    with pytest.raises(dvm.ArgumentError, match="kernel flag error: 0x8"):
        dvm.Kernel("parallel").parallel_add(dvm.K_VEC, 8)
    with pytest.raises(dvm.ArgumentError, match="run type 'sim'; there are|run type 'sim'"):
        dvm.Kernel("vector", "sim")
    dvm.Kernel("seq").seq_add(dvm.K_VEC, dvm.F_DYN | dvm.F_UWS | dvm.F_SPEC)


UNARY = {"Sqrt": np.sqrt, "Abs": np.abs, "Log": np.log, "Exp": np.exp, "Reciprocal": np.reciprocal, "Round": np.round, "Floor": np.floor}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "RealDiv": np.divide, "Pow": np.power,
          "Maximum": np.maximum, "Minimum": np.minimum, "Equal": np.equal, "LessEqual": np.less_equal}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_by_name(name):
    x, w = make((5, 7), low=0.5)
    one("vector", lambda t, a: t.unary(name, a), UNARY[name](w), x)


@pytest.mark.parametrize("name", BINARY)
def test_binary_by_name(name):
    (x, w), (y, v) = make((5, 7), low=0.5), make((5, 7), low=0.5, seed=1)
    one("vector", lambda t, a, b: [t.binary(name, a, b), t.binary(name, a, 2.0)], [BINARY[name](w, v), BINARY[name](w, 2.0)], x, y)


@pytest.mark.parametrize("name", ["sum", "max", "min", "Sum"])
def test_reduce_by_name(name):
    x, w = make((5, 7))
    one("vector", lambda t, a: t.reduce(name, a, [1], True), getattr(np, name.lower())(w, axis=1, keepdims=True), x)


def test_names_that_do_not_exist():
    k = dvm.Kernel("vector")
    x = k.load([3], "float32")
    for call, text in (
        (lambda: k.unary("Expp", x), "there is no op 'Expp'"),
        (lambda: k.reduce("prod", x, [0]), "there is no reduction 'prod'"),
        (lambda: k.expp(x), "a kernel has no operation 'expp'; did you mean exp"),
    ):
        with pytest.raises(dvm.Error, match=text):
            call()


def test_scalars_of_each_year():
    x, w = make((5, 7))
    t = Tester("vector")
    whole, fraction, plain, typed = t.make_int(), t.make_float(), t.scalar(), t.scalar("float32")
    whole.update(3), fraction.update(0.5), plain.update(np.float32(2)), t.input(typed, -1)
    a = t.load(x)
    for ref, value in ((whole, 3), (fraction, 0.5), (plain, 2), (typed, -1)):
        t.store_expect(t.mul(a, ref), w * value)
        t.store_expect(t.sub(ref, a), value - w)
    t.run_check()


@pytest.mark.parametrize("decorate", [dvm.kernel, dvm.kernel(), dvm.kernel(ktype="vector", dynamic=True), dvm.kernel(ktype="split:dyn")])
def test_the_form_with_placeholders(decorate):
    @decorate
    def kernel(k, x, y, s, dims):
        a, b = k.load(x, "float32"), k.load(y, dvm.float32, [-1])
        total = k.mul(k.add(a, b), k.scalar(s, "float32"))
        return [k.store(total), k.store(k.reshape(total, k.dims(dims)))]

    (x, w), (y, v) = make((6, 4)), make((4,))
    first, second = kernel(x, y, 2.0, [3, 8])
    np.testing.assert_allclose(first, 2 * (w + v), rtol=1e-5)
    np.testing.assert_allclose(second, 2 * (w + v).reshape(3, 8), rtol=1e-5)


@pytest.mark.parametrize("arguments", [{}, {"ktype": "spec"}, {"ktype": "mix", "dyn_shape": True}, {"ktype": "vector", "dyn_shape": False}])
def test_the_form_with_k_alone(arguments):
    @dvm.kernel(**arguments)
    def kernel(k):
        a = k.load([6, -1] if arguments.get("dyn_shape") else [6, 4], dvm.float32)
        s = k.scalar(dvm.float32)
        b = k.view_load([4], [2], 1, dvm.float32)
        k.store(k.mul(k.add(a, b), s))
        k.store(a, dvm.int32)

    (x, w), (y, v) = make((6, 4), low=-9, high=9), make((9,))
    summed, whole = kernel(x, 0.5, y)
    np.testing.assert_allclose(summed, (w + v[1:9:2]) * 0.5, rtol=1e-5)
    np.testing.assert_array_equal(whole, np.trunc(w))
    out, other = np.zeros((6, 4), np.float32), np.zeros((6, 4), np.int32)
    assert kernel.run(x, 0.5, y, out, other) is None
    np.testing.assert_array_equal(out, summed)
    assert kernel.kobj.das() == kernel.das()
    with pytest.raises(dvm.ArgumentError, match="DVM kernel call expects 3 arguments, got 1"):
        kernel(x)


def test_arguments_that_are_not_contiguous_go_in_and_come_out():
    @dvm.kernel
    def kernel(k):
        return k.store(k.mul(k.load([-1, -1], "float32"), 2.0))

    x, w = make((9, 20))
    base = np.zeros((20, 18), np.float32)
    kernel.run(x.T[::2], base[::2, ::2])
    np.testing.assert_array_equal(base[::2, ::2], 2 * w.T[::2])


def test_arrays_that_begin_at_odd_addresses():
    memory = np.zeros(4 * 33 + 1, np.uint8)
    x = memory[1:].view(np.float32)
    x[...] = np.arange(33)
    out = np.zeros(4 * 33 + 3, np.uint8)[3:].view(np.float32)
    t = Tester("vector")
    a = t.load([33], "float32")
    t.input(a, x), t.set_output(t.store(t.add(a, 1.0)), out)
    t.run()
    np.testing.assert_array_equal(out, np.arange(33) + 1)


def test_a_profiler_of_npus_says_what_measures_here():
    with pytest.raises(dvm.UnsupportedError, match=r"k.perf\(\) and dvm.stats\(\) measure here"):
        dvm.Kernel("vector").msprof("out", 3)


def test_perf_gives_least_most_and_mean():
    t = Tester("vector")
    t.store(t.exp(t.load(np.ones((9, 9), np.float32))))
    least, most, mean = t.perf()
    assert 0 < least <= mean <= most


SCRIPT = """
import dvm
import numpy as np
from dvm.tester import Tester

t = Tester("vector")
t.store_expect(t.add(t.load(np.ones(4, np.float32)), 1), np.full(4, 2.0))
t.run_check()
assert isinstance(t, dvm.Kernel) and dvm.tester.Tester is Tester
print("as one")
"""


def test_a_script_imports_the_tester_by_dvms_name(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "dvm_core", "run", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "as one\n", done.stderr
