"""`dvm.tensor`: a small array type. Operators record instructions; nothing runs until a value is read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import BY_CODE, DataType, describe, find, float32, usable
from ..errors import DtypeError, where
from ..msbc.layout import CODES as OP
from . import array_index, capture
from .array_methods import Methods, Scalar
from .array_record import Recorder, current

Operator = Callable[["Array", Any], "Array"]


def _both(opcode: str) -> tuple[Operator, Operator]:
    # An operator and its reflection.
    return (lambda self, other: self._binary(opcode, other)), (lambda self, other: self._binary(opcode, other, True))


def tensor(data: Any, dtype: Any = None) -> Array:
    """An array from a NumPy array (shared, not copied), a number, nested lists, or a framework's tensor.

    dtype: converts to it; otherwise NumPy arrays keep theirs, Python floats become float32. Raises UnsupportedError for a dtype this
    version does not compute.
    """
    file, line = where(_core.user_place())
    if isinstance(data, Array):
        return data if dtype is None else data.astype(dtype)
    for method in ("asnumpy", "numpy"):
        if not isinstance(data, np.ndarray) and hasattr(data, method):
            data = getattr(data, method)()
    array = np.asarray(data)
    if dtype is None and array.dtype == np.float64 and not isinstance(data, (np.ndarray, np.generic)):
        dtype = float32
    wanted = usable(array.dtype if dtype is None else dtype, op="tensor", file=file, line=line)
    return Array(np.asarray(array, wanted.numpy))


class Array(Methods):
    """A tensor, in memory or still to be computed. `shape`, `dtype`, `ndim`, `size` are known at once; `numpy()` computes.

    Two arrays in one op have one dtype (nothing is promoted); a Python number takes the array's. Errors name op, dtypes, shapes and line.
    """

    __slots__ = ("__weakref__", "_data", "_recorder", "_value", "dtype", "shape")
    __array_ufunc__ = None  # ndarray + Array is Array.__radd__

    def __init__(self, data: np.ndarray | None, recorder: Recorder | None = None, value: int | None = None) -> None:
        self._data = data
        self._recorder = recorder
        self._value = value
        if data is not None:
            found = find(data.dtype)
            assert found is not None
            self.dtype: DataType = found
            self.shape: tuple[int, ...] = data.shape
        else:
            assert recorder is not None and value is not None
            self.dtype = BY_CODE[recorder.graph.dtype(value)]
            self.shape = tuple(recorder.graph.shape(value))
            recorder.live[value] = self

    # ---- values --------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array (read only if they were computed here), running what is pending."""
        if self._data is None:
            assert self._recorder is not None and self._value is not None
            self._recorder.fetch(self._value)
            self._settle()
        if self._recorder is not None and capture.active() is not self._recorder.owner:
            self._recorder = self._value = None  # that captured call is over: its graph is not held any longer
        assert self._data is not None
        return self._data

    def _settle(self) -> None:
        # Takes the computed memory over. A captured call's graph stays known: later ops of that call refer to the value itself.
        if self._data is None and self._recorder is not None and self._value is not None:
            self._data = self._recorder.graph.array(self._value)
            if self._recorder.owner is None and self._data is not None:
                self._recorder = self._value = None

    def item(self) -> Scalar:
        """The value of an array of one element."""
        return self.numpy().item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of rank 0 has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"dvm.tensor({describe(self.dtype, self.shape)}{'' if self._data is not None else ', not computed yet'})"

    def __str__(self) -> str:
        return str(self.numpy())

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

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
        recorder = current()
        operands = tuple(recorder.value(item) for item in (self, *others))
        return Array(None, recorder, recorder.op(OP[name], operands, attrs, shape, dtype.code if dtype else 0))

    def _binary(self, name: str, other: Any, swapped: bool = False) -> Array:
        other = self._operand(name, other)
        recorder = current()
        mine = recorder.value(self)
        imms: tuple[Scalar, ...]
        pair, imms = ((mine, recorder.value(other)), ()) if isinstance(other, Array) else ((mine, -1), (other,))
        return Array(None, recorder, recorder.op(OP[name], pair[::-1] if swapped else pair, imms=imms))

    def _operand(self, name: str, other: Any) -> Array | Scalar:
        # A number as this array's dtype holds it, or an array of the same dtype.
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
        value = value.item() if isinstance(value, np.generic) else value
        if self.dtype.kind == "f":
            return float(value)
        if isinstance(value, float) and not value.is_integer():
            raise self._dtype_error(name, f"the number {value!r} does not fit an array of {self.dtype}; convert it with .astype('float32')")
        return int(value)

    def _dtype_error(self, name: str, text: str, *others: Array) -> DtypeError:
        file, line = where(_core.user_place())
        arrays = (self, *others)
        return DtypeError(
            f"{name}: {text}", op=name, dtypes=[a.dtype.name for a in arrays], shapes=[a.shape for a in arrays], file=file, line=line
        )

    # ---- operators --------------------------------------------------------------------------------

    __add__, __radd__ = _both("ADD")
    __sub__, __rsub__ = _both("SUB")
    __mul__, __rmul__ = _both("MUL")
    __and__, __rand__ = _both("LOGICAL_AND")
    __or__, __ror__ = _both("LOGICAL_OR")
    __lt__, __gt__ = _both("LESS")[0], _both("GREATER")[0]
    __le__, __ge__ = _both("LESS_EQUAL")[0], _both("GREATER_EQUAL")[0]
    __eq__, __ne__ = _both("EQUAL")[0], _both("NOT_EQUAL")[0]  # type: ignore[assignment]
    __rpow__ = _both("POW")[1]

    def __truediv__(self, other: Any) -> Array:
        return self._divide(other, False)

    def __rtruediv__(self, other: Any) -> Array:
        return self._divide(other, True)

    def _divide(self, other: Any, swapped: bool) -> Array:
        if self.dtype.kind != "f":
            raise self._dtype_error(
                "DIV", f"/ takes floats, got {describe(self.dtype, self.shape)}; convert with .astype('float32'), or use //"
            )
        return self._binary("DIV", other, swapped)

    def __floordiv__(self, other: Any) -> Array:
        quotient = self._binary("DIV", other)
        return quotient.floor() if self.dtype.kind == "f" else quotient

    def __pow__(self, other: Any) -> Array:
        return self._binary("MUL", self) if isinstance(other, (int, float)) and other == 2 else self._binary("POW", other)

    def __neg__(self) -> Array:
        return self._op("NEG")

    def __pos__(self) -> Array:
        return self

    def __abs__(self) -> Array:
        return self._op("ABS")

    def __invert__(self) -> Array:
        return self._op("LOGICAL_NOT")

    def __matmul__(self, other: Any) -> Array:
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> Array:
        return tensor(other).matmul(self)

    def __getitem__(self, index: Any) -> Array:
        """NumPy's basic indexing, and one integer array or list for one axis."""
        return array_index.take(self, index)

    __hash__ = object.__hash__  # == compares elements, so identity is what is hashed


def full(shape: Sequence[int], value: Scalar, dtype: Any = float32) -> Array:
    """An array of one value."""
    recorder = current()
    wanted = usable(dtype, op="FULL")
    number = float(value) if wanted.kind == "f" else int(value)
    return Array(None, recorder, recorder.op(OP["FULL"], (), shape=tuple(shape), dtype=wanted.code, imms=(number,)))


def concat(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays side by side along an axis."""
    first = arrays[0]
    return first._op("CONCAT", [first._operand("CONCAT", item) for item in arrays[1:]], (first._axis(axis),))  # type: ignore[misc]
