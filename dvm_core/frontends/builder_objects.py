"""What a kernel body handles: tensors, numbers and dimension lists that get their values when the kernel is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..dtypes import DataType, of
from ..errors import ArgumentError, DtypeError, Error, where

Dims = tuple[int, ...]


class Late:
    """A value that is known at each call, not when the kernel is built."""

    value: Any = None

    def get(self) -> Any:
        if self.value is None:
            raise ArgumentError(f"a {type(self).__name__} has no value yet: call .update(...) before the kernel runs")
        return self.value


class ScalarRef(Late):
    """A number given at each call; an int is int64, a float float32, unless a dtype is named."""

    def __init__(self, value: float | int | None = None, dtype: Any = None) -> None:
        self.dtype = None if dtype is None else of(dtype)
        self.value = value

    def update(self, value: float | int) -> None:
        """Sets the number for later calls. Raises DtypeError for a fraction where an integer was declared."""
        number = value.item() if hasattr(value, "item") else value
        if not isinstance(number, (int, float)):
            raise ArgumentError(f"a ScalarRef takes a number, got {value!r}")
        if self.dtype is not None and self.dtype.kind == "i" and number != number // 1:
            raise DtypeError(f"the number {number!r} is no {self.dtype}, as this ScalarRef was declared")
        self.value = number


class IntArrayRef(Late):
    """A list of dimensions or axes given at each call."""

    def __init__(self, value: Iterable[int] | None = None) -> None:
        self.value = None if value is None else [int(item) for item in value]

    def update(self, value: Iterable[int]) -> None:
        """Sets the list for later calls."""
        self.value = [int(item) for item in value]

    def shape(self) -> list[int]:
        """The list now in force."""
        return list(self.get())


class NDObject:
    """A tensor of a kernel: made by one op, known by dtype when built and by shape when run."""

    __slots__ = ("attrs", "dims", "dtype_", "id", "name", "op", "operands", "place")

    def __init__(self, number: int, op: str, operands: Sequence[Any], dtype: DataType, attrs: dict[str, Any], place: int) -> None:
        self.id = number
        self.op = op  # DVM's name for it: Load, Add, Reduce, ...
        self.operands = tuple(operands)  # NDObject, number or ScalarRef
        self.attrs = attrs
        self.dtype_ = dtype
        self.dims: Dims | None = None  # of the last run, or declared; None: not known yet
        self.place = place
        self.name = ""

    def dtype(self) -> DataType:
        """Element type; compares equal to its name as a string."""
        return self.dtype_

    def shape(self) -> list[int]:
        """Dimensions of the last run (or declared ones); `[-1]` while nothing is known, as for a load of any shape."""
        return [-1] if self.dims is None else list(self.dims)

    def __repr__(self) -> str:
        return f"%{self.id}[{','.join(map(str, self.shape()))}]<{self.dtype_}>"


def fail(kind: type[Error], message: str, place: int, *operands: Any, op: str = "") -> Error:
    """An error of `kind` with the user's line and the operands' dtypes and shapes."""
    file, line = where(place)
    tensors = [item for item in operands if isinstance(item, NDObject)]
    return kind(
        f"{op}: {message}" if op else message,
        op=op,
        dtypes=[item.dtype_.name for item in tensors],
        shapes=[item.dims for item in tensors if item.dims is not None],
        file=file,
        line=line,
    )


def numbers(value: Any) -> tuple[int, ...] | IntArrayRef:
    """Axes or dimensions as given: a list, a single int, an IntArrayRef."""
    if isinstance(value, IntArrayRef):
        return value
    if isinstance(value, int):
        return (value,)
    return tuple(int(item) for item in value)


def now(value: Any) -> Any:
    """What stands for this call behind a late value."""
    return value.get() if isinstance(value, Late) else value
