"""The operator libraries of CANN through ctypes: arguments made and destroyed, and the two phases of each aclnn function.

`aclCreateTensor` and its like are in libnnopbase; the operators in libopapi_math and libopapi_nn, in older CANNs all in libopapi
(hiascend.com, "aolapi"). Every argument is passed as the C type of the prototype: the libraries check nothing of that.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..bf16 import convert_to_bf16
from ..dtypes import DataType, bfloat16
from ..errors import DeviceError
from .arguments import View, contiguous
from .pyacl import failure

BASE = "libnnopbase.so"
OPERATORS = ("libopapi_math.so", "libopapi_nn.so", "libopapi.so")

# aclDataType
TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int64": 9, "float64": 11, "bool": 12, "bfloat16": 27}
FORMAT_NCHW, FORMAT_ND = 0, 2  # aclFormat

_Pointer, _Size = ctypes.c_void_p, ctypes.c_uint64


def open_library(name: str) -> Any:
    """A shared library by name. Raises OSError."""
    return ctypes.CDLL(name)


def scalar_bytes(value: float | int, dtype: DataType) -> bytes:
    """One element of that dtype, as it lies in memory."""
    if dtype is bfloat16:
        return convert_to_bf16(value).tobytes()
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype.numpy).tobytes()


class Libraries:
    """The libraries of this process."""

    def __init__(self, acl: Any) -> None:
        self.acl = acl
        self._base = self._open((BASE,))[0]
        self._operators = self._open(OPERATORS)
        for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateBoolArray", "aclCreateTensorList"):
            getattr(self._base, name).restype = _Pointer

    @staticmethod
    def _open(names: tuple[str, ...]) -> list[Any]:
        found, missing = [], []
        for name in names:
            try:
                found.append(open_library(name))
            except OSError as error:
                missing.append(str(error))
        if not found:
            raise DeviceError(f"CANN's operator library cannot be loaded ({'; '.join(missing)}): source set_env.sh of the CANN toolkit")
        return found

    def has(self, name: str) -> bool:
        """Whether this CANN has the operator."""
        return self._find(name) is not None

    def _find(self, name: str) -> Any:
        for library in self._operators:
            with contextlib.suppress(AttributeError):
                return getattr(library, name)
        return None

    def operator(self, name: str) -> tuple[Any, Any]:
        """The two phases of an operator. Raises DeviceError if this CANN has not got it."""
        plan, run = self._find(name + "GetWorkspaceSize"), self._find(name)
        if plan is None or run is None:
            raise DeviceError(f"this CANN has no {name}: install a newer one")
        return plan, run

    # ---- arguments, destroyed when the call is over ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def arguments(self) -> Iterator[Arguments]:
        """Makes arguments; all are destroyed at the end."""
        made = Arguments(self)
        try:
            yield made
        finally:
            made.destroy()

    def create(self, name: str, *arguments: Any) -> Any:
        """A handle. Raises AclError if there is none."""
        handle = getattr(self._base, name)(*arguments)
        if not handle:
            raise failure(self.acl, name, 200000)
        return handle

    def destroy(self, name: str, handle: Any) -> None:
        """What it returns is not looked at: there is nothing left to do about it."""
        getattr(self._base, name)(_Pointer(handle))


class Arguments:
    """Handles made for one call."""

    def __init__(self, libraries: Libraries) -> None:
        self.libraries = libraries
        self._made: list[tuple[str, Any]] = []

    def destroy(self) -> None:
        """In the opposite order."""
        while self._made:
            self.libraries.destroy(*self._made.pop())

    def _keep(self, kind: str, *arguments: Any) -> Any:
        handle = self.libraries.create(f"aclCreate{kind}", *arguments)
        self._made.append((f"aclDestroy{kind}", handle))
        return handle

    def tensor(self, view: View | None, address: int, elements: int) -> Any:
        """An aclTensor on device memory of so many elements."""
        if view is None:
            return _Pointer(None)
        return _Pointer(self._keep("Tensor", *_tensor_arguments(view, address, elements)))

    def tensors(self, parts: list[tuple[View, int, int]]) -> Any:
        """An aclTensorList, which owns its tensors once it is made."""
        handles = [self._keep("Tensor", *_tensor_arguments(view, address, elements)) for view, address, elements in parts]
        made = self._keep("TensorList", (_Pointer * len(handles))(*handles), _Size(len(handles)))
        self._made[-len(handles) - 1 : -1] = []
        return _Pointer(made)

    def scalar(self, value: float | int, dtype: DataType) -> Any:
        """An aclScalar."""
        data = ctypes.create_string_buffer(scalar_bytes(value, dtype), 8)
        return _Pointer(self._keep("Scalar", ctypes.cast(data, _Pointer), ctypes.c_int(TYPES[dtype.name])))

    def ints(self, values: tuple[int, ...] | None) -> Any:
        """An aclIntArray."""
        if values is None:
            return _Pointer(None)
        return _Pointer(self._keep("IntArray", (ctypes.c_int64 * len(values))(*values), _Size(len(values))))

    def bools(self, values: tuple[bool, ...]) -> Any:
        """An aclBoolArray."""
        return _Pointer(self._keep("BoolArray", (ctypes.c_bool * len(values))(*values), _Size(len(values))))


# arguments that are plain C values
PLAIN: dict[str, Callable[[Any], Any]] = {
    "bool": ctypes.c_bool,
    "i64": ctypes.c_int64,
    "int": ctypes.c_int,
    "i8": ctypes.c_int8,
    "dtype": lambda dtype: ctypes.c_int(TYPES[dtype.name]),
}


def _tensor_arguments(view: View, address: int, elements: int) -> tuple[Any, ...]:
    rank = len(view.shape)
    dims = (ctypes.c_int64 * rank)(*view.shape)
    strides = (ctypes.c_int64 * rank)(*view.strides)
    whole = view.strides == contiguous(view.shape) and view.offset == 0
    storage = view.shape if whole else (elements,)  # of a view, all the memory it may reach
    return (
        dims, _Size(rank), ctypes.c_int(TYPES[view.dtype.name]), strides, ctypes.c_int64(view.offset),
        ctypes.c_int(FORMAT_NCHW if view.planes else FORMAT_ND), (ctypes.c_int64 * len(storage))(*storage), _Size(len(storage)),
        _Pointer(address),
    )  # fmt: skip


def call(libraries: Libraries, name: str, arguments: list[Any], workspace: Callable[[int], int], stream: int) -> None:
    """Both phases. workspace(bytes) gives device memory that stays until the stream is done with it."""
    plan, run = libraries.operator(name)
    size, executor = _Size(0), _Pointer(None)
    code = plan(*arguments, ctypes.byref(size), ctypes.byref(executor))
    if code:
        raise failure(libraries.acl, name + "GetWorkspaceSize", code)
    memory = workspace(size.value) if size.value else None
    code = run(_Pointer(memory), size, executor, _Pointer(stream))
    if code:
        raise failure(libraries.acl, name, code)
