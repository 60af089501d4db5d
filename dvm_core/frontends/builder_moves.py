"""Rules for nodes that move or view elements: broadcast, reshape, permute, slices, concat, pad, gather, one-hot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError, ShapeError
from .builder_objects import NDObject, fail, now
from .builder_rules import encode_now

if TYPE_CHECKING:
    from .builder_lower import Lowering


def broadcast(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    wanted = list(now(node.attrs["shape"]))
    for i in range(1, len(wanted) + 1):
        if wanted[-i] == -1:
            wanted[-i] = source[-i] if i <= len(source) else 1
    return run.op(node, "BROADCAST", (run.value(node.operands[0]),), shape=tuple(wanted))


def reshape(run: Lowering, node: NDObject) -> int:
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


def permute(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0]))
    dims = tuple(axis_of(dim, rank, node) for dim in now(node.attrs["dims"]))
    return run.op(node, "TRANSPOSE", (run.value(node.operands[0]),), dims)


def box_of(run: Lowering, node: NDObject) -> int:
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


def dim_slice(run: Lowering, node: NDObject) -> int:
    source = run.shape(node.operands[0])
    dim = axis_of(node.attrs["dim"], len(source), node)
    size, count = node.attrs.get("pieces", (0, 0))
    if count and not size * (count - 1) < source[dim] <= size * count:
        raise fail(ShapeError, f"{count} pieces of {size} do not make an extent of {source[dim]}", node.place, node.operands[0], op="Split")
    begin, end = (now(node.attrs[key]) for key in ("begin", "end"))
    if begin != int(begin) or end != int(end):
        raise fail(ArgumentError, f"bounds are whole numbers, got {begin!r} and {end!r}", node.place, node.operands[0], op=node.op)
    begin, end, _ = slice(int(begin), int(end)).indices(source[dim])
    start, extent = [0] * len(source), list(source)
    start[dim], extent[dim] = begin, max(end - begin, 0)
    return _box(run, node, source, tuple(start), extent, len(source))


def strided_slice(run: Lowering, node: NDObject) -> int:
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


def concat(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0]))
    return run.op(node, "CONCAT", tuple(run.value(item) for item in node.operands), (axis_of(node.attrs["dim"], rank, node),))


def pad(run: Lowering, node: NDObject) -> int:
    # zeros behind: the last axis grows by a number, or every axis by one of a list
    source, pad = run.shape(node.operands[0]), now(node.attrs["pad"])
    grow = [0] * (len(source) - 1) + [pad] if isinstance(pad, int) else list(pad)
    shape = tuple(dim + extra for dim, extra in zip(source, grow, strict=True))
    zero = encode_now(0, node.dtype_, "Pad", node.place)
    return run.op(node, "PAD", (run.value(node.operands[0]),), (0,) * len(source), shape, imms=(zero,))


def gather(run: Lowering, node: NDObject) -> int:
    table, index = (run.value(item) for item in node.operands)
    name = "GATHER" if node.attrs["gather_mode"] else "GATHER_ELEMENTS"
    return run.op(node, name, (table, index), (axis_of(node.attrs["axis"], len(run.shape(node.operands[0])), node),))


def one_hot(run: Lowering, node: NDObject) -> int:
    rank = len(run.shape(node.operands[0])) + 1
    axis = axis_of(node.attrs["axis"], rank, node)
    imms = tuple(encode_now(value, node.dtype_, node.op, node.place) for value in node.attrs["imms"])
    result = run.op(node, "ONE_HOT", (run.value(node.operands[0]),), (node.attrs["depth"],), imms=imms, last=axis == rank - 1)
    if axis == rank - 1:
        return result
    order = [*range(rank - 1)]
    order.insert(axis, rank - 1)
    return run.op(node, "TRANSPOSE", (result,), tuple(order))


def axis_of(axis: int, rank: int, node: NDObject) -> int:
    if not -rank <= axis < rank:
        raise fail(ArgumentError, f"axis {axis} is out of range for rank {rank}", node.place, *node.operands, op=node.op)
    return axis % rank if rank else 0
