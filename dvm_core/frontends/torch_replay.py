"""Calls of a compiled graph done again: while one is recorded, what it does is written down for all later calls with arguments of its kind.

A plan is a list of steps on "slots", the tensors of a call: the arguments first, then what the steps make. A step runs a flush again
(`_core.TensorReplay`) or calls PyTorch. Shapes, strides, dtypes and plain numbers of the arguments are those of the recorded call, so a
plan gives the bits that recording gives. It holds no tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from .. import _core
from .observed import Observed
from .torch_layouts import Order, back
from .torch_ops import Parts, Value

# What these ops are as methods, a third of the way through PyTorch's dispatch.
_METHODS = {getattr(getattr(torch.ops.aten, op), overload): getattr(torch.Tensor, op) for op, overload in (
    ("view", "default"), ("permute", "default"), ("t", "default"), ("transpose", "int"), ("unsqueeze", "default"), ("expand", "default"),
    ("squeeze", "dim"), ("squeeze", "dims"), ("squeeze", "default"), ("select", "int"))}
CPU = torch.device("cpu")  # said wherever a tensor is made: the user's default may be another
_UNSURE = frozenset((torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output))


class Slot(int):
    """The number of a tensor (or of what else PyTorch gave) among those of a call."""


class View(NamedTuple):
    """A view that PyTorch makes of a tensor; its memory is that of a slot, from an offset in bytes on."""

    slot: Slot
    offset: int
    target: Any
    args: tuple
    kwargs: dict


class Call:
    """A step: PyTorch runs an op."""

    def __init__(self, target: Any, args: tuple, kwargs: dict, into: Slot, counted: tuple[Observed, str] | None = None) -> None:
        self.target, self.into, self.counted = _METHODS.get(target, target), into, counted  # counted: the fallback's name, if it is one
        self.args, self.kwargs = args, kwargs
        self.plain = [None if isinstance(a, (Slot, tuple, list)) else a for a in args]
        self.top = [(at, int(a)) for at, a in enumerate(args) if isinstance(a, Slot)]
        self.deep = [(at, a) for at, a in enumerate(args) if isinstance(a, (tuple, list))]

    def __call__(self, slots: list[Any]) -> bool:
        args = self.plain.copy()
        for at, slot in self.top:
            args[at] = slots[slot]
        for at, tree in self.deep:
            args[at] = filled(tree, slots)
        named = {name: filled(a, slots) for name, a in self.kwargs.items()}
        if self.counted is None:
            slots[self.into] = self.target(*args, **named)
            return True
        seen, name = self.counted
        seen.fallbacks[name] += 1
        slots[self.into] = seen.elsewhere(name, lambda: self.target(*args, **named))
        return True


class Snapshot(NamedTuple):
    """Where a call stands: the next node's number, and the values that are there."""

    position: int
    values: dict[Node, Any]  # slots, views and plain values


class Plan:
    """What a call with arguments of one kind does."""

    def __init__(self, builder: Builder, results: list[Slot]) -> None:
        self.extra = [builder.extra.get(Slot(n)) for n in range(builder.arguments, builder.count)]
        self.results = results
        self.steps: list[tuple[Callable[[list[Any]], bool], list[int]]] = []
        self.snapshots = [snapshot for _, snapshot in builder.steps]
        last: dict[int, int] = dict.fromkeys(range(builder.count), 0)
        for at, (step, snapshot) in enumerate(builder.steps):
            last.update(dict.fromkeys(_read(step), at))
            if snapshot is not None:
                last.update(dict.fromkeys(_slots(snapshot.values.values()), at))
        dying: list[list[int]] = [[] for _ in builder.steps]
        for slot, at in last.items():
            if slot not in results and slot not in builder.extra and dying:
                dying[at].append(slot)
        for (step, _), gone in zip(builder.steps, dying, strict=True):
            self.steps.append((step.run if isinstance(step, _core.TensorReplay) else step, gone))

    def run(self, arguments: list[Any], record: Callable[[Snapshot, list[Any]], list[Any]]) -> list[Any]:
        """The results of a call, whose arguments are emptied. record: finishes it by recording from a snapshot on."""
        slots = arguments + self.extra
        arguments.clear()
        for at, (step, gone) in enumerate(self.steps):
            if not step(slots):
                snapshot = self.snapshots[at]
                assert snapshot is not None
                return record(snapshot, slots)
            for slot in gone:
                slots[slot] = None
        return [slots[slot] for slot in self.results]


class Builder:
    """Writes a plan while a call is recorded. `whole` is False once something is done that a plan cannot repeat."""

    def __init__(self, inputs: list[Node], arguments: list[Any], constants: dict[Node, Any]) -> None:
        self.arguments = self.count = len(inputs)
        self.entries: dict[Node, Any] = {}  # a plain argument is part of the kind
        for n, (node, value) in enumerate(zip(inputs, arguments, strict=True)):
            self.entries[node] = Slot(n) if isinstance(value, torch.Tensor) else value
        self.steps: list[tuple[Any, Snapshot | None]] = []
        self.extra: dict[Slot, Any] = {}  # what lies in slots from the start
        self.addresses: dict[Slot, int] = {}
        self.geometries: dict[Slot, tuple[tuple[int, ...], tuple[int, ...]]] = {}  # of tensors that PyTorch made
        self.bound: dict[int, tuple[Slot, int]] = {}  # value id in memory -> slot and offset
        self.addresses.update((Slot(n), a.data_ptr()) for n, a in enumerate(arguments) if isinstance(a, torch.Tensor))
        self.whole = True
        self.snapshot: Snapshot | None = None
        for node, value in constants.items():
            self.entries[node] = self._constant(value)

    def _new(self, made: Any, sure: bool) -> Slot:
        slot = Slot(self.count)
        self.count += 1
        if isinstance(made, torch.Tensor) and made.layout == torch.strided:
            self.addresses[slot] = made.data_ptr()
            if not sure:
                self.geometries[slot] = tuple(made.shape), tuple(made.stride())
        return slot

    def _constant(self, value: Any) -> Slot:
        slot = self._new(value, False)
        self.extra[slot] = value
        return slot

    def looks(self, position: int, values: dict[Node, Any]) -> None:
        """Nothing is pending: from here a call could be recorded."""
        self.whole = self.whole and not any(isinstance(value, Value) for value in values.values())
        self.snapshot = Snapshot(position, {node: self.entries.get(node) for node in values})

    def known(self, node: Node, value: Any) -> None:
        """The node's value is a plain one that follows from the kind of the arguments."""
        self.entries[node] = value

    def view(self, node: Node, made: torch.Tensor) -> None:
        """PyTorch made a view of what lies in memory."""
        first: Any = node.args[0]
        base = self.entries.get(first)
        if not isinstance(base, (Slot, View)):
            self.whole = False
            return
        slot = base.slot if isinstance(base, View) else base
        args, kwargs = self._args(node)
        self.entries[node] = View(slot, made.data_ptr() - self.addresses.get(slot, 0), node.target, args, kwargs)

    def call(self, node: Node, made: Any, counted: tuple[Observed, str] | None = None) -> None:
        """PyTorch ran the node's op."""
        tags = () if node.target is operator.getitem else getattr(node.target, "tags", _UNSURE)
        if not _UNSURE.isdisjoint(tags) or not isinstance(made, (torch.Tensor, tuple, list, type(None))):
            self.whole = False
        if self.whole:
            args, kwargs = (self._in_slots(tree) for tree in self._args(node))
            into = self._new(made, False)
            self.steps.append((Call(node.target, args, kwargs, into, counted), None))
            self.entries[node] = into
            if self.snapshot is not None:
                self.snapshot.values[node] = into  # who records from there does not run it again

    def part(self, node: Node, of: Any, number: int, value: Any) -> None:
        """The node is one of the results of an op of ours."""
        if isinstance(value, torch.Tensor):  # the same at each call
            self.entries[node] = self._constant(value)
            return
        whole = self.entries.get(of)
        if isinstance(whole, Parts):
            self.entries[node] = whole[number]

    def _args(self, node: Node) -> tuple[tuple, dict]:
        return torch.fx.node.map_arg((node.args, node.kwargs), self.entries.get)

    def _in_slots(self, tree: Any) -> Any:
        """The tree with every view as a tensor that steps make."""
        if isinstance(tree, View):
            args, kwargs = self._in_slots(tree.args), {name: self._in_slots(a) for name, a in tree.kwargs.items()}
            into = Slot(self.count)
            self.count += 1
            self.steps.append((Call(tree.target, args, kwargs, into), None))
            return into
        if isinstance(tree, (tuple, list)):
            return type(tree)(self._in_slots(a) for a in tree)
        if isinstance(tree, dict):
            return {name: self._in_slots(a) for name, a in tree.items()}
        return tree

    def bind(self, node: Node, value: int, tensor: torch.Tensor, values: dict[Node, Any]) -> None:
        """A tensor that the node reads became an operand."""
        found = next((self.entries.get(read) for read in node.all_input_nodes if values.get(read) is tensor), None)
        if isinstance(found, View):
            self.bound[value] = found.slot, found.offset
        elif isinstance(found, Slot):
            self.bound[value] = found, 0
        else:
            self.whole = False

    def launch(self, graph: Any, made: dict[Any, torch.Tensor], lies: dict[Any, tuple[Any, Order]], values: dict[Node, Any]) -> None:
        """What is pending will be run, with these values as results. lies: by node, the one that holds its result, and in which order."""
        if not graph.pending() and not made:
            return
        self.whole = self.whole and graph.pending() > 0 and self.snapshot is not None
        if not self.whole:
            return
        slots = {value: self._new(tensor, True) for value, tensor in made.items()}
        replay = _core.tensor_replay(
            graph,
            [(value, slot, offset, self.geometries.get(slot)) for value, (slot, offset) in self.bound.items()],
            [(value, slots[value], tuple(tensor.shape), tensor.dtype) for value, tensor in made.items()],
            torch.empty,
            CPU,
        )
        if replay is None:
            self.whole = False
            return
        self.steps.append((replay, self.snapshot))
        self.snapshot = None
        for value, slot in slots.items():
            self.bound[int(value)] = slot, 0
        for node, value in values.items():
            if isinstance(value, Value) and node in lies:
                held, order = lies[node]
                slot = slots[held]
                self.entries[node] = View(slot, 0, torch.ops.aten.permute.default, (slot, back(order)), {}) if order else slot
            elif isinstance(value, Parts):
                self.entries[node] = Parts(self._constant(p) if isinstance(p, torch.Tensor) else slots.get(p) for p in value)

    def release(self, values: Iterable[int]) -> None:
        """These values are in memory no more."""
        for value in values:
            self.bound.pop(value, None)

    def plan(self, results: Iterable[Any]) -> Plan | None:
        """The plan, None if there can be none. results: nodes or plain values."""
        entries = [self._in_slots(self.entries.get(r)) if isinstance(r, Node) else r for r in results] if self.whole else []
        return Plan(self, [e if isinstance(e, Slot) else self._constant(e) for e in entries]) if self.whole else None


def filled(tree: Any, slots: list[Any]) -> Any:
    """A tree of entries as what a call takes."""
    if isinstance(tree, Slot):
        return slots[tree]
    if isinstance(tree, View):
        return tree.target(*filled(tree.args, slots), **filled(tree.kwargs, slots))
    if isinstance(tree, (tuple, list)):
        return type(tree)(filled(a, slots) for a in tree)
    if isinstance(tree, dict):
        return {name: filled(a, slots) for name, a in tree.items()}
    return tree


def _slots(tree: Any) -> set[int]:
    if isinstance(tree, Slot):
        return {int(tree)}
    if isinstance(tree, View):
        return {int(tree.slot)} | _slots(tree.args)
    if isinstance(tree, dict):
        tree = tree.values()
    return set().union(*map(_slots, tree)) if not isinstance(tree, (str, int, float, type(None))) and isinstance(tree, Iterable) else set()


def _read(step: Any) -> set[int]:
    return set(step.slots()) if isinstance(step, _core.TensorReplay) else _slots((step.args, step.kwargs)) | {int(step.into)}
