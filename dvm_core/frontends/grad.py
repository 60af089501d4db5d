"""Gradients of a recorded program: from a tape and the vjp_rules to a backward plan that can be replayed without Python rules.

A tape is the list of a graph's values in order: inputs, and instructions as they were given to `Graph.op`. A plan is a list of further
instructions for the same graph; their operands are value ids, counted on from the tape's end. Plans are cached by tape, so that a
training step pays for its rules once.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _core
from . import vjp_rules
from .emit import CLASS, CODE, COMPUTED, FLOATS, Emitter, is_view, result_dtype
from .vjp_rules import CHEAP, CONCAT, CONSTANT, GROUPS, RULES, Node

COPY = CODE["COPY"]
DETACHED = "detached"  # rule of a group that stops gradients


class Input(NamedTuple):
    """A tape entry for an operand in memory."""

    shape: tuple[int, ...]
    dtype: int
    needs_grad: bool
    foreign: int  # number of the foreign call that made it, -1


class Group(NamedTuple):
    """Marks an instruction as the last of several that share one rule of vjp_rules.GROUPS."""

    rule: str
    operands: tuple[int, ...]
    attrs: tuple[Any, ...]
    saved: tuple[int, ...]


class Step(NamedTuple):
    """A tape entry for an instruction: the arguments of Graph.op, without immediates unless its rule computes with them."""

    opcode: int
    operands: tuple[int, ...]
    attrs: tuple[int, ...]
    shape: tuple[int, ...] | None
    dtype: int
    imms: tuple[float, ...]
    place: int


class Foreign(NamedTuple):
    """A call the framework made itself: results are inputs of the graph, its gradient is the framework's business."""

    operands: tuple[int, ...]  # value ids of its tensor arguments
    results: tuple[int, ...]  # value ids of its tensor results
    place: int


class ForeignStep(NamedTuple):
    """In a plan: the framework computes a foreign call's gradient. Its results become the graph's next inputs."""

    call: int  # index into the tape's foreign calls; -1: the sum of the gradients, of a dtype we do not compute with
    gradients: tuple[int, ...]  # of each result, -1 where none arrives
    wanted: tuple[int, ...]  # indices of the operands whose gradients it must give, in that order
    keep: tuple[int, ...] = ()  # values computed before it that are read after it


@dataclass(slots=True)
class Plan:
    """The backward program of a tape."""

    first: int  # id of the first seed: the tape's length
    steps: list[Any] = field(default_factory=list)  # argument tuples of Graph.op, ForeignStep
    patches: list[tuple[int, int]] = field(default_factory=list)  # (step, tape index): that step's immediate is that instruction's
    saved: tuple[int, ...] = ()  # tape values that must be in memory
    gradients: tuple[int, ...] = ()  # per leaf: id of its gradient, -1 for none


class Immediate(float):
    """An immediate of the tape; a step that passes it on unchanged is patched at every replay."""

    source = -1


class Builder(Emitter):
    """Records the instructions of a plan, with their shapes and dtypes."""

    def __init__(self, tape: Sequence[Input | Step], shape: Callable[[int], tuple[int, ...]], dtypes: Sequence[int], first: int) -> None:
        self.tape = tape
        self.first = first
        self._forward_shape = shape
        self._dtypes = list(dtypes)
        self._shapes: list[tuple[int, ...]] = []  # of ids from `first` on
        self.items: list[Step | ForeignStep | None] = []  # by id - first; None: an input (a seed, a foreign gradient)
        self.place = 0

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


def needs(tape: Sequence[Input | Step], dtypes: Sequence[int], groups: dict[int, Group]) -> list[bool]:
    """Per value: whether a gradient flows through it to an input that wants one."""
    result: list[bool] = []
    for index, entry in enumerate(tape):
        if isinstance(entry, Input):
            result.append(entry.needs_grad)
        elif entry.opcode in CONSTANT or dtypes[index] not in FLOATS or (index in groups and groups[index].rule == DETACHED):
            result.append(False)
        else:
            result.append(any(v >= 0 and result[v] for v in entry.operands))
    return result


def candidates(tape: Sequence[Input | Step], dtypes: Sequence[int], groups: dict[int, Group], since: int) -> list[int]:
    """Instructions' values from id `since` on that some rule may read: what a flush in the middle of a call must keep."""
    need = needs(tape, dtypes, groups)
    kept: set[int] = set()
    for index in range(since, len(tape)):
        entry = tape[index]
        if need[index] and isinstance(entry, Step):
            group = groups.get(index)
            kept.update((index, *entry.operands), (*group.operands, *group.saved) if group else ())
    return sorted(v for v in kept if v >= since and isinstance(tape[v], Step))


def derive(tape: Sequence[Input | Step], imms: Sequence[tuple[float, ...]], shape: Callable[[int], tuple[int, ...]], dtypes: Sequence[int],
           groups: dict[int, Group], foreign: Sequence[Foreign], outputs: Sequence[int], leaves: Sequence[int],
           in_memory: Iterable[int] = ()) -> Plan:
    """The plan that turns gradients of `outputs` (the plan's first inputs, in that order) into gradients of `leaves`.

    imms: immediates of every tape entry. shape, dtypes: of tape values. in_memory: values besides the inputs that are kept anyway.
    """
    need = needs(tape, dtypes, groups)
    first = len(tape)
    e = Builder(tape, shape, dtypes, first)
    gradient: dict[int, int] = {}

    def accumulate(value: int, g: int) -> None:
        g = e.reduce_to(g, e.shape(value))
        if value not in gradient:
            gradient[value] = g
        elif dtypes[value] in COMPUTED:
            gradient[value] = e.add(gradient[value], g)
        else:
            e.foreign(ForeignStep(-1, (gradient[value], g), (0,)))
            gradient[value] = e.input(e.shape(value), dtypes[value])

    seeds = [e.input(shape(output), dtypes[output]) for output in outputs]
    for output, seed in zip(outputs, seeds, strict=True):
        accumulate(output, seed)
    for index in range(first - 1, -1, -1):
        entry = tape[index]
        if isinstance(entry, Input):
            if entry.foreign >= 0 and need[index] and index == min(v for v in foreign[entry.foreign].results if v >= 0 and need[v]):
                _foreign_gradient(e, entry.foreign, foreign[entry.foreign], need, gradient, accumulate)
            continue
        g = gradient.pop(index, None)
        if g is None or not need[index]:
            continue
        e.place = _core.backward_place(entry.place)
        for operand, part in _parts(e, g, index, entry, imms[index], groups.get(index), need):
            accumulate(operand, part)

    plan = Plan(first)
    _arrange(plan, e, imms, set(in_memory), [gradient.get(leaf, -1) for leaf in leaves])
    return plan


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


def _arrange(plan: Plan, e: Builder, imms: Sequence[tuple[float, ...]], in_memory: set[int], gradients: list[int]) -> None:
    """Drops what no gradient needs, decides what the forward program keeps and what is repeated, and numbers the steps."""
    first = plan.first
    live = _live_items(e, gradients)
    used = {v for i in live for v in _reads(e.items[i]) if 0 <= v < first}
    used.update(g for g in gradients if 0 <= g < first)
    saved = _saved(e.tape, used, in_memory)
    writer = _Writer(plan, e, imms, saved)
    for i, item in enumerate(e.items):
        if item is None:
            writer.input(first + i)
        elif i in live:
            if isinstance(item, ForeignStep):
                writer.foreign(item)
            else:
                writer.number[first + i] = writer.step(item, -1)
    plan.gradients = tuple(writer.fresh(g) if g >= 0 else -1 for g in gradients)
    plan.saved = tuple(sorted(saved))
    _keep_over_foreign(plan)


class _Writer:
    """Gives the builder's items their final form and numbers."""

    def __init__(self, plan: Plan, e: Builder, imms: Sequence[tuple[float, ...]], saved: set[int]) -> None:
        self.plan = plan
        self.e = e
        self.imms = imms
        self.saved = saved
        self.number: dict[int, int] = {}  # builder id or tape id -> id at replay
        self.count = plan.first
        self.writable: set[int] = set()  # results of steps since the last foreign one that nobody was given yet

    def input(self, item: int) -> None:
        self.number[item] = self.count
        self.count += 1

    def step(self, step: Step, source: int) -> int:
        """Writes a step; source: the tape instruction it repeats, -1 for one of the builder's."""
        operands = tuple(v if v < 0 else self.resolve(v) for v in step.operands)
        immediates = self.imms[source] if source >= 0 else step.imms
        link = source if source >= 0 and immediates else next((v.source for v in immediates if isinstance(v, Immediate)), -1)
        if link >= 0:
            self.plan.patches.append((len(self.plan.steps), link))
        self.plan.steps.append((step.opcode, operands, step.attrs, step.shape, step.dtype, tuple(map(_plain, immediates)), step.place))
        self.writable.add(self.count)
        self.count += 1
        return self.count - 1

    def resolve(self, v: int) -> int:
        """The replay's id of a builder's or the tape's value; repeats a tape instruction whose value is not kept."""
        if v >= self.plan.first or v in self.number:
            return self.number[v]
        entry = self.e.tape[v]
        if isinstance(entry, Input) or v in self.saved:
            return v
        self.number[v] = self.step(entry._replace(place=_core.backward_place(entry.place)), v)
        return self.number[v]

    def fresh(self, g: int) -> int:
        """A gradient as a value that can be written to memory of its own: computed by a step, and given out once."""
        at = self.resolve(g)
        if self.e.dtype(g) not in COMPUTED:
            return at  # always an input: the framework's own tensor is handed on
        if at not in self.writable:
            self.plan.steps.append((COPY, (at,), (), None, 0, (), self.e.place))
            self.count += 1
            return self.count - 1
        self.writable.discard(at)
        return at

    def foreign(self, item: ForeignStep) -> None:
        self.plan.steps.append(item._replace(gradients=tuple(g if g < 0 else self.fresh(g) for g in item.gradients)))
        self.writable.clear()


def _keep_over_foreign(plan: Plan) -> None:
    # A foreign step flushes; what later steps read of earlier ones must survive that.
    if not any(isinstance(step, ForeignStep) for step in plan.steps):
        return
    read_later = set(plan.gradients)
    at_end: list[Any] = []
    for step in reversed(plan.steps):
        if isinstance(step, ForeignStep):
            step = step._replace(keep=tuple(sorted(v for v in read_later if v >= 0)))
            read_later.update(step.gradients)
        else:
            read_later.update(step[1])
        at_end.append(step)
    plan.steps = at_end[::-1]


def _plain(value: float) -> float:
    return float(value) if isinstance(value, Immediate) else value


def _reads(item: Step | ForeignStep | None) -> tuple[int, ...]:
    if item is None:
        return ()
    return item.gradients if isinstance(item, ForeignStep) else item.operands


def _live_items(e: Builder, gradients: list[int]) -> set[int]:
    live: set[int] = set()
    stack = [g - e.first for g in gradients if g >= e.first]
    stack += [i for i, item in enumerate(e.items) if isinstance(item, ForeignStep)]
    while stack:
        i = stack.pop()
        if i not in live:
            live.add(i)
            stack += [v - e.first for v in _reads(e.items[i]) if v >= e.first]
    return live


def _saved(tape: Sequence[Input | Step], used: set[int], in_memory: set[int]) -> set[int]:
    """Of the tape values the backward program reads, those that must be kept; the others are views or cheap to repeat."""
    saved: set[int] = set()

    def available(v: int) -> bool:  # without keeping anything new
        entry = tape[v]
        if isinstance(entry, Input) or v in saved or v in in_memory:
            return True
        return (is_view(entry.opcode) or entry.opcode in CHEAP) and all(o < 0 or available(o) for o in entry.operands)

    def base(v: int) -> int:  # keep what a view looks at, not a copy of the view
        entry = tape[v]
        while isinstance(entry, Step) and is_view(entry.opcode):
            v = entry.operands[0]
            entry = tape[v]
        return v

    for v in sorted(map(base, used)):
        if not available(v):
            saved.add(v)
    return saved | {v for v in in_memory if v in _closure(tape, used, saved | in_memory)}


def _closure(tape: Sequence[Input | Step], used: set[int], stop: set[int]) -> set[int]:
    # Values reached from `used` through what will be repeated.
    seen: set[int] = set()
    stack = list(used)
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        entry = tape[v]
        if isinstance(entry, Step) and v not in stop:
            stack += [o for o in entry.operands if o >= 0]
    return seen


def replay(graph: Any, plan: Plan, seeds: Sequence[Any], imms: Sequence[tuple[float, ...]],
           run_foreign: Callable[[ForeignStep], None], add_input: Callable[[Any], int]) -> tuple[int, ...]:
    """Records a plan on the graph its tape was recorded on and returns the gradients' ids (-1: none).

    seeds: what `add_input` turns into the plan's first inputs. run_foreign: flushes, computes that call's gradients and adds them as
    inputs. If the graph has grown since the tape was cut, every id of the plan is moved along.
    """
    for seed in seeds:
        add_input(seed)
    offset = graph.size() - len(seeds) - plan.first
    steps = plan.steps
    if plan.patches or offset:
        steps = list(steps)
        for at, source in plan.patches:
            steps[at] = (*steps[at][:5], imms[source], steps[at][6])
    if not offset:
        op = graph.op
        for step in steps:
            if step.__class__ is tuple:
                op(*step)
            else:
                run_foreign(step)
        return plan.gradients
    first = plan.first

    def moved(v: int) -> int:
        return v + offset if v >= first else v

    for step in steps:
        if step.__class__ is tuple:
            graph.op(step[0], tuple(map(moved, step[1])), *step[2:])
        else:
            run_foreign(step._replace(gradients=tuple(map(moved, step.gradients))))
    return tuple(map(moved, plan.gradients))

