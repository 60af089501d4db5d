"""The operator libraries of the stand-in for CANN: handles, prototypes, the two phases of each function, arithmetic in NumPy."""
from __future__ import annotations

import ctypes
import math
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
from ascend_documents import FUNCTIONS
from ascend_numpy import NUMPY, WINDOWED

from dvm_core.devices import aclnn

NUMPY_TYPES = {0: np.float32, 1: np.float16, 2: np.int8, 3: np.int32, 4: np.uint8, 9: np.int64, 11: np.float64, 12: np.bool_,
               27: np.uint16}
NAMES = {2: "int8", 3: "int32", 4: "uint8", 9: "int64"}
BF16, POISON = 27, 0xA5
C_TYPES = {**dict.fromkeys("TORSIBL", ctypes.c_void_p), "q": ctypes.c_int64, "i": ctypes.c_int, "c": ctypes.c_int8,
           "b": ctypes.c_bool, "d": ctypes.c_int}
KINDS = {"T": "tensor", "O": "tensor", "R": "tensor", "S": "scalar", "I": "ints", "B": "bools", "L": "list"}
INVALID, UNINITIALISED, AGAIN, NO_CONTEXT, NO_DEVICE = 100000, 100001, 100002, 107002, 107001
PARAMETER, EXECUTOR, VECTOR_CORE = 161002, 561000, 507035


@dataclass
class Tensor:
    shape: tuple[int, ...]
    dtype: int
    strides: tuple[int, ...]
    offset: int
    storage: int  # elements
    address: int


@dataclass
class Handle:
    kind: str
    value: Any
    alive: bool = True


@dataclass
class Executor:
    name: str
    arguments: list[Any]
    workspace: int
    used: bool = False


class Misuse(Exception):
    """A call against the documents; its code is what the call gives."""

    def __init__(self, text: str, code: int = INVALID) -> None:
        super().__init__(text)
        self.code = code


class Libraries:
    """What `aclnn.open_library` gives, for a process that has `_count`, `_blame`, `_new`, `_block` and `_stream`."""

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}
        self.executors: dict[int, Executor] = {}
        self.finished: list[str] = []  # operators that ran
        self._functions: dict[str, Any] = {}

    def _library(self, name: str) -> Any:
        if name in self.missing:
            raise OSError(f"{name}: cannot open shared object file")
        if name == aclnn.BASE:
            return types.SimpleNamespace(**self._creators())
        if name == "libopapi_math.so":
            phases = (("GetWorkspaceSize", self._planner), ("", self._runner))
            return types.SimpleNamespace(**{short + phase: self._function(short + phase, body(short))
                                            for short in FUNCTIONS if short not in self.missing for phase, body in phases})
        if name == "libopapi_nn.so":
            return types.SimpleNamespace()
        raise OSError(f"{name}: cannot open shared object file")

    def _creators(self) -> dict[str, Any]:
        p, n, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
        ints, bools, pointers = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_bool), ctypes.POINTER(ctypes.c_void_p)
        return {
            "aclCreateTensor": self._creator("tensor", self._tensor, ints, size, n, ints, ctypes.c_int64, n, ints, size, p),
            "aclCreateScalar": self._creator("scalar", self._scalar, p, n),
            "aclCreateIntArray": self._creator("ints", lambda values, count: tuple(values[i] for i in range(count)), ints, size),
            "aclCreateBoolArray": self._creator("bools", lambda values, count: tuple(values[i] for i in range(count)), bools, size),
            "aclCreateTensorList": self._creator("list", self._list, pointers, size),
            **{f"aclDestroy{name}": self._destroyer(kind) for name, kind in (
                ("Tensor", "tensor"), ("Scalar", "scalar"), ("IntArray", "ints"), ("BoolArray", "bools"), ("TensorList", "list"))},
        }  # fmt: skip

    def _creator(self, kind: str, body: Any, *arguments: Any) -> Any:
        def create(*given: Any) -> int | None:
            try:
                if self._count(f"create {kind}"):
                    return None
                handle = self._new()
                self.handles[handle] = Handle(kind, body(*given))
                return handle
            except Exception as error:
                self._blame(error if isinstance(error, Misuse) else Misuse(f"{type(error).__name__}: {error}"))
                return None

        return ctypes.CFUNCTYPE(ctypes.c_void_p, *arguments)(create)

    def _destroyer(self, kind: str) -> Any:
        def destroy(handle: int) -> int:
            self._count(f"destroy {kind}")
            try:
                found = self._handle(handle, kind)
                found.alive = False
                for member in found.value if kind == "list" else ():
                    self.handles[member].alive = False
                return 0
            except Misuse as misuse:
                return self._blame(misuse)

        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(destroy)

    def _handle(self, handle: int | None, kind: str) -> Handle:
        found = self.handles.get(handle or 0)
        if found is None or found.kind != kind:
            raise Misuse(f"{handle} is no {kind}", PARAMETER)
        if not found.alive:
            raise Misuse(f"a {kind} is used after it was destroyed", PARAMETER)
        return found

    def _tensor(self, dims: Any, rank: int, dtype: int, strides: Any, offset: int, layout: int, storage: Any, storage_rank: int,
                address: int) -> Tensor:
        shape, steps = tuple(dims[i] for i in range(rank)), tuple(strides[i] for i in range(rank))
        elements = math.prod(storage[i] for i in range(storage_rank))
        if dtype not in NUMPY_TYPES or layout not in (0, 2) or rank > 8:
            raise Misuse(f"a tensor of type {dtype}, format {layout}, rank {rank}")
        if min((*shape, *steps, offset), default=0) < 0:
            raise Misuse(f"a tensor of shape {shape}, strides {steps}, offset {offset}")
        if layout == 0 and rank != 4:
            raise Misuse(f"format NCHW for shape {shape}")
        if address is None or address % 32:
            raise Misuse("the memory of a tensor is not aligned to 32 bytes")
        last = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if math.prod(shape) else -1
        if last >= elements:
            raise Misuse(f"a view of {shape}, strides {steps}, offset {offset} leaves its storage of {elements} elements")
        self._block(address, elements * np.dtype(NUMPY_TYPES[dtype]).itemsize, True)
        return Tensor(shape, dtype, steps, offset, elements, address)

    def _scalar(self, address: int, dtype: int) -> Any:
        data = np.frombuffer(ctypes.string_at(address, np.dtype(NUMPY_TYPES[dtype]).itemsize), NUMPY_TYPES[dtype])
        return _widened(data, dtype)[0]

    def _list(self, members: Any, count: int) -> tuple[int, ...]:
        handles = tuple(members[i] for i in range(count))
        for handle in handles:
            self._handle(handle, "tensor")
        return handles

    def _function(self, name: str, body: Any) -> Any:
        if name.endswith("GetWorkspaceSize"):
            kinds = FUNCTIONS[name.removesuffix("GetWorkspaceSize")]
            arguments = [*(C_TYPES[kind[0]] for kind in kinds), ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_void_p)]
        else:
            arguments = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]

        def call(*given: Any) -> int:
            try:
                return self._count(name) or body(*given)
            except Exception as error:
                return self._blame(error if isinstance(error, Misuse) else Misuse(f"{name}: {type(error).__name__}: {error}", EXECUTOR))

        made = self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(call)
        return made

    def _planner(self, name: str) -> Any:
        kinds = FUNCTIONS[name]

        def plan(*given: Any) -> int:
            *values, size, executor = given
            arguments = []
            for kind, value in zip(kinds, values, strict=True):
                if kind[0] not in KINDS:
                    arguments.append(value)
                elif value is None and kind.endswith("?"):
                    arguments.append(None)
                else:
                    found = self._handle(value, KINDS[kind[0]])
                    arguments.append([self._handle(h, "tensor").value for h in found.value] if kind[0] == "L" else found.value)
            _check_types(name, kinds, arguments)
            workspace = 64 * (len(name) % 3)
            handle = self._new()
            self.executors[handle] = Executor(name, arguments, workspace)
            size[0], executor[0] = workspace, handle
            return 0

        return plan

    def _runner(self, name: str) -> Any:
        def run(workspace: int | None, size: int, executor: int | None, stream: int | None) -> int:
            found = self.executors.get(executor or 0)
            if found is None or found.name != name or found.used:
                raise Misuse(f"{name} with an executor that is not its own or was used before", EXECUTOR)
            if size != found.workspace or (size and workspace is None):
                raise Misuse(f"{name} with a workspace of {size} bytes, not {found.workspace}", PARAMETER)
            memory = self._block(workspace or 0, size, True) if size else np.empty(0, np.uint8)

            def task() -> None:
                memory[:] = POISON  # what lies there is the operator's while it runs
                self._compute(found)

            found.used = True
            self._stream(stream).tasks.append(task)
            return 0

        return run

    # ---- arithmetic --------------------------------------------------------------------------------------------------------------------

    def _array(self, tensor: Tensor) -> np.ndarray:
        item = np.dtype(NUMPY_TYPES[tensor.dtype])
        data = self._block(tensor.address, tensor.storage * item.itemsize, True).view(item)
        return np.lib.stride_tricks.as_strided(data[tensor.offset :], tensor.shape, [s * item.itemsize for s in tensor.strides])

    def _compute(self, executor: Executor) -> None:
        short, kinds = executor.name.removeprefix("aclnn"), FUNCTIONS[executor.name]
        read, written = [], []
        for kind, value in zip(kinds, executor.arguments, strict=True):
            if kind[0] in "OR":
                written.append(value)
            if kind[0] == "L":
                read.append([_widened(self._array(t), t.dtype) for t in value])
            elif kind[0] == "d":
                read.append(NAMES.get(value, "float"))
            elif kind[0] in "TR":
                read.append(None if value is None else _widened(self._array(value), value.dtype))
            elif kind[0] != "O":
                read.append(value)
        with np.errstate(all="ignore"):
            shapes = tuple(t.shape if t else None for t in written)
            made = WINDOWED[short](shapes, *read) if short in WINDOWED else NUMPY[short](*read)
        results = made if isinstance(made, tuple) else (made,)
        for tensor, result in zip(written, results, strict=True):
            if tensor is None:
                continue
            if np.shape(result) != tensor.shape:
                raise Misuse(f"{executor.name} makes {np.shape(result)}, its result has {tensor.shape}")
            with np.errstate(all="ignore"):
                self._array(tensor)[...] = _narrowed(np.asarray(result), tensor.dtype)
        self.finished.append(executor.name)


_LOOSE = ("Cast", "InplaceCopy", "Gather", "IndexSelect", "IndexAdd", "Scatter", "Sort", "ArgM", "OneHot", "MaxPool", "SWhere", "Any",
          "All")


def _check_types(name: str, kinds: list[str], arguments: list[Any]) -> None:
    # Tensors that are computed with one another have one dtype; so has the result, unless the function makes bools, positions or casts.
    tensors = [value for kind, value in zip(kinds, arguments, strict=True) if kind[0] in "TOR" and value is not None]
    if name.startswith(tuple("aclnn" + loose for loose in _LOOSE)):
        return
    makes_bool = name.endswith(("Tensor", "Scalar")) and name[5:7] in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge") or name.startswith("aclnnIs")
    found = {tensor.dtype for tensor in tensors[: -1 if makes_bool else None]}
    if len(found) > 1 or (makes_bool and tensors[-1].dtype != 12):
        raise Misuse(f"{name} with tensors of types {[tensor.dtype for tensor in tensors]}", PARAMETER)


def _widened(data: np.ndarray, dtype: int) -> np.ndarray:
    if dtype == BF16:
        return np.asarray(data.astype(np.uint32) << np.uint32(16), np.uint32).view(np.float32)
    return data.astype(np.float32) if dtype == 1 else data.copy()


def _narrowed(data: np.ndarray, dtype: int) -> np.ndarray:
    if dtype != BF16:
        return data.astype(NUMPY_TYPES[dtype])
    bits = np.array(data, np.float32, order="C").view(np.uint32)
    sixteen, one, half = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)  # so that arrays without axes stay of that type
    rounded = (bits + half + ((bits >> sixteen) & one)) >> sixteen
    return np.where(np.isnan(data), 0x7FC0, rounded).astype(np.uint16)
