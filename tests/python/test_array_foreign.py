"""Memory that belongs to other libraries: it stays where it is for as long as an array stands on it, and what cannot be taken is told."""
from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core

_CAPSULE = ctypes.pythonapi.PyCapsule_New
_CAPSULE.restype, _CAPSULE.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

_EXCHANGE, _OTHER = b"dlpack_exchange_api", b"other"  # capsules keep the address of their name


class _Seen(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Seen))
def _look(tensor: Any, seen: Any) -> int:
    tensor.shape = (ctypes.c_int64 * 1)(tensor.storage.values.size)
    out = seen.contents
    out.data, out.device[0], out.ndim, out.code, out.bits, out.lanes = tensor.storage.values.ctypes.data, 1, 1, 2, 32, 1
    out.shape, out.strides, out.byte_offset = ctypes.addressof(tensor.shape), None, 0
    return 0


class _Table(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("previous", ctypes.c_void_p), ("others", ctypes.c_void_p * 3), ("look", ctypes.c_void_p)]


_TABLE = _Table((1, 3), None, (None, None, None), ctypes.cast(_look, ctypes.c_void_p))


class Storage:
    def __init__(self, values: np.ndarray) -> None:
        self.values, self.grows = values, True

    def resizable(self) -> bool:
        return self.grows


class Exchangeable:
    """What a framework's tensor is to us: its storage can be exchanged under the same object."""

    __dlpack_c_exchange_api__ = _CAPSULE(ctypes.addressof(_TABLE), _EXCHANGE, None)
    requires_grad = False

    def __init__(self, values: np.ndarray) -> None:
        self.storage = Storage(values)

    def is_neg(self) -> bool:
        return False

    def untyped_storage(self) -> Storage:
        return self.storage

    def numpy(self) -> np.ndarray:
        self.storage.grows = False
        return self.storage.values

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("its capsule keeps the tensor, not the storage")


@pytest.mark.parametrize("take", [dvm.tensor, dvm.from_dlpack])
def test_a_storage_that_is_exchanged_under_its_tensor_stays(take: Any) -> None:
    tensor = Exchangeable(np.ones(1000, np.float32))
    memory, address = weakref.ref(tensor.storage), tensor.storage.values.ctypes.data
    array = take(tensor)
    assert not tensor.storage.grows  # nor does it move
    pending = array * 2
    tensor.storage = Storage(np.zeros(10, np.float32))
    gc.collect()
    assert memory() is not None
    assert pending.sum().item() == 2000 and array._memory().ctypes.data == address
    del array, pending
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize("take", [dvm.tensor, dvm.from_dlpack])
@pytest.mark.parametrize("exchange", ["data", "set_", "resize_"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_exchanges_a_tensors_storage(take: Any, exchange: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    tensor = torch.ones(5_000_000, dtype=kind)
    array = take(tensor)
    pending = array + 1
    if exchange == "data":
        tensor.data = torch.zeros(3, dtype=kind)
    elif exchange == "set_":
        tensor.set_(torch.zeros(3, dtype=kind))
    else:
        with pytest.raises(RuntimeError, match="not resizable"):
            tensor.resize_(50_000_000)
    junk = [torch.full((5_000_000,), 7, dtype=kind) for _ in range(3)]
    assert (pending.numpy() == 2).all() and (array.numpy() == 1).all()
    del junk


def test_a_kernels_argument_may_lose_its_storage_afterwards() -> None:
    torch = pytest.importorskip("torch")

    @dvm.kernel
    def double(k: Any) -> Any:
        return k.store(k.mul(k.load((-1,), dvm.float32), 2.0))

    tensor = torch.ones(5_000_000)
    result = double(tensor)
    tensor.data = torch.zeros(3)
    junk = torch.full((5_000_000,), 7.0)
    assert (np.asarray(result) == 2).all()
    del junk


# ---- what cannot be taken ---------------------------------------------------------------------------------------------------------------


class Producer:
    def __init__(self, capsule: Any = None, place: Any = (1, 0)) -> None:
        self.capsule, self.place = capsule, place

    def __dlpack_device__(self) -> Any:
        return self.place

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


def test_a_producers_own_exception_comes_through() -> None:
    with pytest.raises(ZeroDivisionError, match="mine"):
        dvm.from_dlpack(Producer(ZeroDivisionError("mine")))
    with pytest.raises(BufferError):  # NumPy's own words
        dvm.from_dlpack(np.arange(3, dtype=">f4"))


def test_a_capsule_that_is_used_up_or_none_is_told() -> None:
    capsule = np.arange(3, dtype=np.float32).__dlpack__()
    assert dvm.from_dlpack(Producer(capsule)).tolist() == [0, 1, 2]
    with pytest.raises(dvm.Error, match="somebody has taken already"):
        dvm.from_dlpack(Producer(capsule))
    for wrong, kind in ((5, "int"), (_CAPSULE(1, _OTHER, None), "PyCapsule")):
        with pytest.raises(dvm.Error, match=f"gave {kind}, which is no DLPack capsule"):
            dvm.from_dlpack(Producer(wrong))


@pytest.mark.parametrize("place", ["cpu", None, (1,), ("1", 0), 1])
def test_a_device_that_is_no_device_is_told(place: Any) -> None:
    with pytest.raises(dvm.ArgumentError, match="__dlpack_device__ of Producer gave"):
        dvm.from_dlpack(Producer(np.zeros(2, np.float32).__dlpack__(), place))


def test_a_producer_older_than_dlpack_1_is_asked_without_a_version() -> None:
    class Old(Producer):
        def __dlpack__(self) -> Any:
            return self.capsule

    assert dvm.from_dlpack(Old(np.arange(3, dtype=np.float32).__dlpack__())).tolist() == [0, 1, 2]


def test_strides_between_items_are_not_exported() -> None:
    records = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f4")]))["b"]
    with pytest.raises(_core.Error, match="strides"):
        _core.exported(records, dvm.float32.code)
    with pytest.raises(_core.Error, match="items of 4 bytes are no float64"):
        _core.exported(np.zeros(2, np.float32), dvm.float64.code)
