"""A tensor as the source alone tells it: its dtype and dimensions, each as far as known."""
from __future__ import annotations

import re
from dataclasses import dataclass

Dim = int | str | None  # an extent, a symbol of the user's ("B"), or unknown

DTYPES = {
    "bool": "bool", "bool_": "bool", "int8": "i8", "uint8": "u8", "int32": "i32", "int": "i32", "int64": "i64", "long": "i64",
    "float16": "f16", "half": "f16", "bfloat16": "bf16", "float32": "f32", "float": "f32", "float64": "f64", "double": "f64",
}
SHORT = frozenset(DTYPES.values())
ORDER = ("bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64")
FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
NOTHING = object()  # a literal None; None itself is what is not known
_MOST = 1 << 40  # an extent that can be meant
_ANNOTATION = re.compile(r"\s*(\w+)\s*\[([^\]]*)\]\s*")


class Mismatch(Exception):
    """An operation that its operands' shapes or dtypes do not allow; the text says which and why."""


@dataclass(frozen=True)
class TensorType:
    """dims None: not even the rank is known."""

    dtype: str | None = None
    dims: tuple[Dim, ...] | None = None

    def __str__(self) -> str:
        if self.dims is None:
            return f"{self.dtype or '?'}[…]"
        return f"{self.dtype or '?'}[{','.join('?' if dim is None else str(dim) for dim in self.dims)}]"

    @property
    def tells(self) -> bool:
        """Whether there is something in it worth showing."""
        return self.dims is not None and (self.dtype is not None or any(dim is not None for dim in self.dims))

    def reshaped(self, dims: tuple[Dim, ...] | None) -> TensorType:
        return TensorType(self.dtype, dims)


UNKNOWN = TensorType()


def annotated(text: str) -> TensorType | None:
    """The type an annotation such as "f32[B, 64]" gives, None if it is no such annotation."""
    match = _ANNOTATION.fullmatch(text)
    if match is None:
        return None
    dtype = match[1] if match[1] in SHORT else DTYPES.get(match[1])
    if dtype is None:
        return None
    parts = [part.strip() for part in match[2].split(",") if part.strip()]
    return TensorType(dtype, tuple(_dim(part) for part in parts))


def _dim(text: str) -> Dim:
    if text.isdecimal():
        return int(text) if len(text) < 14 and int(text) < _MOST else None
    return text if text.isidentifier() and text != "_" else None


def join(a: TensorType, b: TensorType) -> TensorType:
    """What holds on both of two ways to a line."""
    dtype = a.dtype if a.dtype == b.dtype else None
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return TensorType(dtype)
    return TensorType(dtype, tuple(x if x == y else None for x, y in zip(a.dims, b.dims, strict=True)))


def promoted(a: str | None, b: str | None) -> str | None:
    """The dtype of an operation on two tensors."""
    if a is None or b is None:
        return None
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    return max(a, b, key=ORDER.index)


def broadcast(a: TensorType, b: TensorType) -> tuple[Dim, ...] | None:
    """Dimensions of an elementwise result. Raises Mismatch."""
    if a.dims is None or b.dims is None:
        return None
    rank = max(len(a.dims), len(b.dims))
    left, right = ((1,) * (rank - len(d)) + d for d in (a.dims, b.dims))
    return tuple(_wider(x, y, a, b) for x, y in zip(left, right, strict=True))


def _wider(x: Dim, y: Dim, a: TensorType, b: TensorType) -> Dim:
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    if isinstance(x, int) and isinstance(y, int):
        raise Mismatch(f"{a} and {b} cannot be broadcast: {x} against {y}")
    # One of them is the result's extent if it is known to be more than 1.
    return x if isinstance(x, int) else y if isinstance(y, int) else None


def matmul(a: TensorType, b: TensorType) -> TensorType:
    """Raises Mismatch."""
    dtype = promoted(a.dtype, b.dtype)
    if a.dims is None or b.dims is None:
        return TensorType(dtype)
    if not a.dims or not b.dims:
        raise Mismatch(f"a product of matrices needs at least one dimension on each side: {a} @ {b}")
    inner, outer = a.dims[-1], b.dims[-2] if len(b.dims) > 1 else b.dims[0]
    if isinstance(inner, int) and isinstance(outer, int) and inner != outer:
        raise Mismatch(f"{a} @ {b}: the left side has {inner} columns, the right side {outer} rows")
    rows = a.dims[-2:-1]
    columns = b.dims[-1:] if len(b.dims) > 1 else ()
    batch = broadcast(TensorType(a.dtype, a.dims[:-2]), TensorType(b.dtype, b.dims[:-2]))
    return TensorType(dtype, None if batch is None else (*batch, *rows, *columns))


def size(dims: tuple[Dim, ...]) -> int | None:
    """Number of elements, None if an extent is not a known number."""
    count = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        count *= dim
    return count
