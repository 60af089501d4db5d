"""The dtype rules and build-time rewrites behind the ops of a kernel body."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..dtypes import DataType, bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint8
from ..errors import ArgumentError, DtypeError
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail, now

Scalar = float | int | ScalarRef
Operand = NDObject | Scalar

COMPARES = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")
FLOATS = (float32, float16, bfloat16, float64)
_EXTRA = (float64, int8, uint8)  # not DVM's; no rule of DVM's speaks of them
_NUMBERS = (float32, float16, bfloat16, int32, *_EXTRA)

# What each op takes, as DVM has it. Its release build computes something for the rest and says nothing.
TAKES: dict[str, tuple[DataType, ...]] = {
    **dict.fromkeys(("Sqrt", "Log", "Exp", "Round", "Floor", "Ceil", "Trunc", "IsFinite", "Div", "Power", "MatMul"), FLOATS),
    **dict.fromkeys(("Mul", "Maximum", "Minimum", "Abs"), _NUMBERS),
    **dict.fromkeys(("Add", "Sub"), (*_NUMBERS, int64)),
    **dict.fromkeys(("LogicalAnd", "LogicalOr"), (bool_, float32, float16, *_EXTRA)),
    "sum": (float32, float64),
    **dict.fromkeys(("max", "min"), (float32, float16, float64)),
    "ElementAny": (float32,),
    "OneHot": (int32,),
}


class Rules:
    """Base of the mixins of Kernel: how a node is added, and what must hold for it."""

    kind: str
    nodes: list[NDObject]
    cast: Callable[[NDObject, Any], NDObject]
    _reduce: Callable[[str, NDObject, Any, bool], NDObject]

    def _node(self, op: str, operands: Sequence[Any], dtype: DataType, place: int, **attrs: Any) -> NDObject:
        for item in operands:
            if isinstance(item, NDObject) and not (item.id < len(self.nodes) and self.nodes[item.id] is item):
                text = f"{item!r} is of another kernel, or of this one before reset(); clone() copies a graph"
                raise fail(ArgumentError, text, place, op=op)
        node = NDObject(len(self.nodes), op, operands, dtype, attrs, place)
        self.nodes.append(node)
        return node

    def _unary(self, op: str, x: NDObject, dtype: DataType | None = None) -> NDObject:
        place = _core.user_place()
        return self._node(op, (taken(x, op, place),), dtype or x.dtype_, place)

    def _binary(self, op: str, a: Operand, b: Operand) -> NDObject:
        place = _core.user_place()
        tensors = [item for item in (a, b) if isinstance(item, NDObject)]
        if not tensors:
            raise fail(ArgumentError, f"one side must be a tensor, got {a!r} and {b!r}", place, op=op)
        dtype = self._same_dtype(op, tensors, place)
        taken(tensors[0], op, place)
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


def tensor_of(x: Any, op: str, place: int | None = None) -> NDObject:
    if not isinstance(x, NDObject):
        raise fail(ArgumentError, f"takes a tensor of this kernel, got {x!r}", _core.user_place() if place is None else place, op=op)
    return x


def taken(x: Any, op: str, place: int, rule: str = "") -> NDObject:
    """x, if it is a tensor of a dtype that the op (or the rule of that name) takes."""
    allowed = TAKES.get(rule or op)
    if allowed is None or tensor_of(x, op, place).dtype_ in allowed:
        return tensor_of(x, op, place)
    what = f"{rule} " if rule else ""
    raise fail(
        DtypeError,
        f"{what}takes {', '.join(str(dtype) for dtype in allowed)}, got {x.dtype_}; cast it first, for instance k.cast(x, {allowed[0]!r})",
        place,
        x,
        op=op,
    )


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
    bits, signed = 8 * dtype.itemsize, dtype is not uint8
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not (math.isfinite(value) and int(value) == value and least <= value <= most):
        raise fail(DtypeError, f"the number {value!r} does not fit a tensor of {dtype}; cast the tensor to float32 first", place, op=op)
    return int(value)


def encode_now(value: Any, dtype: DataType, op: str, place: int) -> float | int:
    """As `encode`, with what a ScalarRef is at this call."""
    number = encode(now(value), dtype, op, place)
    assert isinstance(number, (int, float))
    return number
