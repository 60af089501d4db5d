"""Stands in for CANN: an `acl` module and operator libraries that follow its documents, strict about the order of calls, pairs of create
and destroy, C types, handles, sizes and time. Operators compute with NumPy, and only when a stream is waited for: what is read or given
back too early is not what it will be.

    with StandIn() as cann:                      # as `import acl`, and for the adapter's libraries
        dvm.set_device("ascend:0")
    cann.misuse                                  # what was done against the documents
    cann.fail(7, 207001)                         # the seventh call from now on fails, once
"""
from __future__ import annotations

import ctypes
import math
import sys
import types
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ascend_documents import FUNCTIONS
from ascend_numpy import NUMPY, WINDOWED

from dvm_core.devices import aclnn, ascend

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


@dataclass
class Stream:
    context: int
    tasks: list[Any] = field(default_factory=list)
    error: int = 0


class Misuse(Exception):
    """A call against the documents; its code is what the call gives."""

    def __init__(self, text: str, code: int = INVALID) -> None:
        super().__init__(text)
        self.code = code


class StandIn:
    """One CANN in one process, with `devices` NPUs of so many bytes each."""

    def __init__(self, devices: int = 2, memory: int = 1 << 30, initialised: bool = False, missing: tuple[str, ...] = ()) -> None:
        self.devices, self.room, self.missing = devices, memory, missing
        self.misuse: list[str] = []
        self.calls: list[str] = []
        self.finished: list[str] = []  # operators that ran
        self.initialised, self.by_others = initialised, initialised
        self.context = 0  # of the thread; one thread here
        self.set_devices: Counter[int] = Counter()
        self.contexts: dict[int, int] = {}
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, Any] = {}
        self.device_memory: dict[int, np.ndarray] = {}
        self.host_memory: dict[int, Any] = {}
        self.handles: dict[int, Handle] = {}
        self.executors: dict[int, Executor] = {}
        self._next = 0x7F00_0000_0000
        self._fail_at, self._fail_code = -1, 0
        self._message = ""
        self._functions: dict[str, Any] = {}
        self.acl = self._module()

    # ---- as the adapter finds it -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> StandIn:
        self._saved = sys.modules.get("acl"), aclnn.open_library
        sys.modules["acl"] = self.acl
        aclnn.open_library = self._library
        return self

    def __exit__(self, *exc: object) -> None:
        ascend.shut_down()
        acl, aclnn.open_library = self._saved
        sys.modules.pop("acl")
        if acl is not None:
            sys.modules["acl"] = acl

    def fail(self, call: int, code: int) -> None:
        """The call of that number from now on (from 0) fails; a creation gives null."""
        self._fail_at, self._fail_code = len(self.calls) + call, code

    def left(self) -> dict[str, int]:
        """What has not been given back."""
        return {name: n for name, n in {
            "contexts": len(self.contexts), "streams": len(self.streams), "events": len(self.events),
            "device memory": len(self.device_memory), "host memory": len(self.host_memory),
            "handles": sum(h.alive for h in self.handles.values()), "devices": sum(self.set_devices.values()) * (not self.by_others),
            "initialised": self.initialised and not self.by_others}.items() if n}

    # ---- pyACL -------------------------------------------------------------------------------------------------------------------------

    def _module(self) -> types.ModuleType:
        acl, rt = types.ModuleType("acl"), types.ModuleType("acl.rt")
        acl.__file__ = "stand-in"
        acl.rt = rt
        # name -> (types of arguments, results besides the code)
        table = {
            "init": ("", 0), "finalize": ("", 0), "rt.get_device_count": ("", 1), "rt.set_device": ("i", 0), "rt.reset_device": ("i", 0),
            "rt.create_context": ("i", 1), "rt.destroy_context": ("i", 0), "rt.set_context": ("i", 0), "rt.get_context": ("", 1),
            "rt.create_stream": ("", 1), "rt.destroy_stream": ("i", 0), "rt.synchronize_stream": ("i", 0), "rt.create_event": ("", 1),
            "rt.destroy_event": ("i", 0), "rt.record_event": ("ii", 0), "rt.synchronize_event": ("i", 0), "rt.malloc": ("ii", 1),
            "rt.free": ("i", 0), "rt.malloc_host": ("i", 1), "rt.free_host": ("i", 0), "rt.memcpy_async": ("iiiiii", 0),
        }  # fmt: skip
        for name, (arguments, results) in table.items():
            owner = rt if name.startswith("rt.") else acl
            setattr(owner, name.removeprefix("rt."), self._checked(name, len(arguments), results))
        acl.get_recent_err_msg = self._recent
        acl.get_soc_name = lambda: "Ascend910B-stand-in"
        return acl

    def _recent(self) -> str:
        text, self._message = self._message, ""
        return text

    def _checked(self, name: str, count: int, results: int) -> Any:
        body = getattr(self, "_" + name.replace(".", "_"))

        def call(*arguments: Any) -> Any:
            try:
                if len(arguments) != count or any(type(a) is not int for a in arguments):
                    raise Misuse(f"acl.{name} takes {count} int, got {arguments}")
                failed = self._count(f"acl.{name}")
                if name not in ("init", "rt.get_device_count") and not self.initialised:
                    raise Misuse(f"acl.{name} before acl.init", UNINITIALISED)
                if failed and not name.startswith(("rt.free", "rt.destroy", "rt.reset", "finalize", "rt.synchronize")):
                    value = 0
                else:  # what gives back does it even where it reports an error
                    value = body(*arguments)
                code = failed or (value if not results and isinstance(value, int) else 0)
            except Misuse as misuse:
                value, code = 0, self._blame(misuse)
            return (value, code) if results else code

        return call

    def _count(self, name: str) -> int:
        number = len(self.calls)
        self.calls.append(name)
        if number != self._fail_at:
            return 0
        self._message = f"{name} was told to fail"
        return self._fail_code

    def _blame(self, misuse: Misuse) -> int:
        if misuse.code not in (207001, NO_DEVICE):
            self.misuse.append(str(misuse))
        self._message = str(misuse)
        return misuse.code

    def _new(self) -> int:
        self._next += 1 << 20
        return self._next

    def _init(self) -> int:
        if self.initialised:
            return AGAIN
        self.initialised = True
        return 0

    def _finalize(self) -> None:
        if self.by_others:
            raise Misuse("acl.finalize by one who has not initialised")
        self.initialised = False

    def _rt_get_device_count(self) -> int:
        return self.devices

    def _rt_set_device(self, number: int) -> None:
        if not 0 <= number < self.devices:
            raise Misuse(f"no device {number}", NO_DEVICE)
        self.set_devices[number] += 1

    def _rt_reset_device(self, number: int) -> None:
        if not self.set_devices[number]:
            raise Misuse(f"device {number} is reset and was not set")
        self.set_devices[number] -= 1
        for kind, of_device in (("stream", [s for s in self.streams.values() if self.contexts.get(s.context, number) == number]),
                                ("context", [c for c, d in self.contexts.items() if d == number])):
            if of_device:
                raise Misuse(f"device {number} is reset with a {kind} left")

    def _rt_create_context(self, number: int) -> int:
        if not self.set_devices[number]:
            raise Misuse("a context before its device is set")
        self.context = self._new()
        self.contexts[self.context] = number
        return self.context

    def _rt_destroy_context(self, context: int) -> None:
        if context not in self.contexts:
            raise Misuse("no such context")
        if any(stream.context == context for stream in self.streams.values()):
            raise Misuse("a context is destroyed before its stream")
        del self.contexts[context]
        self.context = 0 if self.context == context else self.context

    def _rt_set_context(self, context: int) -> None:
        if context not in self.contexts and not (self.by_others and context == 1):
            raise Misuse("no such context")
        self.context = context

    def _rt_get_context(self) -> int:
        return self.context or int(self.by_others)

    def _here(self) -> None:
        if self.context not in self.contexts:
            raise Misuse("the thread has no context", NO_CONTEXT)

    def _rt_create_stream(self) -> int:
        self._here()
        stream = self._new()
        self.streams[stream] = Stream(self.context)
        return stream

    def _stream(self, stream: int | None) -> Stream:
        if stream not in self.streams:
            raise Misuse("no such stream")
        if self.streams[stream].context != self.context:
            raise Misuse("the stream is of another context", 107003)
        return self.streams[stream]

    def _rt_destroy_stream(self, stream: int) -> None:
        if self._stream(stream).tasks:
            raise Misuse("a stream is destroyed with work on it")
        del self.streams[stream]

    def _rt_synchronize_stream(self, stream: int) -> int:
        return self._run(self._stream(stream))

    def _run(self, stream: Stream, until: Any = None) -> int:
        while stream.tasks:
            task = stream.tasks.pop(0)
            if task is until:
                break
            if callable(task) and not stream.error:
                try:
                    task()
                except Exception as error:
                    self.misuse.append(f"{type(error).__name__}: {error}")
                    stream.error = VECTOR_CORE
        error = stream.error
        if until is None:
            stream.error = 0
        return error

    def _rt_create_event(self) -> int:
        self._here()
        event = self._new()
        self.events[event] = None
        return event

    def _event(self, event: int) -> None:
        if event not in self.events:
            raise Misuse("no such event")

    def _rt_destroy_event(self, event: int) -> None:
        self._event(event)
        del self.events[event]

    def _rt_record_event(self, event: int, stream: int) -> None:
        self._event(event)
        self.events[event] = (self._stream(stream), [event])
        self._stream(stream).tasks.append(self.events[event][1])

    def _rt_synchronize_event(self, event: int) -> int:
        self._event(event)
        if self.events[event] is None:
            raise Misuse("an event is waited for that was not recorded")
        stream, mark = self.events[event]
        return self._run(stream, mark) if any(task is mark for task in stream.tasks) else 0

    def _rt_malloc(self, size: int, policy: int) -> int:
        self._here()
        if size <= 0 or policy not in range(6):
            raise Misuse(f"malloc of {size} bytes, policy {policy}")
        if sum(block.size for block in self.device_memory.values()) + size > self.room:
            raise Misuse(f"no room for {size} bytes", 207001)
        address = self._new()
        self._next += size
        self.device_memory[address] = np.full(size, POISON, np.uint8)
        return address

    def _rt_free(self, address: int) -> None:
        if self.device_memory.pop(address, None) is None:
            raise Misuse("memory is freed that was not allocated")
        if any(stream.tasks for stream in self.streams.values()):
            raise Misuse("device memory is freed while work is under way")

    def _rt_malloc_host(self, size: int) -> int:
        self._here()
        if size <= 0:
            raise Misuse(f"malloc_host of {size} bytes")
        block = (ctypes.c_uint8 * size)(*[POISON] * min(size, 64))
        self.host_memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def _rt_free_host(self, address: int) -> None:
        if self.host_memory.pop(address, None) is None:
            raise Misuse("host memory is freed that was not allocated")
        if any(stream.tasks for stream in self.streams.values()):
            raise Misuse("host memory is freed while work is under way")

    def _block(self, address: int, size: int, of_device: bool) -> np.ndarray:
        # `size` bytes from address on; the address must lie in a block that is alive.
        if of_device:
            for start, block in self.device_memory.items():
                if start <= address and address + size <= start + block.size:
                    return block[address - start : address - start + size]
        elif address in self.host_memory and size <= len(self.host_memory[address]):
            return np.ctypeslib.as_array(self.host_memory[address])[:size]
        raise Misuse(f"no {'device' if of_device else 'page-locked host'} memory of {size} bytes at {address:#x}")

    def _rt_memcpy_async(self, to: int, room: int, source: int, size: int, kind: int, stream: int) -> None:
        if kind not in (1, 2) or not 0 < size <= room:
            raise Misuse(f"memcpy_async of {size} bytes to {room}, kind {kind}")
        self._block(to, room, kind == 1)
        self._block(source, size, kind == 2)
        self._stream(stream).tasks.append(lambda: self._copy(to, source, size, kind))

    def _copy(self, to: int, source: int, size: int, kind: int) -> None:
        self._block(to, size, kind == 1)[:] = self._block(source, size, kind == 2)

    # ---- operator libraries ------------------------------------------------------------------------------------------------------------

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
            if size:
                self._block(workspace or 0, size, True)[:] = POISON
            found.used = True
            self._stream(stream).tasks.append(lambda: self._compute(found))
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


_LOOSE = ("Cast", "InplaceCopy", "Gather", "IndexSelect", "IndexAdd", "ScatterAdd", "Sort", "ArgM", "OneHot", "MaxPool", "SWhere", "Any",
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
