"""From a built kernel to instructions: one rule per node, applied at every call with the real shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core, devices
from ..dtypes import float32
from ..errors import ShapeError, convert
from ..msbc.layout import CODES as OP
from . import builder_grouped
from . import builder_moves as moves
from .builder_objects import NDObject, fail, now
from .builder_rules import encode_now

ELEMENTWISE = {
    "Sqrt": "SQRT",
    "Abs": "ABS",
    "Log": "LOG",
    "Exp": "EXP",
    "Round": "ROUND",
    "Floor": "FLOOR",
    "Ceil": "CEIL",
    "Trunc": "TRUNC",
    "IsFinite": "IS_FINITE",
    "LogicalNot": "LOGICAL_NOT",
    "Copy": "COPY",
    "Add": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "Div": "DIV",
    "Power": "POW",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "Equal": "EQUAL",
    "NotEqual": "NOT_EQUAL",
    "Greater": "GREATER",
    "GreaterEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessEqual": "LESS_EQUAL",
    "LogicalAnd": "LOGICAL_AND",
    "LogicalOr": "LOGICAL_OR",
    "Select": "SELECT",
    "Cast": "CAST",
}


class Lowering:
    """One call of a kernel: its graph, and the value id of every node lowered so far."""

    def __init__(self, name: str, arrays: dict[int, np.ndarray], dry: bool = False) -> None:
        self.graph = _core.Graph(name)
        self.arrays = arrays  # by the load's node id
        self.dry = dry  # nobody sees the results: nothing is exchanged with other ranks
        self.values: dict[int, int] = {}
        self.stored: set[int] = set()  # node ids of stores
        self.launches: list[Any] = []  # of what was run before something was read
        self.left: tuple[list[NDObject], int] = ([], 0)  # all nodes, and which is being recorded

    def run(self, nodes: list[NDObject]) -> None:
        """Records nodes in order; afterwards each knows its shape. What is read while that goes on is run there."""
        for number, node in enumerate(nodes):
            self.left = (nodes, number)
            if "misuse" in node.attrs and not devices.faithful():
                raise node.attrs["misuse"].with_traceback(None)  # built for a faithful device
            try:
                value = _exchange(self, node) if "exchange" in node.attrs else RULES[node.op](self, node)
            except _core.Error as error:
                raise convert(error, op=node.op, place=node.place) from None
            self.values[node.id] = value
            if node.op in ("Store", "ViewStore"):
                self.stored.add(node.id)
            node.dims = tuple(self.graph.shape(value))

    def read(self, node: NDObject) -> np.ndarray:
        """A node's numbers while the graph is being recorded: everything so far is run."""
        nodes, number = self.left
        wanted = {item.id for other in nodes[number:] for item in other.operands if isinstance(item, NDObject)}
        # Kept: what is read later, and what was stored, which goes to its memory when everything is done.
        keep = {value for other, value in self.values.items() if other in wanted or other in self.stored}
        if self.graph.pending() and self.graph.opcode(self.value(node)):
            launch = self.graph.flush(keep=sorted(value for value in keep if self.graph.opcode(value)))
            self.launches += [launch] if launch is not None else []
        found = self.graph.array(self.value(node))
        assert found is not None
        return found

    def op(
        self,
        node: NDObject,
        name: str,
        operands: tuple[int, ...],
        attrs: tuple[int, ...] = (),
        shape: tuple[int, ...] | None = None,
        dtype: int | None = None,
        imms: tuple[float | int, ...] = (),
        last: bool = True,
    ) -> int:
        """Records one instruction for a node; `last`: it is the node's result."""
        return self.graph.op(
            OP[name], operands, attrs, shape, node.dtype_.code if dtype is None else dtype, imms, node.place, node.name if last else ""
        )

    def value(self, node: NDObject) -> int:
        return self.values[node.id]

    def shape(self, node: NDObject) -> tuple[int, ...]:
        return tuple(self.graph.shape(self.values[node.id]))


def _exchange(run: Lowering, node: NDObject) -> int:
    result = node.attrs["exchange"](run.read(node.operands[0]), run.dry)
    return run.graph.input(result.ctypes.data, result.shape, node.dtype_.code, None, result)


def _elementwise(run: Lowering, node: NDObject) -> int:
    operands, imms = [], []
    for item in node.operands:
        if isinstance(item, NDObject):
            operands.append(run.value(item))
        else:
            operands.append(-1)
            tensor = next(other for other in node.operands if isinstance(other, NDObject))
            imms.append(encode_now(item, tensor.dtype_, node.op, node.place))
    return run.op(node, ELEMENTWISE[node.op], tuple(operands), imms=tuple(imms))


def _load(run: Lowering, node: NDObject) -> int:
    array = run.arrays[node.id]
    stride = node.attrs.get("stride")
    if stride is None:
        strides = None if array.flags.c_contiguous else tuple(step // array.itemsize for step in array.strides)
        return run.graph.input(array.ctypes.data, array.shape, node.dtype_.code, strides, array)
    shape, stride = tuple(now(node.attrs["shape"])), tuple(now(stride))
    offset = node.attrs["offset"] + node.attrs["declared"]
    last = offset + sum(step * (dim - 1) for step, dim in zip(stride, shape, strict=True) if dim > 1)
    if 0 not in shape and (len(shape) != len(stride) or min(stride, default=0) < 0 or offset < 0 or last >= array.size):
        raise fail(
            ShapeError,
            f"shape {list(shape)} with strides {list(stride)} and offset {offset} reaches element {last}, the array has {array.size}",
            node.place,
            op="ViewLoad",
        )
    return run.graph.input(array.ctypes.data + offset * array.itemsize, shape, node.dtype_.code, stride, array)


def _full(run: Lowering, node: NDObject) -> int:
    shape = tuple(now(node.attrs["shape"]))
    return run.op(node, "FULL", (), shape=shape, imms=(encode_now(node.operands[0], node.dtype_, node.op, node.place),))


def _full_like(run: Lowering, node: NDObject) -> int:
    return run.op(node, "FULL", (), shape=run.shape(node.operands[0]), imms=(node.attrs["value"],))


def _reduce(run: Lowering, node: NDObject) -> int:
    # Axes that are not neighbours are reduced group by group, the last group first, so that earlier axes keep their numbers.
    rank = len(run.shape(node.operands[0]))
    axes = sorted({moves.axis_of(dim, rank, node) for dim in now(node.attrs["dims"])}) or [*range(rank)]
    value = run.value(node.operands[0])
    if not axes:
        return run.op(node, "COPY", (value,))
    groups = [[axes[0]]]
    for axis in axes[1:]:
        if axis == groups[-1][-1] + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    for group in reversed(groups):
        value = run.op(node, node.attrs["kind"].upper(), (value,), (int(node.attrs["keepdims"]), *group), last=group is groups[0])
    return value


def _element_any(run: Lowering, node: NDObject) -> int:
    size = int(np.prod(run.shape(node.operands[0]), dtype=np.int64))
    if not size:
        return run.op(node, "FULL", (), shape=(1,), imms=(0.0,))
    flat = run.op(node, "RESHAPE", (run.value(node.operands[0]),), shape=(1, size), last=False)
    hit = run.op(node, "NOT_EQUAL", (flat, -1), dtype=0, imms=(0.0,), last=False)
    number = run.op(node, "CAST", (hit,), dtype=float32.code, last=False)
    return run.op(node, "MAX", (number,), (0, 1))


def _matmul(run: Lowering, node: NDObject) -> int:
    flags = (int(node.attrs["trans_a"]), int(node.attrs["trans_b"]))
    return run.op(node, "MATMUL", tuple(run.value(item) for item in node.operands), flags)


def _store(run: Lowering, node: NDObject) -> int:
    # What is stored must be a value of its own: not an input, and not one another store already takes.
    value = run.value(node.operands[0])
    taken = value in (run.values[other] for other in node.attrs["earlier"] if other in run.values)
    return run.op(node, "COPY", (value,)) if taken or not run.graph.opcode(value) else value


RULES: dict[str, Callable[[Lowering, NDObject], int]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "Load": _load,
    "ViewLoad": _load,
    "Store": _store,
    "ViewStore": _store,
    "SliceViewLoad": moves.box_of,
    "Slice": moves.box_of,
    "DimSlice": moves.dim_slice,
    "StridedSliceLoad": moves.strided_slice,
    "BroadcastS": _full,
    "FullLike": _full_like,
    "Broadcast": moves.broadcast,
    "Reshape": moves.reshape,
    "Permute": moves.permute,
    "Concat": moves.concat,
    "Pad": moves.pad,
    "GatherLoad": moves.gather,
    "OneHot": moves.one_hot,
    "Reduce": _reduce,
    "ElementAny": _element_any,
    "MatMul": _matmul,
    "GroupedMatMul": builder_grouped.lower,
}
