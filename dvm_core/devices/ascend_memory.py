"""Memory of an Ascend device and page-locked memory of the host: blocks that are used again, and what one launch holds of them."""

from __future__ import annotations

import ctypes
import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from ..dtypes import DataType
from . import pyacl

ALIGNMENT = 512  # bytes: blocks of device memory are multiples of it, so that blocks of about a size can be used again


class Blocks:
    """Memory by size, kept for the next launch: the vendor asks not to allocate and free at every step."""

    def __init__(self, calls: pyacl.Calls, settle: Callable[[], object], make: str, free: str, *arguments: int) -> None:
        # settle: waits for the stream, whose work may use memory that was given back
        self.calls, self._settle, self._make, self._free, self._arguments = calls, settle, make, free, arguments
        self._idle: dict[int, list[int]] = defaultdict(list)
        self._size: dict[int, int] = {}

    def take(self, size: int) -> int:
        """A block of at least so many bytes."""
        size = max(math.ceil(size / ALIGNMENT), 1) * ALIGNMENT
        if self._idle[size]:
            return self._idle[size].pop()
        code, address = self.calls.attempt(self._make, size, *self._arguments)
        if code == pyacl.NO_MEMORY and self.release():
            code, address = self.calls.attempt(self._make, size, *self._arguments)
        if code:
            raise pyacl.failure(self.calls.acl, f"acl.{self._make} of {size} bytes", code)
        self._size[address] = size
        return address

    def give(self, address: int) -> None:
        """The block may be used again."""
        self._idle[self._size[address]].append(address)

    def release(self) -> bool:
        """Frees what nobody uses. Whether there was any."""
        self._settle()
        blocks = [address for idle in self._idle.values() for address in idle]
        self._idle.clear()
        for address in blocks:
            del self._size[address]
            self.calls.attempt(self._free, address)
        return bool(blocks)

    def close(self) -> None:
        """Frees every block, also what a launch that failed has left."""
        self._idle.clear()
        while self._size:
            self.calls.attempt(self._free, self._size.popitem()[0])


class LaunchMemory:
    """The memory of one launch. A stream works in order: device memory that no later call wants may be given to one at once; the host's
    only when the stream has been waited for."""

    def __init__(self, device: Blocks, host: Blocks) -> None:
        self._device, self._host = device, host
        self.values: dict[int, tuple[int, DataType, tuple[int, ...]]] = {}  # by local id: address on the device
        self.arrays: dict[int, np.ndarray] = {}  # of values that came from the host
        self._passing: list[int] = []  # temporaries and workspaces
        self._staged: list[int] = []

    def value(self, local: int, dtype: DataType, shape: tuple[int, ...]) -> int:
        """Memory of a value, until it is dropped."""
        address = self._device.take(math.prod(shape) * dtype.itemsize)
        self.values[local] = (address, dtype, shape)
        return address

    def drop(self, local: int) -> None:
        """Nothing reads the value any more."""
        self._device.give(self.values.pop(local)[0])

    def passing(self, size: int) -> int:
        """Device memory for the instruction at work."""
        self._passing.append(self._device.take(size))
        return self._passing[-1]

    def passed(self) -> None:
        """The instruction's calls have been made."""
        while self._passing:
            self._device.give(self._passing.pop())

    def staged(self, size: int) -> int:
        """Page-locked host memory, until the end."""
        self._staged.append(self._host.take(size))
        return self._staged[-1]

    def end(self) -> None:
        """Everything may be used again."""
        self.passed()
        for local in list(self.values):
            self.drop(local)
        while self._staged:
            self._host.give(self._staged.pop())


def bytes_at(address: int, size: int) -> np.ndarray:
    """Page-locked host memory as an array."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
