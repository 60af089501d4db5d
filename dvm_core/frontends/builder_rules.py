"""The dtype rules and build-time rewrites behind the ops of a kernel body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..dtypes import DataType, bool_, float32, float64
from ..errors import ArgumentError, DtypeError, UnsupportedError
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail

Scalar = float | int | ScalarRef
Operand = NDObject | Scalar

COMPARES = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")
FLOATS = (float32, float64)


class Rules:
    """Base of the mixins of Kernel: how a node is added, and what must hold for it."""

    nodes: list[NDObject]
    cast: Callable[[NDObject, Any], NDObject]
    _reduce: Callable[[str, NDObject, Any, bool], NDObject]

    def _node(self, op: str, operands: Sequence[Any], dtype: DataType, place: int, **attrs: Any) -> NDObject:
        node = NDObject(len(self.nodes), op, operands, dtype, attrs, place)
        self.nodes.append(node)
        return node

    def _unary(self, op: str, x: NDObject, dtype: DataType | None = None) -> NDObject:
        place = _core.user_place()
        return self._node(op, (tensor_of(x, op, place),), dtype or x.dtype_, place)

    def _float_unary(self, op: str, x: NDObject, dtype: DataType | None = None) -> NDObject:
        if tensor_of(x, op).dtype_ not in FLOATS:
            raise fail(DtypeError, f"takes floats, got {x.dtype_}; cast it to float32 first", _core.user_place(), x, op=op)
        return self._unary(op, x, dtype)

    def _binary(self, op: str, a: Operand, b: Operand) -> NDObject:
        place = _core.user_place()
        tensors = [item for item in (a, b) if isinstance(item, NDObject)]
        if not tensors:
            raise fail(ArgumentError, f"one side must be a tensor, got {a!r} and {b!r}", place, op=op)
        dtype = self._same_dtype(op, tensors, place)
        sides = [item if isinstance(item, NDObject) else encode(item, dtype, op, place) for item in (a, b)]
        return self._node(op, sides, bool_ if op in COMPARES else dtype, place)

    def _shaped(self, op: str, x: NDObject, **attrs: Any) -> NDObject:
        place = _core.user_place()
        return self._node(op, (tensor_of(x, op, place),), x.dtype_, place, **attrs)

    def _full(self, value: Scalar, shape: tuple[int, ...] | IntArrayRef, dtype: DataType, place: int) -> NDObject:
        return self._node("BroadcastS", (value,), dtype, place, shape=shape)

    def _same_dtype(self, op: str, tensors: list[NDObject], place: int) -> DataType:
        first = tensor_of(tensors[0], op, place)
        for other in tensors[1:]:
            if tensor_of(other, op, place).dtype_ is not first.dtype_:
                raise fail(
                    DtypeError,
                    f"operands are {first.dtype_} and {other.dtype_}, and nothing is promoted between tensors; cast one of them, "
                    f"for instance k.cast(x, dvm.{first.dtype_!r})".replace("dvm.dvm.", "dvm."),
                    place,
                    first,
                    other,
                    op=op,
                )
        return first.dtype_

    def _missing(self, what: str) -> Any:
        raise fail(UnsupportedError, f"{what} is not part of this version", _core.user_place())


def tensor_of(x: Any, op: str, place: int | None = None) -> NDObject:
    if not isinstance(x, NDObject):
        raise fail(ArgumentError, f"takes a tensor of this kernel, got {x!r}", _core.user_place() if place is None else place, op=op)
    return x


def encode(value: Any, dtype: DataType, op: str, place: int) -> Scalar:
    """A number as the tensor's dtype holds it. ScalarRefs are encoded at the call."""
    if isinstance(value, ScalarRef):
        return value
    if isinstance(value, bool):
        value = int(value)
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise fail(ArgumentError, f"takes tensors and numbers, got {value!r}", place, op=op)
    if dtype.kind == "f":
        return float(value)
    if dtype.kind == "b":
        return int(value != 0)
    if int(value) != value:
        raise fail(DtypeError, f"the number {value!r} does not fit a tensor of {dtype}; cast the tensor to float32 first", place, op=op)
    return int(value)
