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
import sys
import types
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ascend_libraries import AGAIN, NO_CONTEXT, NO_DEVICE, POISON, UNINITIALISED, VECTOR_CORE, Libraries, Misuse

from dvm_core.devices import aclnn, ascend


@dataclass
class Stream:
    context: int
    tasks: list[Any] = field(default_factory=list)
    error: int = 0


class StandIn(Libraries):
    """One CANN in one process, with `devices` NPUs of so many bytes each."""

    def __init__(self, devices: int = 2, memory: int = 1 << 30, initialised: bool = False, missing: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.devices, self.room, self.missing = devices, memory, missing
        self.misuse: list[str] = []
        self.calls: list[str] = []
        self.initialised, self.by_others = initialised, initialised
        self.context = 0  # of the thread; one thread here
        self.set_devices: Counter[int] = Counter()
        self.contexts: dict[int, int] = {}
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, Any] = {}
        self.device_memory: dict[int, np.ndarray] = {}
        self.host_memory: dict[int, Any] = {}
        self._next = 0x7F00_0000_0000
        self._fail_at, self._fail_code = -1, 0
        self._message = ""
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
