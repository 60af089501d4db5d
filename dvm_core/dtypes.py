"""The one table of element types, and every spelling of them that users and frameworks have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import DtypeError

if TYPE_CHECKING:
    import numpy as np


class DataType:
    """An element type. Equal to itself and to any spelling of its name (`dvm.float32 == "float32"`)."""

    __slots__ = ("name", "code", "itemsize", "short", "das", "kind")

    def __init__(self, name: str, code: int, itemsize: int, short: str, das: str, kind: str) -> None:
        self.name = name
        self.code = code  # of native/types.h and of MSBC
        self.itemsize = itemsize  # bytes
        self.short = short  # in summaries: f32[32,64]
        self.das = das  # in tile-level text, DVM's own names
        self.kind = kind  # "f" float, "i" integer, "b" bool

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; bfloat16, which NumPy has not, travels as uint16."""
        import numpy

        return numpy.dtype({"bool": numpy.bool_, "bfloat16": numpy.uint16}.get(self.name, self.name))

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest integer it holds; of bool 0 and 1. Not for floats."""
        if self.kind == "b":
            return 0, 1
        bits = 8 * self.itemsize
        return (0, (1 << bits) - 1) if self.name[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def wrapped(self, number: int) -> int:
        """An integer as an integer dtype's bits hold it: its lowest bits."""
        least, most = self.range
        return (number - least) % (most - least + 1) + least

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DataType):
            return self is other
        return isinstance(other, str) and find(other) is self

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"dvm.{'bool_' if self.name == 'bool' else self.name}"

    def __str__(self) -> str:
        return self.name


# fmt: off
TABLE = (
    #        name        code bytes short   das     kind
    DataType("float32",  1,   4,    "f32",  "fp32", "f"),
    DataType("float16",  2,   2,    "f16",  "fp16", "f"),
    DataType("bfloat16", 3,   2,    "bf16", "bf16", "f"),
    DataType("float64",  4,   8,    "f64",  "fp64", "f"),
    DataType("bool",     5,   1,    "bool", "bool", "b"),
    DataType("int8",     6,   1,    "i8",   "s8",   "i"),
    DataType("uint8",    7,   1,    "u8",   "u8",   "i"),
    DataType("int32",    8,   4,    "i32",  "s32",  "i"),
    DataType("int64",    9,   8,    "i64",  "s64",  "i"),
)
# fmt: on
BY_CODE = {dtype.code: dtype for dtype in TABLE}
for _dtype in TABLE:
    setattr(DataType, _dtype.name, _dtype)  # DataType.float32 is dvm.float32
float32, float16, bfloat16, float64, bool_, int8, uint8, int32, int64 = TABLE

_NAMES = {spelling: dtype for dtype in TABLE for spelling in (dtype.name, dtype.short, dtype.das)}
_NAMES.update({"float": float32, "half": float16, "double": float64, "bool_": bool_, "int": int32, "long": int64})


def find(dtype: Any) -> DataType | None:
    """The table's entry for any spelling, or None: our object, a code, a name, a Python, NumPy, MindSpore or PyTorch dtype."""
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, str):
        return _NAMES.get(dtype.lower())
    if dtype is bool:
        return bool_
    if dtype is float:
        return float32
    if dtype is int:
        return int64
    if isinstance(dtype, int):
        return BY_CODE.get(dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return _NAMES.get(str(name).rpartition(".")[2].lower())


def of(dtype: Any, *, file: str = "", line: int = 0) -> DataType:
    """As `find`, but raises DtypeError for what is no dtype of ours."""
    found = find(dtype)
    if found is None:
        raise DtypeError(f"{dtype!r} is no dtype; there are {', '.join(str(entry) for entry in TABLE)}", file=file, line=line)
    return found


def holds(array: Any, dtype: DataType) -> bool:
    """Whether a NumPy array's items are of that dtype of ours; uint16 ones may be bfloat16's bits."""
    return find(array.dtype) is dtype or (dtype is bfloat16 and array.dtype.name == "uint16")


def describe(dtype: int | DataType, shape: tuple[int, ...] | list[int]) -> str:
    """`f32[32,64]`."""
    entry = dtype if isinstance(dtype, DataType) else BY_CODE.get(dtype)
    return f"{entry.short if entry else '?'}[{','.join(map(str, shape))}]"
