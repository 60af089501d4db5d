"""From a built kernel to instructions: one rule per node, applied at every call with the real shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from ..dtypes import float32
from ..errors import ArgumentError, ShapeError, convert
from ..msbc.layout import CODES as OP
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

    def __init__(self, name: str, arrays: dict[int, np.ndarray]) -> None:
        self.graph = _core.Graph(name)
        self.arrays = arrays  # by the load's node id
        self.values: dict[int, int] = {}

    def run(self, nodes: list[NDObject]) -> None:
        """Records nodes in order; afterwards each knows its shape."""
        for node in nodes:
            try:
                value = RULES[node.op](self, node)
            except _core.Error as error:
                raise convert(error, op=node.op, place=node.place) from None
            self.values[node.id] = value
            node.dims = tuple(self.graph.shape(value))

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


def _broadcast(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    wanted = list(now(node.attrs["shape"]))
    for i in range(1, len(wanted) + 1):
        if wanted[-i] == -1:
            wanted[-i] = source[-i] if i <= len(source) else 1
    return run.op(node, "BROADCAST", (run.value(node.operands[0]),), shape=tuple(wanted))


def _reshape(run: Lowering, node: NDObject) -> int:
    source, wanted = run.shape(node.operands[0]), list(now(node.attrs["shape"]))
    size = int(np.prod(source, dtype=np.int64))
    if wanted.count(-1) == 1:
        rest = int(np.prod([dim for dim in wanted if dim != -1], dtype=np.int64))
        if rest and size % rest == 0:
            wanted[wanted.index(-1)] = size // rest
    if any(dim < 0 for dim in wanted) or int(np.prod(wanted, dtype=np.int64)) != size:
        raise fail(
            ShapeError,
            f"{size} elements {list(source)} do not make {list(now(node.attrs['shape']))}",
            node.place,
            node.operands[0],
            op="Reshape",
        )
    return run.op(node, "RESHAPE", (run.value(node.operands[0]),), shape=tuple(wanted))


def _permute(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0]))
    dims = tuple(_axis(dim, rank, node) for dim in now(node.attrs["dims"]))
    return run.op(node, "TRANSPOSE", (run.value(node.operands[0]),), dims)


def _slice(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    start, size = (tuple(now(node.attrs[key])) for key in ("start", "size"))
    return _box(
        run,
        node,
        source,
        start,
        [dim - at if extent == -1 else extent for dim, at, extent in zip(source, start, size, strict=False)],
        len(size),
    )


def _dim_slice(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    dim = _axis(node.attrs["dim"], len(source), node)
    begin, end, _ = slice(int(now(node.attrs["begin"])), int(now(node.attrs["end"]))).indices(source[dim])
    start, size = [0] * len(source), list(source)
    start[dim], size[dim] = begin, max(end - begin, 0)
    return _box(run, node, source, tuple(start), size, len(source))


def _strided_slice(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    bounds = [
        slice(*pair).indices(dim)
        for pair, dim in zip(zip(now(node.attrs["start"]), now(node.attrs["end"]), strict=True), source, strict=True)
    ]
    return _box(run, node, source, tuple(begin for begin, _, _ in bounds), [max(end - begin, 0) for begin, end, _ in bounds], len(bounds))


def _box(run: Lowering, node: NDObject, source: tuple[int, ...], start: tuple[int, ...], size: list[int], count: int) -> int:
    if len(start) != len(source) or count != len(source):
        raise fail(
            ShapeError, f"start {list(start)} and size {size} need one number for each axis of {list(source)}", node.place, op=node.op
        )
    attrs = tuple(number for at in start for number in (at, 1))
    return run.op(node, "SLICE", (run.value(node.operands[0]),), attrs, tuple(size))


def _concat(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0]))
    return run.op(node, "CONCAT", tuple(run.value(item) for item in node.operands), (_axis(node.attrs["dim"], rank, node),))


def _pad(run: Lowering, node: NDObject) -> int:
    # zeros behind: the last axis grows by a number, or every axis by one of a list
    source, pad = run.shape(node.operands[0]), now(node.attrs["pad"])
    grow = [0] * (len(source) - 1) + [pad] if isinstance(pad, int) else list(pad)
    shape = tuple(dim + extra for dim, extra in zip(source, grow, strict=True))
    return run.op(node, "UNSLICE", (run.value(node.operands[0]),), (0, 1) * len(source), shape)


def _gather(run: Lowering, node: NDObject) -> int:
    table, index = (run.value(item) for item in node.operands)
    return run.op(node, "GATHER", (table, index), (_axis(node.attrs["axis"], len(run.shape(node.operands[0])), node),))


def _one_hot(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0])) + 1
    axis = _axis(node.attrs["axis"], rank, node)
    imms = tuple(encode_now(value, node.dtype_, node.op, node.place) for value in node.attrs["imms"])
    result = run.op(node, "ONE_HOT", (run.value(node.operands[0]),), (node.attrs["depth"],), imms=imms, last=axis == rank - 1)
    if axis == rank - 1:
        return result
    order = [*range(rank - 1)]
    order.insert(axis, rank - 1)
    return run.op(node, "TRANSPOSE", (result,), tuple(order))


def _reduce(run: Lowering, node: NDObject) -> int:
    # Axes that are not neighbours are reduced group by group, the last group first, so that earlier axes keep their numbers.
    rank = len(run.shape(node.operands[0]))
    axes = sorted({_axis(dim, rank, node) for dim in now(node.attrs["dims"])}) or [*range(rank)]
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


def _axis(axis: int, rank: int, node: NDObject) -> int:
    if not -rank <= axis < rank:
        raise fail(ArgumentError, f"axis {axis} is out of range for rank {rank}", node.place, *node.operands, op=node.op)
    return axis % rank if rank else 0


RULES: dict[str, Callable[[Lowering, NDObject], int]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "Load": _load,
    "ViewLoad": _load,
    "Store": _store,
    "ViewStore": _store,
    "SliceViewLoad": _slice,
    "Slice": _slice,
    "DimSlice": _dim_slice,
    "StridedSliceLoad": _strided_slice,
    "BroadcastS": _full,
    "FullLike": _full_like,
    "Broadcast": _broadcast,
    "Reshape": _reshape,
    "Permute": _permute,
    "Concat": _concat,
    "Pad": _pad,
    "GatherLoad": _gather,
    "OneHot": _one_hot,
    "Reduce": _reduce,
    "ElementAny": _element_any,
    "MatMul": _matmul,
}
