"""Gradients of a tape: the reverse walk over it with the formulas of vjp_rules, into a plan that is replayed without Python rules."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _core
from . import names, reloadable, vjp_rules
from .emit import CLASS, CODE, FLOATS, Emitter, result_dtype
from .plan import ForeignStep, Immediate, Plan, arrange
from .tape import DETACHED, Foreign, Group, Input, Step, Tape
from .vjp_rules import CONCAT, CONSTANT, GROUPS, RULES, Node


class Builder(Emitter):
    """Records the instructions of a plan, with their shapes and dtypes."""

    def __init__(self, tape: Tape, entries: Sequence[Input | Step], dtypes: Sequence[int]) -> None:
        self.tape = entries
        self.first = len(entries)
        self._forward_shape = tape.shape
        self._dtypes = list(dtypes)
        self._shapes: list[tuple[int, ...]] = []  # of ids from `first` on
        self.items: list[Step | ForeignStep | None] = []  # by id - first; None: an input (a seed, a foreign gradient)
        self.place = 0
        self.called: dict[int, str] = {}  # by id

    def input(self, shape: tuple[int, ...], dtype: int) -> int:
        self.items.append(None)
        self._shapes.append(shape)
        self._dtypes.append(dtype)
        return self.first + len(self.items) - 1

    def foreign(self, step: ForeignStep) -> None:
        """The framework's part; what it gives is added with `input`."""
        self.items.append(step)  # takes an id of its own until _arrange renumbers
        self._shapes.append(())
        self._dtypes.append(0)

    def op(self, opcode: int, operands: tuple[int, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float, ...] = ()) -> int:
        self._dtypes.append(result_dtype(opcode, operands, self._dtypes, dtype))
        self._shapes.append(_shape_of(opcode, [self.shape(v) if v >= 0 else () for v in operands], attrs, shape))
        self.items.append(Step(opcode, operands, attrs, shape, dtype, imms, self.place))
        return self.first + len(self.items) - 1

    def shape(self, value: int) -> tuple[int, ...]:
        return self._shapes[value - self.first] if value >= self.first else self._forward_shape(value)

    def dtype(self, value: int) -> int:
        return self._dtypes[value]

    def reduce_to(self, g: int, shape: tuple[int, ...]) -> int:
        """Sums what broadcasting repeated."""
        has = self.shape(g)
        if has == shape:
            return g
        extra = len(has) - len(shape)
        if extra < 0:  # a formula's result broadcasts to the operand
            return self.broadcast(g, shape)
        ones = [extra + axis for axis, extent in enumerate(shape) if extent == 1 and has[extra + axis] != 1]
        if ones:
            g = self.sum(g, ones, keepdims=True)
        if extra:
            g = self.sum(g, range(extra))
        return g if self.shape(g) == shape else self.broadcast(g, shape)


_AS_FIRST = frozenset((CODE["SCATTER"], CODE["SCATTER_ELEMENTS"]))


def _shape_of(opcode: int, shapes: list[tuple[int, ...]], attrs: tuple[int, ...], own: tuple[int, ...] | None) -> tuple[int, ...]:
    # What the native core will infer, for the instructions gradient rules use.
    if own is not None:
        return own
    letter = CLASS[opcode]
    if letter == "R":
        keepdims, *axes = attrs
        return tuple(1 if i in axes else extent for i, extent in enumerate(shapes[0]) if keepdims or i not in axes)
    if letter == "M":
        (*batch_a, rows, inner), (*batch_b, inner_b, columns) = shapes
        return (*broadcast_shapes(tuple(batch_a), tuple(batch_b)), inner if attrs[0] else rows, inner_b if attrs[1] else columns)
    if opcode == CODE["TRANSPOSE"]:
        return tuple(shapes[0][axis] for axis in attrs)
    if opcode == CODE["GATHER"]:
        return shapes[0][:attrs[0]] + shapes[1] + shapes[0][attrs[0] + 1:]
    if opcode == CODE["GATHER_ELEMENTS"]:
        return shapes[1]
    if opcode in _AS_FIRST:
        return shapes[0]
    if opcode == CODE["ONE_HOT"]:
        return (*shapes[0], attrs[0])
    if opcode == CONCAT:
        axis = attrs[0]
        return tuple(sum(s[axis] for s in shapes) if i == axis else extent for i, extent in enumerate(shapes[0]))
    return broadcast_shapes(*shapes)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of shapes known to fit."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((extent for extent in column if extent != 1), 1) for column in zip(*padded, strict=True))


def needs(entries: Sequence[Input | Step], dtypes: Sequence[int], groups: dict[int, Group]) -> list[bool]:
    """Per value: whether a gradient flows through it to an input that wants one."""
    result: list[bool] = []
    for index, entry in enumerate(entries):
        if isinstance(entry, Input):
            result.append(entry.needs_grad)
        elif entry.opcode in CONSTANT or dtypes[index] not in FLOATS or (index in groups and groups[index].rule == DETACHED):
            result.append(False)
        else:
            result.append(any(v >= 0 and result[v] for v in entry.operands))
    return result


def needs_of(tape: Tape) -> list[bool]:
    """The same for a tape."""
    return needs(tape.steps(), _dtypes(tape), tape.groups)


def _dtypes(tape: Tape) -> list[int]:
    return [tape.dtype(value) for value in range(len(tape.entries))]


def candidates(tape: Tape, since: int) -> list[int]:
    """Instructions' values from id `since` on that some rule may read: what a flush in the middle of a call must keep."""
    entries, groups = tape.steps(), tape.groups
    need = needs(entries, _dtypes(tape), groups)
    kept: set[int] = set()
    for index in range(since, len(entries)):
        entry = entries[index]
        if need[index] and isinstance(entry, Step):
            group = groups.get(index)
            kept.update((index, *entry.operands), (*group.operands, *group.saved) if group else ())
    return sorted(v for v in kept if v >= since and isinstance(entries[v], Step))


def derive(tape: Tape, outputs: Sequence[int], leaves: Sequence[int], in_memory: Iterable[int] = ()) -> Plan:
    """The plan that turns gradients of `outputs` (the plan's first inputs, in that order) into gradients of `leaves`.

    in_memory: values besides the inputs that are kept anyway.
    """
    entries, dtypes = tape.steps(), _dtypes(tape)
    need = needs(entries, dtypes, tape.groups)
    e = Builder(tape, entries, dtypes)
    gradient: dict[int, int] = {}
    called = names.of_values(tuple(0 if isinstance(entry, Input) else entry.place for entry in entries), reloadable.version)

    def accumulate(value: int, g: int) -> None:
        g = e.reduce_to(g, e.shape(value))
        gradient[value] = e.add(gradient[value], g) if value in gradient else g

    seeds = [e.input(tape.shape(output), dtypes[output]) for output in outputs]
    for output, seed in zip(outputs, seeds, strict=True):
        accumulate(output, seed)
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Input):
            call = entry.foreign
            if call >= 0 and need[index] and index == min(v for v in tape.foreign[call].results if v >= 0 and need[v]):
                _foreign_gradient(e, call, tape.foreign[call], need, gradient, accumulate)
            continue
        g = gradient.pop(index, None)
        if g is None or not need[index]:
            continue
        if index in called:
            e.called.setdefault(g, f"grad({called[index]})")
        e.place = _core.backward_place(entry.place)
        for operand, part in _parts(e, g, index, entry, tape.imms.get(index, ()), tape.groups.get(index), need):
            accumulate(operand, part)
    return arrange(e, tape.imms, set(in_memory), [gradient.get(leaf, -1) for leaf in leaves])


def _parts(e: Builder, g: int, index: int, entry: Step, imms: tuple[float, ...], group: Group | None,
           need: list[bool]) -> Iterable[tuple[int, int]]:
    # (operand, its share of the gradient) of one instruction or group.
    if group is not None:
        node = Node(group.operands, index, group.attrs, e.shape(index), group.saved)
        rule = GROUPS[group.rule]
    else:
        node = Node(_operands(index, entry, imms), index, entry.attrs, e.shape(index))
        rule = RULES[entry.opcode]
    for position, operand in enumerate(node.operands):
        if isinstance(operand, float) or operand < 0 or not need[operand]:
            continue
        formula = rule[position] if rule else None
        part = formula(e, g, node) if formula else vjp_rules.concat_part(e, g, node, position) if not rule else None
        if part is not None:
            yield operand, part


def _operands(index: int, entry: Step, imms: tuple[float, ...]) -> tuple[Any, ...]:
    if -1 not in entry.operands:
        return entry.operands
    immediate = Immediate(imms[0])
    immediate.source = index
    return tuple(immediate if v < 0 else v for v in entry.operands)


def _foreign_gradient(e: Builder, call: int, record: Foreign, need: list[bool], gradient: dict[int, int],
                      accumulate: Callable[[int, int], None]) -> None:
    arrived = tuple(gradient.pop(result, -1) for result in record.results)
    if all(g < 0 for g in arrived):
        return
    wanted = tuple(i for i, operand in enumerate(record.operands) if need[operand])
    e.foreign(ForeignStep(call, arrived, wanted))
    e.place = _core.backward_place(record.place)
    operands = [record.operands[i] for i in wanted]
    parts = [e.input(e.shape(operand), e.dtype(operand)) for operand in operands]  # all of them before any further step
    for operand, part in zip(operands, parts, strict=True):
        accumulate(operand, part)
