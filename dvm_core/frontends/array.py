"""`dvm.tensor`: a small array type. Operators record instructions; nothing runs until a value is read."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .. import _core
from ..bf16 import convert_from_bf16, convert_to_bf16
from ..dtypes import TABLE, DataType, bfloat16, bool_, describe, float32, float64, int32, int64
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, DtypeError, convert, native, where
from ..msbc.layout import CODES as OP
from . import array_index, array_record
from .array_exchange import Exchange
from .array_methods import Methods, Scalar
from .array_record import record
from .array_select import Selection
from .array_windows import Windows

# Comparisons with a number beyond the dtype's range: those in which the number (1: larger, -1: smaller than all) makes every element true.
_BEYOND = {"LESS": (1,), "LESS_EQUAL": (1,), "GREATER": (-1,), "GREATER_EQUAL": (-1,), "EQUAL": (), "NOT_EQUAL": (1, -1)}
_AS_THEY_ARE = {dtype.numpy: dtype.code for dtype in TABLE if dtype is not bfloat16}  # NumPy's dtypes that are ours


def tensor(data: Any, dtype: Any = None) -> Array:
    """An array from a NumPy array (shared, not copied), a number, nested lists, or a framework's tensor.

    dtype: converts to it; otherwise NumPy arrays keep theirs, Python floats become float32. With dtype bfloat16 a uint16 array holds its
    bits, and anything else numbers to be rounded. Raises DtypeError for a dtype that is none of ours.
    """
    if dtype is None and data is not None:
        made = _core.array_of(data)
        if made is not None:
            return made
    file, line = where(_core.user_place())
    if data is None:
        raise ArgumentError("dvm.tensor makes an array of numbers, an array or a tensor; this is None", file=file, line=line)
    if isinstance(data, Array):
        return data if dtype is None else data.astype(dtype)
    array = numpy_of(data)
    if dtype is None and array.dtype == np.float64 and not isinstance(data, (np.ndarray, np.generic)):
        dtype = float32
    wanted = dtype_of(array.dtype if dtype is None else dtype, file=file, line=line)
    if wanted.kind != "f" and isinstance(data, (bool, int, float, list, tuple)):
        for extreme in (array.min(), array.max()) if array.size and array.dtype.kind in "iufO" and wanted.kind == "i" else ():
            number = float(extreme) if array.dtype.kind == "f" else int(extreme)
            _number_of("tensor", math.trunc(number) if math.isfinite(number) else number, wanted)
    if wanted is bfloat16:
        return _on(array if array.dtype == np.uint16 else convert_to_bf16(array), wanted.code)
    return _on(np.asarray(convert_from_bf16(array) if array.dtype.name == "bfloat16" else array, wanted.numpy), wanted.code)


def constant(data: Any, dtype: Any = None) -> Array:
    """An array with a copy of the values that nobody can write: for weights that stay as they are.

    data, dtype: as `tensor` takes them; what is pending is run. What products of it need of its memory, packed, is made at the first and
    kept as long as the array, which takes as much memory again (`dvm.stats()["panels"]`). Never changes a bit of a result.
    """
    array = tensor(data, dtype)
    with native(_core.user_place()):
        return _core.constant_of(array)


def numpy_of(data: Any) -> np.ndarray:
    """An argument as a NumPy array, without a copy where it is one: NumPy's, ours, MindSpore's, PyTorch's. bfloat16 comes as its bits
    (uint16), or in a dtype of that name."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, Array):
        return data.bits() if data.dtype is bfloat16 else data.numpy()
    if str(getattr(data, "dtype", "")) == "torch.bfloat16":  # which PyTorch has no way to NumPy for
        return data.view(sys.modules["torch"].int16).numpy().view(np.uint16)
    for method in ("asnumpy", "numpy"):
        if hasattr(data, method):
            return np.asarray(getattr(data, method)())
    return np.asarray(data)


def _on(array: np.ndarray, code: int) -> Array:
    # Strides that fall between the items exist in NumPy (a field of a record) and not here.
    if not array.flags.c_contiguous and any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    try:
        return _core.array_from_numpy(array, code)
    except _core.Error as error:
        raise convert(error, place=_core.user_place()) from None


class Array(_core.Tensor, Methods, Selection, Windows, Exchange):
    """A tensor, in memory or still to be computed. `shape`, `dtype`, `ndim`, `size` are known at once; `numpy()` computes.

    Two arrays in one op have one dtype (nothing is promoted); a Python number takes the array's. Errors name op, dtypes, shapes and line.
    Operators are in the core (native/bind_array.cc), which comes back to the methods here for what is not plain.
    """

    __slots__ = ("__weakref__",)
    __repr__ = Exchange.__repr__  # before the core's own

    # ---- values --------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array (read only if they were computed here), running what is pending. bfloat16, which NumPy has not, as
        float32; `bits` has its memory."""
        found = self._memory()
        return convert_from_bf16(found) if self.dtype is bfloat16 else found

    def bits(self) -> np.ndarray:
        """A bfloat16 array's memory as uint16, running what is pending."""
        if self.dtype is not bfloat16:
            raise self._dtype_error("bits", f"is for bfloat16 arrays, got {describe(self.dtype, self.shape)}; use .numpy()")
        return self._memory()

    def _memory(self) -> np.ndarray:
        recording = _core.active_capture()
        if recording is not None:
            recording.reads = True  # what was read may be another value at the next call: no replay can stand for this one
        try:
            return self._numpy()
        except _core.Error as error:
            raise convert(error) from None

    def item(self) -> Scalar:
        """The value of an array of one element."""
        found = self._item()
        return self.numpy().item() if found is None else found

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        """The parts along the first axis."""
        return (self[i] for i in range(len(self)))

    def __str__(self) -> str:
        return str(self.numpy())

    @property
    def T(self) -> Array:
        """Axes reversed."""
        return self.transpose()

    # ---- recording --------------------------------------------------------------------------------

    def _op(
        self,
        name: str,
        others: Sequence[Array] = (),
        attrs: tuple[int, ...] = (),
        shape: tuple[int, ...] | None = None,
        dtype: DataType | None = None,
    ) -> Array:
        return record(OP[name], (self, *others), attrs, shape, dtype.code if dtype else 0)

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Array:
        if name in _BEYOND and self.dtype.kind != "f" and isinstance(other, (int, np.integer)):
            least, most = self.dtype.range
            if not least <= other <= most:  # as NumPy: compared as numbers
                return full(self.shape, (1 if other > most else -1) in _BEYOND[name], bool_)
        if name == "POW" and not swapped and self.dtype.kind != "f" and isinstance(other, (int, np.integer)) and other < 0:
            raise _argument_error(name, f"{describe(self.dtype, self.shape)} to the power {other}: integers have no negative powers; "
                                        f"convert with .astype('float64')")
        if name in ("EQUAL", "NOT_EQUAL") and not _is_operand(other):
            return NotImplemented  # another kind of thing is not equal
        other = self._operand(name, other)
        imms: tuple[Scalar, ...]
        pair, imms = ((self, other), ()) if isinstance(other, Array) else ((self, None), (other,))
        return record(OP[name], pair[::-1] if swapped else pair, imms=imms)

    def _operand(self, name: str, other: Any) -> Array | Scalar:
        # A number as this array's dtype holds it, or an array of the same dtype.
        if not _is_operand(other):
            given = f"{type(other).__name__} {str(other)[:40]!r}"
            raise self._dtype_error(name, f"takes an array or a number beside {describe(self.dtype, self.shape)}, got {given}")
        if isinstance(other, (bool, int, float, np.generic)):
            return self._number(name, other)
        other = tensor(other)
        if other.dtype is not self.dtype:
            raise self._dtype_error(
                name,
                f"operands are {describe(self.dtype, self.shape)} and {describe(other.dtype, other.shape)}, and nothing is promoted "
                f"between arrays; convert one with .astype({self.dtype.name!r})",
                other,
            )
        return other

    def _number(self, name: str, value: Any) -> Scalar:
        return _number_of(name, value, self.dtype)

    def _dtype_error(self, name: str, text: str, *others: Array) -> DtypeError:
        file, line = where(_core.user_place())
        arrays = (self, *others)
        return DtypeError(
            f"{name}: {text}", op=name, dtypes=[a.dtype.name for a in arrays], shapes=[a.shape for a in arrays], file=file, line=line
        )

    # ---- operators --------------------------------------------------------------------------------

    def _divide(self, other: Any, swapped: bool) -> Array:
        if self.dtype.kind == "f":
            return self._binary("DIV", other, swapped)
        if not isinstance(other, (bool, int, float, np.generic)):  # integers and bools are divided in float64, as in NumPy
            other = self._operand("DIV", other).astype(float64)  # type: ignore[union-attr]
        return self.astype(float64)._binary("DIV", other, swapped)

    def __floordiv__(self, other: Any) -> Array:
        quotient = self._binary("DIV", other)
        return quotient.floor() if self.dtype.kind == "f" else quotient

    def __pow__(self, other: Any) -> Array:
        return self * self if isinstance(other, (int, float)) and other == 2 else self._binary("POW", other)

    def __rpow__(self, other: Any) -> Array:
        return self._binary("POW", other, True)

    def __pos__(self) -> Array:
        return self

    def __matmul__(self, other: Any) -> Array:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Array:
        return tensor(other).matmul(self)

    def __getitem__(self, index: Any) -> Array:
        """NumPy's basic indexing, and one integer array or list for one axis."""
        return array_index.take(self, index)

    __hash__ = object.__hash__  # == compares elements, so identity is what is hashed


def _is_operand(value: Any) -> bool:
    # What stands beside an array: a number, or what an array is made of.
    if isinstance(value, np.generic):
        return value.dtype.kind in "biuf" or value.dtype.name == "bfloat16"
    if isinstance(value, (bool, int, float, complex, np.ndarray, _core.Tensor, list, tuple)):
        return True
    return any(hasattr(type(value), name) for name in ("__array__", "__array_interface__", "__dlpack__", "numpy", "asnumpy", "__buffer__"))


def _argument_error(name: str, text: str) -> ArgumentError:
    file, line = where(_core.user_place())
    return ArgumentError(f"{name}: {text}", op=name, file=file, line=line)


def _number_of(name: str, value: Scalar | np.generic, dtype: DataType) -> Scalar:
    """A number as an array of a dtype holds it. Raises ArgumentError for one it does not hold: nothing wraps around unseen."""
    number: Any = value.item() if isinstance(value, np.generic) else value
    if dtype.kind == "f":
        try:
            return float(number)
        except OverflowError:
            raise _argument_error(name, f"{str(number)[:20]}... does not fit {dtype}") from None
    least, most = dtype.range
    if isinstance(number, float) and not number.is_integer():
        raise _argument_error(name, f"the number {number!r} does not fit an array of {dtype}; convert the array with .astype('float32')")
    if not least <= number <= most:
        wider = next((other.name for other in (int32, int64) if other.range[0] <= number <= other.range[1]), "float64")
        raise _argument_error(name, f"the number {number!r} does not fit an array of {dtype} ({least} to {most}); "
                                    f"convert the array with .astype({wider!r})")
    return int(number)


def full(shape: Sequence[int], value: Scalar, dtype: Any = float32) -> Array:
    """An array of one value."""
    wanted = dtype_of(dtype)
    number = _number_of("FULL", value, wanted)
    return record(OP["FULL"], (), (), tuple(shape), wanted.code, (number,))


def concat(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays side by side along an axis."""
    first = arrays[0]
    return first._op("CONCAT", [first._operand("CONCAT", item) for item in arrays[1:]], (first._axis(axis),))  # type: ignore[misc]


for _part in (Methods, Selection, Windows, Exchange):  # Python's own messages name methods by this
    for _method in vars(_part).values():
        if isinstance(_method, FunctionType):
            _method.__qualname__ = f"dvm.tensor.{_method.__name__}"

_core.set_array_class(Array, array_record.flush, TABLE, np.ndarray, _AS_THEY_ARE)
