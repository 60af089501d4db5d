"""The dtype rules and build-time rewrites behind the ops of a kernel body."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core, devices
from ..devices import chips, rules
from ..dtypes import DataType, bool_, float32, int64
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, DtypeError, Error
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail, now

Scalar = float | int | ScalarRef
Operand = NDObject | Scalar

COMPARES = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")

# What each op takes: what some chip or the cpu has. float32 comes first where it is among them: what a message proposes.
TAKES: dict[str, tuple[DataType, ...]] = {
    op: tuple(sorted((dtype_of(dtype) for dtype in (*group.ways, *group.extra)), key=lambda dtype: dtype is not float32))
    for op, group in chips.BY_OP.items()
}

REDUCTIONS = {"sum": "sum-dtype", "max": "reduce-dtype", "min": "reduce-dtype"}  # the rule of what each takes
_INT64 = ("Mul", "Maximum", "Minimum", "Div", "Power", "Abs")


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
        a, b = self._one_dtype(op, (a, b), place)
        dtype = taken(tensors[0], op, place).dtype_
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
                raise _mixed("mixed-cube", first, other, op, place)
        return first.dtype_

    def _one_dtype(self, op: str, operands: Sequence[Any], place: int) -> list[Any]:
        """The operands, all tensors of the first one's dtype; on a faithful device the others as if they were."""
        first = next(item for item in operands if isinstance(item, NDObject))
        found = []
        for item in operands:
            if isinstance(item, NDObject) and item.dtype_ is not tensor_of(first, op, place).dtype_:
                error = _mixed("mixed-dtypes", first, item, op, place)
                if not reproduced("mixed-dtypes"):
                    raise error
                as_first = functools.partial(_read_as, first.dtype_)
                item = self._node("Reinterpret", (item,), first.dtype_, place, misuse=error, exchange=as_first)
            found.append(item)
        return found


def misuse(name: str, place: int, *operands: Any, op: str = "", kind: type[Error] = DtypeError, **values: Any) -> Error:
    """The error of a rule of devices/rules.py, with the user's line."""
    rule = rules.BY_NAME[name]
    text = rule.strict.format(**values)
    if rule.published and devices.faithful():
        text = f"{rule.published} ({text})"
    error = fail(kind, f"{text} (rule {name})", place, *operands, op=op)
    error.rule = name
    return error


def reproduced(name: str) -> bool:
    """Whether the device in use does what the hardware makes of that misuse."""
    return rules.BY_NAME[name].faithful != "refuse" and devices.faithful()


def _mixed(name: str, first: NDObject, other: NDObject, op: str, place: int) -> Error:
    return misuse(name, place, first, other, op=op, first=first.dtype_, other=other.dtype_, cast=repr(first.dtype_))


def _read_as(dtype: DataType, array: np.ndarray, dry: bool) -> np.ndarray:
    return rules.reinterpreted(array, dtype)


def tensor_of(x: Any, op: str, place: int | None = None) -> NDObject:
    if not isinstance(x, NDObject):
        null = ", DVM's null object: what a reduction gives of a dtype that it does not take" if x is None else ""
        raise fail(ArgumentError, f"takes a tensor of this kernel, got {x!r}{null}", _core.user_place() if place is None else place, op=op)
    return x


def taken(x: Any, op: str, place: int, rule: str = "") -> NDObject:
    """x, if it is a tensor of a dtype that the op (or the rule of that name) takes."""
    allowed = TAKES.get(rule or op)
    if allowed is None or tensor_of(x, op, place).dtype_ in allowed:
        return tensor_of(x, op, place)
    name = REDUCTIONS.get(rule, "op-dtype")
    if x.dtype_ is int64 and op in _INT64:
        name = "int64-op"
    names = ", ".join(str(dtype) for dtype in allowed)
    raise misuse(name, place, x, op=op, kind=DtypeError, allowed=names, reduction=rule, dtype=x.dtype_, cast=repr(allowed[0]))


def encode(value: Any, dtype: DataType, op: str, place: int, built: bool = True) -> Scalar:
    """A number as the tensor's dtype holds it. ScalarRefs are encoded at the call, and so is, on a faithful device, what no dtype holds."""
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
    least, most = dtype.range
    if not (math.isfinite(value) and int(value) == value and least <= value <= most):
        if not reproduced("number-range"):
            raise misuse("number-range", place, op=op, number=value, dtype=dtype)
        return value if built else rules.encoded(value, dtype)
    return int(value)


def encode_now(value: Any, dtype: DataType, op: str, place: int) -> float | int:
    """As `encode`, with what a ScalarRef is at this call."""
    number = encode(now(value), dtype, op, place, built=False)
    assert isinstance(number, (int, float))
    return number
