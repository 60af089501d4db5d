"""Arrays of other libraries: DLPack both ways, NumPy's functions, and what an array shows of itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..dtypes import bfloat16, describe
from ..errors import ArgumentError, convert, where

if TYPE_CHECKING:
    from ..dtypes import DataType
    from .array import Array

_CPU = (1, 0)  # DLPack's device: type, number
_READ_ONLY = "the array is read only, which a reader older than DLPack 1 cannot be told: pass copy=True, or take x.numpy().copy()"

# NumPy's functions that operators call with an array on the left.
_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    getattr(np, name): getattr(operator, short)
    for name, short in {
        "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "truediv", "floor_divide": "floordiv", "remainder": "mod",
        "power": "pow", "matmul": "matmul", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor", "left_shift": "lshift",
        "right_shift": "rshift", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    }.items()
}  # fmt: skip


def from_dlpack(data: Any) -> Array:
    """An array on the memory of anything with `__dlpack__` that lives on the CPU; nothing is copied. Raises ArgumentError for another
    device or a dtype that is none of ours."""
    file, line = where(_core.user_place())
    device, export = getattr(data, "__dlpack_device__", None), getattr(data, "__dlpack__", None)
    if not callable(device) or not callable(export):
        raise ArgumentError(f"from_dlpack takes an object with __dlpack__, got {type(data).__name__}", file=file, line=line)
    place = device()
    if not isinstance(place, tuple) or len(place) != 2 or not all(isinstance(number, int) for number in place):
        raise ArgumentError(f"from_dlpack: __dlpack_device__ of {type(data).__name__} gave {place!r}, not the type and number of a device",
                            file=file, line=line)
    if (kind := int(place[0])) != _CPU[0]:
        raise ArgumentError(f"from_dlpack: the data lives on a device of type {kind}; copy it to the CPU first", file=file, line=line)
    if hasattr(data, "untyped_storage"):
        # PyTorch's capsule keeps the tensor, whose storage `x.data = other` exchanges: it is not what keeps the memory.
        found = _core.array_of(data)
        if found is not None:
            return found
    try:
        capsule = export(max_version=(1, 0))
    except TypeError:  # older than DLPack 1
        capsule = export()
    try:
        return _core.array_from_dlpack(capsule)
    except _core.Error as error:
        raise convert(error, place=_core.user_place()) from None


class Exchange:
    """Mixed into Array."""

    __slots__ = ()
    if TYPE_CHECKING:
        dtype: DataType
        shape: tuple[int, ...]
        in_memory: bool
        given_away: bool
        on_device: bool
        constant: bool
        _memory: Callable[[], np.ndarray]
        _numpy: Callable[[], np.ndarray]

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU: what lives on a simulated device is copied to it."""
        return _CPU

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        """The array's memory as a DLPack capsule, running what is pending. What was computed here is read only; a constant, since not every
        library minds that, and what lives on a simulated device are copied."""
        if stream is not None or (dl_device is not None and tuple(dl_device) != _CPU):
            raise BufferError("a dvm.tensor is exported on the CPU, without a stream")
        memory = self._memory()
        if self.on_device and copy is False:
            raise BufferError("the array lives on a simulated device, so it is exported as a copy")
        if self.constant and copy is False:
            raise BufferError("the array is a constant, whose memory nobody may write, so it is exported as a copy")
        if copy or self.constant or self.on_device:  # a write to what the host has of it would not reach the device
            memory = memory.copy()
        elif not memory.flags.writeable and (max_version is None or max_version[0] < 1):
            raise BufferError(_READ_ONLY)
        return _core.exported(memory, self.dtype.code).__dlpack__(max_version=max_version)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # ndarray + Array and NumPy's numbers come here; any other function of NumPy's has another name here, or none.
        called = _OPERATORS.get(function)
        if method == "__call__" and called is not None and not kwargs and len(inputs) == 2:
            from .array import tensor

            left, right = (item.item() if isinstance(item, np.generic) else tensor(item) if isinstance(item, np.ndarray) else item
                           for item in inputs)
            return called(left, right)
        name = function.__name__
        own = f"x.{name}()" if hasattr(type(self), name) else "a method of the array"
        raise TypeError(f"np.{name} does not take a dvm.tensor: call {own}, or np.{name}(x.numpy()) to leave it to NumPy")

    def __repr__(self) -> str:
        """Shape, dtype and the values, abbreviated, if they are in memory: showing an array never computes one, and no trace sees it."""
        text = describe(self.dtype, self.shape)
        if not self.in_memory:
            return f"dvm.tensor({text}, {'given away to a call' if self.given_away else 'not computed yet'})"
        from ..bf16 import convert_from_bf16

        values = self._numpy()
        shown = np.array2string(convert_from_bf16(values) if self.dtype is bfloat16 else values, separator=", ", prefix="dvm.tensor(")
        return f"dvm.tensor({shown}, {text})"
