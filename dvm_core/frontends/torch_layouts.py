"""How results lie in memory. Ours are contiguous; where PyTorch's have their axes in another order, as channels_last, we write the
transposed value and give its view, for `as_strided` and the user read strides."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node

from .torch_ops import VIEWS

Order = tuple[int, ...]  # axes from the outermost in memory to the innermost; empty: as they are


def orders_of(nodes: Iterable[Node]) -> dict[Node, Order]:
    """Of the nodes whose results PyTorch has without gaps and in another order. Symbolic extents count as those they were traced with:
    PyTorch guards comparisons of strides, so that another order is another graph."""
    found = {node: _order(value) for node in nodes if isinstance(value := node.meta.get("val"), torch.Tensor)}
    return {node: order for node, order in found.items() if order}


def _order(value: torch.Tensor) -> Order:
    if value.layout != torch.strided:
        return ()
    shape, stride = _numbers(value.shape), _numbers(value.stride())
    straight = range(len(shape))
    if not shape or not all(shape) or _dense(shape, stride, straight):
        return ()
    order = sorted(straight, key=lambda axis: -stride[axis])
    return tuple(order) if _dense(shape, stride, order) else ()


def _numbers(extents: Sequence[Any]) -> list[int]:
    """Plain numbers; [] if one is not known before the graph runs."""
    if not all(isinstance(n, int) or n.node.has_hint() for n in extents):
        return []
    return [n if isinstance(n, int) else int(n.node.hint) for n in extents]


def _dense(shape: Sequence[int], stride: Sequence[int], order: Sequence[int]) -> bool:
    step = 1
    for axis in reversed(order):
        if shape[axis] != 1 and (axis >= len(stride) or stride[axis] != step):
            return False
        step *= shape[axis]
    return True


def back(order: Order) -> Order:
    """The order that undoes it."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def look_at_the_whole(nodes: Iterable[Node]) -> None:
    """Has `as_strided` of views look into what they are views of, for a view of a result of ours may lie elsewhere."""
    for node in nodes:
        if node.target is not torch.ops.aten.as_strided.default:
            continue
        view = whole = node.args[0]
        while isinstance(whole, Node) and (str(whole.target) in VIEWS or whole.target is operator.getitem):
            whole = whole.args[0]  # type: ignore[assignment]
        if whole is view or not isinstance(whole, Node) or whole.op != "call_function":
            continue
        offset: Any = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
        if offset is None:
            offset = view.meta["val"].storage_offset()  # type: ignore[union-attr]
        if isinstance(offset, (int, Node)):
            node.args, node.kwargs = (whole, *node.args[1:3], offset), {}
