"""Arrays beside other libraries: DLPack both ways, NumPy's operators and functions, and what repr shows."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core.dtypes import TABLE

DTYPES = list(TABLE)


def made(dtype: dvm.DataType) -> dvm.Array:
    return (dvm.tensor(np.arange(12, dtype=np.float32).reshape(3, 4)) % 5).astype(dtype)


class Bare:
    """An object with nothing but the protocol."""

    def __init__(self, array: dvm.Array) -> None:
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dlpack_shares_memory_both_ways(dtype: dvm.DataType) -> None:
    array = made(dtype)
    again = dvm.from_dlpack(Bare(array))
    assert again.dtype is dtype and again.shape == (3, 4) and again.tolist() == array.tolist()
    assert again._memory().ctypes.data == array._memory().ctypes.data
    turned = dvm.from_dlpack(Bare(array.T))
    assert turned.tolist() == array.T.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dlpack_with_torch(dtype: dvm.DataType) -> None:
    torch = pytest.importorskip("torch")
    array = made(dtype)
    seen = torch.from_dlpack(array)
    assert str(seen.dtype) == f"torch.{dtype}" and seen.tolist() == array.tolist() and seen.data_ptr() == array._memory().ctypes.data
    given = seen.clone().T[1:, ::2]
    back = dvm.from_dlpack(given)
    assert back.dtype is dtype and back.tolist() == given.tolist() and back._memory().ctypes.data == given.data_ptr()
    expected = (given + given).tolist()
    del given, seen
    assert (back + back).tolist() == expected  # the memory lives on


def test_dlpack_says_what_may_be_written() -> None:
    values = np.arange(3.0)
    assert np.from_dlpack(dvm.tensor(values)).ctypes.data == values.ctypes.data
    computed = dvm.tensor(values) + 1
    with pytest.raises(BufferError, match="read only"):
        computed.__dlpack__()
    assert "dltensor_versioned" in repr(computed.__dlpack__(max_version=(1, 0)))
    assert "dltensor" in repr(computed.__dlpack__(copy=True))
    assert computed.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="on the CPU"):
        computed.__dlpack__(dl_device=(2, 0))


def test_what_from_dlpack_does_not_take_is_named_with_the_line() -> None:
    with pytest.raises(dvm.ArgumentError, match=r"test_array_exchange.py:\d+: from_dlpack takes an object with __dlpack__, got list"):
        dvm.from_dlpack([1, 2])
    with pytest.raises(dvm.DtypeError, match=r"test_array_exchange.py:\d+: from_dlpack: this dtype is none of a tensor's"):
        dvm.from_dlpack(np.zeros(3, np.complex64))

    class Elsewhere(Bare):
        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(dvm.ArgumentError, match="lives on a device of type 2; copy it to the CPU first"):
        dvm.from_dlpack(Elsewhere(made(dvm.float32)))


def test_numpys_operators_leave_the_work_to_the_array() -> None:
    values = np.array([[1, -2], [3, 4]], np.float32)
    x = dvm.tensor(values)
    for found, expected in ((values - x, values - values), (np.float32(2) * x, 2 * values), (values < x + 1, values < values + 1),
                            (values @ x, values @ values), (np.int64(2) ** x, 2**values), (np.add(values, x), values + values)):
        assert isinstance(found, dvm.Array) and found.numpy().tolist() == expected.tolist()


def test_numpys_functions_name_the_method() -> None:
    x = dvm.tensor(np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"^np.exp does not take a dvm.tensor: call x.exp\(\), or np.exp\(x.numpy\(\)\)"):
        np.exp(x)
    with pytest.raises(TypeError, match=r"^np.hypot does not take a dvm.tensor: call a method of the array"):
        np.hypot(x, x)
    with pytest.raises(TypeError, match=r"^np.add does not take a dvm.tensor"):
        np.add.reduce(x)


def test_repr_shows_what_is_there_and_computes_nothing() -> None:
    x = dvm.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert repr(x) == "dvm.tensor([[0., 1., 2.],\n            [3., 4., 5.]], f32[2,3])"
    pending = x + 1
    assert repr(pending) == "dvm.tensor(f32[2,3], not computed yet)" and not pending.in_memory
    assert repr(pending.sum().astype(dvm.bfloat16)) == "dvm.tensor(bf16[], not computed yet)"
    assert pending.tolist() and repr(pending).startswith("dvm.tensor([[1., 2., 3.],")
    assert repr(dvm.tensor([1.5, 2], dvm.bfloat16)) == "dvm.tensor([1.5, 2. ], bf16[2])"
    assert len(repr(dvm.tensor(np.zeros((1000, 1000))))) < 500
    given = dvm.tensor(np.ones(2, np.float32)) + 1
    take = dvm.jit(lambda a: a * 2, mode="graph", donate=(0,))
    take(given)
    assert repr(given) == "dvm.tensor(f32[2], given away to a call)"


def test_repr_inside_a_trace_keeps_it_replayable(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    @dvm.jit(mode="graph")
    def function(x):
        y = x * 2
        seen.extend((repr(x), repr(y)))
        return y

    for value in (1.0, 2.0):
        assert function(dvm.tensor(np.full(2, value, np.float32))).tolist() == [2 * value] * 2
    assert seen == ["dvm.tensor([1., 1.], f32[2])", "dvm.tensor(f32[2], not computed yet)"]
    assert "stream mode" not in capsys.readouterr().err


def test_from_dlpack_may_be_the_first_thing_that_is_called() -> None:
    code = "import numpy as np, dvm_core as dvm; assert dvm.from_dlpack(np.arange(3.0)).tolist() == [0, 1, 2]"
    subprocess.run([sys.executable, "-c", code], check=True)
