"""`ascend:N`: a real NPU through pyACL and aclnn. Programs run instruction by instruction, each by its template; what is written down here
follows the vendor's documents and was never run on hardware (docs/devices.md)."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import BY_CODE, DataType
from ..errors import DeviceError, UnsupportedError, where
from ..philox import random
from . import aclnn, pyacl
from .arguments import Argument, View
from .ascend_memory import Blocks, LaunchMemory, bytes_at
from .descriptors import Descriptor, describe_instruction
from .templates import NoTemplate, Template, bind


class Ascend:
    """One NPU: context, stream and memory. One launch at a time."""

    def __init__(self, number: int) -> None:
        self.number, self.pid = number, os.getpid()
        self.lock = threading.Lock()
        self.context = 0
        self.broken = ""  # what happened, once the device cannot be trusted any more
        process = _process()
        self.calls, self.libraries = process.calls, process.libraries
        with self._others_context(), contextlib.ExitStack() as undo:
            self.calls("rt.set_device", number)
            if process.ours:  # else whoever initialised CANN may be at work on the device
                undo.callback(self.calls.attempt, "rt.reset_device", number)
            self.context = self.calls("rt.create_context", number)
            undo.callback(self.calls.attempt, "rt.destroy_context", self.context)
            self.stream = self.calls("rt.create_stream")
            undo.callback(self.calls.attempt, "rt.destroy_stream", self.stream)
            self.memory = Blocks(self.calls, self._settle, "rt.malloc", "rt.free", pyacl.HUGE_FIRST)
            self.host = Blocks(self.calls, self._settle, "rt.malloc_host", "rt.free_host")
            undo.callback(self.host.close)
            undo.callback(self.memory.close)
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Gives everything back, last made first. The device cannot be used any more."""
        if os.getpid() == self.pid:  # a forked child has none of it
            with self.lock, self._others_context():
                self.calls.attempt("rt.set_context", self.context)
                self._undo.close()

    def _settle(self) -> None:
        # Waits for the stream; a failure is told at the next call that is checked.
        self.calls.attempt("rt.synchronize_stream", self.stream)

    @contextlib.contextmanager
    def _others_context(self) -> Iterator[None]:
        # A thread's context may be another library's, which finds it as it was.
        code, theirs = self.calls.attempt("rt.get_context")
        try:
            yield
        finally:
            if code == 0 and theirs and theirs != self.context:
                self.calls.attempt("rt.set_context", theirs)

    # ---- a launch --------------------------------------------------------------------------------------------------------------------

    def run(self, inputs: int, instructions: list[Any], read: dict[int, Any], made: dict[int, Any]) -> None:
        """As _core.add_device wants it. Results are written last, all or none."""
        plan = _plan(inputs, instructions, read)
        if os.getpid() != self.pid:
            raise DeviceError(f"ascend:{self.number} {_FORKED}")
        with self.lock, self._others_context():
            if self.broken:
                raise DeviceError(
                    f"ascend:{self.number} failed before ({self.broken}): dvm.set_device('ascend:{self.number}') opens it again"
                )
            launch = LaunchMemory(self.memory, self.host)
            started = False
            try:
                self.calls("rt.set_context", self.context)
                for local, (array, code) in read.items():
                    started = True
                    self._bring(launch, local, array, BY_CODE[code])
                for local, item, descriptor, template, last_read in plan:
                    started = True
                    self._compute(launch, local, item, descriptor, template)
                    launch.passed()
                    for dead in last_read:
                        if dead not in made:
                            launch.drop(dead)
                self._fetch(launch, made)
                started = False
            finally:
                # What is still under way must not find its memory in other hands.
                if started and (code := self.calls.attempt("rt.synchronize_stream", self.stream)[0]):
                    self.broken = str(pyacl.failure(self.calls.acl, "acl.rt.synchronize_stream", code))
                else:
                    launch.end()

    def _bring(self, launch: LaunchMemory, local: int, array: np.ndarray, dtype: DataType) -> None:
        address = launch.value(local, dtype, array.shape)
        launch.arrays[local] = array
        if array.nbytes:
            self._copy_in(launch, address, array)

    def _copy_in(self, launch: LaunchMemory, address: int, array: np.ndarray) -> None:
        staged = launch.staged(array.nbytes)
        bytes_at(staged, array.nbytes)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.calls("rt.memcpy_async", address, array.nbytes, staged, array.nbytes, pyacl.HOST_TO_DEVICE, self.stream)

    def _fetch(self, launch: LaunchMemory, made: dict[int, Any]) -> None:
        copies = []
        for local, (array, _) in made.items():
            if array.nbytes:
                staged = launch.staged(array.nbytes)
                self.calls(
                    "rt.memcpy_async", staged, array.nbytes, launch.values[local][0], array.nbytes, pyacl.DEVICE_TO_HOST, self.stream
                )
                copies.append((array, staged))
        # A copy may be read only after an event behind it.
        event = self.calls("rt.create_event")
        try:
            self.calls("rt.record_event", event, self.stream)
            self.calls("rt.synchronize_event", event)
            self.calls("rt.synchronize_stream", self.stream)  # operators that failed say so here
        finally:
            self.calls.attempt("rt.destroy_event", event)
        for array, staged in copies:
            array.reshape(-1).view(np.uint8)[:] = bytes_at(staged, array.nbytes)

    # ---- an instruction --------------------------------------------------------------------------------------------------------------

    def _compute(self, launch: LaunchMemory, local: int, item: Any, d: Descriptor, template: Template) -> None:
        address = launch.value(local, d.dtype, d.shape)
        if d.size == 0:
            return
        names: dict[str, tuple[int, int]] = {"r": (address, d.size)}  # address, elements
        for number, operand in enumerate(item.operands):
            if operand >= 0:
                at, _, shape = launch.values[operand]
                names["abc"[number] if number < 3 else f"#{number}"] = names[f"#{number}"] = (at, math.prod(shape))
        for extra in template.temporaries:
            size = math.prod(extra.shape)
            names[extra.name] = (launch.passing(size * extra.dtype.itemsize), size)
        for call in template.calls:
            if call.name in _HOST:
                self._copy_in(launch, names[call.arguments[0].value.base][0], _HOST[call.name](d))
                continue
            with self.libraries.arguments() as arguments:
                values = [self._argument(launch, item, d, names, arguments, argument) for argument in call.arguments]
                aclnn.call(self.libraries, call.name, values, launch.passing, self.stream)

    def _argument(
        self, launch: LaunchMemory, item: Any, d: Descriptor, names: dict[str, Any], made: aclnn.Arguments, argument: Argument
    ) -> Any:
        value = argument.value
        if argument.kind in aclnn.PLAIN:
            return aclnn.PLAIN[argument.kind](value)
        if argument.kind == "scalar":
            return made.scalar(*value)
        if argument.kind == "ints":
            return made.ints(value)
        if argument.kind == "bools":
            return made.bools(value)
        if argument.kind == "tensors":
            return made.tensors([(view, *names[view.base]) for view in value])
        if value is None:
            return made.tensor(None, 0, 0)
        if value.extent is not None:
            return made.tensor(value, *self._checked_index(launch, item, d, value))
        return made.tensor(value, *names[value.base])

    def _checked_index(self, launch: LaunchMemory, item: Any, d: Descriptor, view: View) -> tuple[int, int]:
        # An index out of range is an error here and undefined there: the host looks at every one before the call, and makes those that
        # count from the end plain.
        local = item.operands[1]
        address, dtype, shape = launch.values[local]
        size = math.prod(shape)
        if local in launch.arrays:
            index = np.array(launch.arrays[local], dtype=dtype.numpy).reshape(-1)
        else:
            index = np.empty(size, dtype.numpy)
            if size:
                staged = launch.staged(index.nbytes)
                self.calls("rt.memcpy_async", staged, index.nbytes, address, index.nbytes, pyacl.DEVICE_TO_HOST, self.stream)
                self.calls("rt.synchronize_stream", self.stream)
                index.view(np.uint8)[:] = bytes_at(staged, index.nbytes)
        extent = view.extent or 0
        wrong = np.flatnonzero((index < -extent) | (index >= extent))
        if wrong.size:
            where_in = f"element {wrong[0]} of the index [{','.join(map(str, shape))}]"
            text = f"{d.op}: index {index[wrong[0]]} ({where_in}) is out of range for axis {d.attrs[0]} of extent {extent}"
            raise _error(item.place, text)
        plain = np.where(index < 0, index + index.dtype.type(extent), index)
        if view.distinct:
            _check_distinct(item, d, plain.reshape(shape))
        if (index < 0).any():
            address = launch.passing(index.nbytes)
            self._copy_in(launch, address, plain)
        return address, size


def _check_distinct(item: Any, d: Descriptor, index: np.ndarray) -> None:
    # Written elements by number: whole slices by their index alone.
    places = index
    if d.op == "SCATTER_ELEMENTS" and index.size:
        at = list(np.indices(index.shape))
        at[d.attrs[0]] = index
        places = np.ravel_multi_index(tuple(at), d.shape)
    if np.unique(places).size != index.size:
        raise _unsupported(item, d, "two indices name the same element, the last one stays, and aclnn does not fix which")


def _unsupported(item: Any, d: Descriptor, reason: str) -> UnsupportedError:
    file, line = where(item.place)
    text = f"{d.op} does not run on ascend: {reason}. The cpu and npu-sim devices run it"
    return UnsupportedError(text, op=d.op, file=file, line=line)


def _error(place: int, text: str) -> _core.Error:
    # The core's own error: whoever calls makes of it what it makes of an index that the core refuses.
    error = _core.Error(text)
    error.place = place
    return error


# What the host makes, by name: of a descriptor.
_HOST: dict[str, Callable[[Descriptor], np.ndarray]] = {
    "host.random": lambda d: random(int(d.imms[0]), int(d.imms[1]), d.shape, d.dtype.name),
}


def _plan(inputs: int, instructions: list[Any], read: dict[int, Any]) -> list[tuple[int, Any, Descriptor, Template, list[int]]]:
    # Of each instruction its local id, itself, descriptor, template, and the values nothing reads after it.
    # All templates before anything is done: what cannot run there is an error that leaves nothing behind.
    types: dict[int, tuple[int, tuple[int, ...]]] = {local: (code, array.shape) for local, (array, code) in read.items()}
    plan: list[tuple[int, Any, Descriptor, Template, list[int]]] = []
    last: dict[int, int] = {}
    for number, item in enumerate(instructions):
        last |= dict.fromkeys((inputs + item.index, *(operand for operand in item.operands if operand >= 0)), number)
    dead: list[list[int]] = [[] for _ in instructions]
    for value, number in last.items():
        dead[number].append(value)
    for number, item in enumerate(instructions):
        local = inputs + item.index
        d = describe_instruction(item, types)
        template = bind(d, "ascend")
        if isinstance(template, NoTemplate):
            raise _unsupported(item, d, template.reason)
        types[local] = (item.dtype, item.shape)
        plan.append((local, item, d, template, dead[number]))
    return plan


# ---- the process ---------------------------------------------------------------------------------------------------------------------


_FORKED = "was opened before this process was forked: a child must be started anew (spawn)"


class _Process:
    """acl.init of this process, once."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        acl = pyacl.load()
        self.calls = pyacl.Calls(acl)
        self.libraries = aclnn.Libraries(acl)
        code, _ = self.calls.attempt("init")
        if code not in (0, pyacl.INITIALISED_ALREADY):
            raise pyacl.failure(acl, "acl.init", code)
        self.ours = code == 0


class _State:
    process: _Process | None = None
    devices: dict[int, Ascend] = {}
    added: set[int] = set()


def _process() -> _Process:
    if _State.process is None:
        _State.process = _Process()
        atexit.register(shut_down)
    if _State.process.pid != os.getpid():
        raise DeviceError(f"CANN {_FORKED}")
    return _State.process


def number_of(name: str) -> int:
    """N of `ascend:N`. Raises DeviceError."""
    number = name.partition(":")[2]
    if not (number.isascii() and number.isdigit()):
        raise DeviceError(f"there is no device {name!r}; an Ascend NPU is 'ascend:0', 'ascend:1' and so on")
    return int(number)


def open_device(name: str) -> None:
    """Makes `ascend:N` a device of launches. Raises DeviceError, and then nothing has changed."""
    number = number_of(name)
    if _State.process is not None:
        _process()  # what a parent opened is refused, and stays as it is
    device = _State.devices.get(number)
    if device is not None and device.broken:
        device.close()
        del _State.devices[number]
        device = None
    if device is None:
        _State.devices[number] = Ascend(number)
    if number not in _State.added:
        arch = pyacl.arch(_State.devices[number].calls.acl)
        _core.add_device(f"ascend:{number}", arch, lambda *launch: _State.devices[number].run(*launch))
        _State.added.add(number)


def shut_down() -> None:
    """Closes every device and ends what acl.init began."""
    while _State.devices:
        _State.devices.popitem()[1].close()
    process, _State.process = _State.process, None
    atexit.unregister(shut_down)
    if process is not None and process.ours and process.pid == os.getpid():
        process.calls.attempt("finalize")
