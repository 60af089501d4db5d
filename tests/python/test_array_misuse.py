"""What an array is compared with, added to and reduced over by mistake, and what tools are asked for: NumPy's answer, or a clear one."""
from __future__ import annotations

import operator

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core
from dvm_core.msbc.layout import CODES as OP


@pytest.mark.parametrize("axis", [(0, 0), (0, -2), (1, 0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "logsumexp"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_an_axis_named_twice_is_refused(name: str, axis: tuple[int, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(dvm.ArgumentError, match="twice"):
        getattr(dvm.tensor(np.ones(shape, np.float32)), name)(axis)
    with pytest.raises(dvm.ArgumentError, match="twice"):
        dvm.tensor(np.ones(shape, np.float32)).norm(2, axis)


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3), (3, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_any_and_all_of_no_elements(dtype: str, shape: tuple[int, ...], keepdims: bool) -> None:
    values = np.zeros(shape, dtype)
    for axis in (None, 0, -1, tuple(range(len(shape)))):
        for name in ("any", "all"):
            got = getattr(dvm.tensor(values), name)(axis, keepdims)
            want = np.asarray(getattr(values, name)(axis, keepdims=keepdims))
            assert got.dtype is dvm.bool_ and got.shape == want.shape
            np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("other", [None, object(), "text", {}, {1}, np.str_("text"), Ellipsis, len])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_what_is_no_operand(other: object, dtype: str) -> None:
    x = dvm.tensor(np.ones(3, dtype))
    assert (x == other) is False and (x != other) is True
    assert x not in [other]
    assert (other == x) is False
    for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.pow, operator.lt, operator.ge):
        with pytest.raises(TypeError, match=rf"takes an array or a number beside .*, got {type(other).__name__}") as raised:
            op(x, other)
        assert isinstance(raised.value, dvm.DtypeError) and raised.value.op
    with pytest.raises(TypeError):
        operator.add(other, x)
    with pytest.raises(TypeError, match="MAXIMUM: takes an array or a number"):
        x.maximum(other)


def test_operands_are_what_they_were() -> None:
    x = dvm.tensor(np.ones(3, np.float32))
    for other in (1, 1.0, True, np.float32(1), np.int64(1), np.ones(3, np.float32), [1.0, 1.0, 1.0], (1.0, 1.0, 1.0)):
        assert (x == other).tolist() == [True] * 3 and (x + other).tolist() == [2.0] * 3


@pytest.mark.parametrize(("target", "said"), [
    (10**30, "there is no program 1000000000"), (-1, "there is no program -1"), (dvm.tensor(np.zeros(9)), "not Array"), ("text", "not str"),
])
def test_what_cannot_be_checked(target: object, said: str) -> None:
    with pytest.raises(dvm.ArgumentError, match=said) as raised:
        dvm.check(target)
    assert len(str(raised.value)) < 200


def test_a_function_that_chooses_its_own_device_is_checked_by_that_ones_rules() -> None:
    def run(device: str = "npu-sim:950") -> None:
        dvm.set_device(device)
        dvm.jit(lambda x: x * 2 + 1)(dvm.tensor(np.ones(100, np.float32)))

    before = dvm.device()
    assert dvm.check(run, device="npu-sim:910b").device == "npu-sim:950"
    report = dvm.check(lambda: run("cpu"))
    assert any("chose the device 'cpu'" in finding.text for finding in report.findings)
    assert dvm.device() == before


def test_numbers_out_of_range_for_the_core() -> None:
    _core.set_threads(2**31)  # as many as there can be
    _core.set_threads(0)
    with pytest.raises(_core.Error, match="does not fit in 64 bits"):
        _core.set_threads(2**70)
    with pytest.raises(TypeError, match="must be an integer"):
        _core.set_threads("two")
    graph = _core.Graph("values")
    values = np.ones(4, np.float32)
    made = graph.op(OP["NEG"], (graph.input(values.ctypes.data, (4,), 1, None, values, "x"),))
    launch = graph.flush((made,))
    for number in (10**12, 10**9, -1):
        with pytest.raises(_core.Error, match=f"no value {number}"):
            launch.array(number)


@pytest.mark.parametrize("make", [dvm.tensor, dvm.constant])
def test_nothing_is_no_array(make):
    with pytest.raises(dvm.ArgumentError, match=r"this is None") as raised:
        make(None)
    assert "test_array_misuse.py:" in str(raised.value)
