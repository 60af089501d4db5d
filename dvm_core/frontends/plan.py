"""Backward plans: which forward values are kept, which instructions are repeated, in what order all is recorded at every replay."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _core
from .emit import CODE, is_view
from .tape import Input, Step
from .vjp_rules import CHEAP

COPY = CODE["COPY"]


class ForeignStep(NamedTuple):
    """In a plan: the framework computes a foreign call's gradient. Its results become the graph's next inputs."""

    call: int  # index into the tape's foreign calls
    gradients: tuple[int, ...]  # of each result, -1 where none arrives
    wanted: tuple[int, ...]  # indices of the operands whose gradients it must give, in that order
    keep: tuple[int, ...] = ()  # values computed before it that are read after it


class Immediate(float):
    """An immediate of the tape; a step that passes it on unchanged is patched at every replay."""

    source = -1


@dataclass(slots=True)
class Plan:
    """The backward program of a tape. Operands are value ids: the tape's, then the plan's own, counted on from the tape's end."""

    first: int  # id of the first seed: the tape's length
    steps: list[Any] = field(default_factory=list)  # argument tuples of Graph.op, ForeignStep
    patches: list[tuple[int, int]] = field(default_factory=list)  # (step, tape index): that step's immediate is that instruction's
    saved: tuple[int, ...] = ()  # tape values that must be in memory
    gradients: tuple[int, ...] = ()  # per leaf: id of its gradient, -1 for none


def arrange(builder: Any, imms: dict[int, tuple[float, ...]], in_memory: set[int], gradients: list[int]) -> Plan:
    """The final plan from what a grad.Builder recorded; gradients: per leaf the builder's id, or -1."""
    first = builder.first
    live = _live_items(builder, gradients)
    used = {v for i in live for v in _reads(builder.items[i]) if 0 <= v < first}
    used.update(g for g in gradients if 0 <= g < first)
    saved = _saved(builder.tape, used, in_memory)
    writer = _Writer(builder, imms, saved)
    for i, item in enumerate(builder.items):
        if item is None:
            writer.input(first + i)
        elif i in live:
            if isinstance(item, ForeignStep):
                writer.foreign(item)
            else:
                writer.number[first + i] = writer.step(item, -1, builder.called.get(first + i, ""))
    plan = writer.plan
    plan.gradients = tuple(writer.fresh(g) if g >= 0 else -1 for g in gradients)
    plan.saved = tuple(sorted(saved))
    _keep_over_foreign(plan)
    return plan


class _Writer:
    """Gives the builder's items their final form and numbers."""

    def __init__(self, builder: Any, imms: dict[int, tuple[float, ...]], saved: set[int]) -> None:
        self.plan = Plan(builder.first)
        self.builder = builder
        self.imms = imms
        self.saved = saved
        self.number: dict[int, int] = {}  # builder id or tape id -> id at replay
        self.count = builder.first
        self.writable: set[int] = set()  # results of steps since the last foreign one that nobody was given yet

    def input(self, item: int) -> None:
        self.number[item] = self.count
        self.count += 1

    def step(self, step: Step, source: int, called: str = "") -> int:
        """Writes a step; source: the tape instruction it repeats, -1 for one of the builder's. called: its value's name."""
        operands = tuple(v if v < 0 else self.resolve(v) for v in step.operands)
        immediates = self.imms.get(source, ()) if source >= 0 else step.imms
        link = source if source >= 0 and immediates else next((v.source for v in immediates if isinstance(v, Immediate)), -1)
        if link >= 0:
            self.plan.patches.append((len(self.plan.steps), link))
        plain = tuple(float(v) if isinstance(v, Immediate) else v for v in immediates)
        name = (called,) if called else ()
        self.plan.steps.append((step.opcode, operands, step.attrs, step.shape, step.dtype, plain, step.place, *name))
        self.writable.add(self.count)
        self.count += 1
        return self.count - 1

    def resolve(self, v: int) -> int:
        """The replay's id of a builder's or the tape's value; repeats a tape instruction whose value is not kept."""
        if v >= self.plan.first or v in self.number:
            return self.number[v]
        entry = self.builder.tape[v]
        if isinstance(entry, Input) or v in self.saved:
            return v
        self.number[v] = self.step(entry._replace(place=_core.backward_place(entry.place)), v)
        return self.number[v]

    def fresh(self, g: int) -> int:
        """A gradient as a value that can be written to memory of its own: computed by a step, and given out once."""
        at = self.resolve(g)
        if at not in self.writable:
            self.plan.steps.append((COPY, (at,), (), None, 0, (), self.builder.place))
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


def _reads(item: Step | ForeignStep | None) -> tuple[int, ...]:
    if item is None:
        return ()
    return item.gradients if isinstance(item, ForeignStep) else item.operands


def _live_items(builder: Any, gradients: list[int]) -> set[int]:
    live: set[int] = set()
    stack = [g - builder.first for g in gradients if g >= builder.first]
    stack += [i for i, item in enumerate(builder.items) if isinstance(item, ForeignStep)]
    while stack:
        i = stack.pop()
        if i not in live:
            live.add(i)
            stack += [v - builder.first for v in _reads(builder.items[i]) if v >= builder.first]
    return live


def _saved(tape: Sequence[Input | Step], used: set[int], in_memory: set[int]) -> set[int]:
    """Of the tape values the backward program reads, those that must be kept; the others are views or cheap to repeat."""
    saved: set[int] = set()
    known: dict[int, bool] = {}

    def available(v: int) -> bool:  # without keeping anything new
        entry = tape[v]
        if isinstance(entry, Input) or v in saved or v in in_memory:
            return True
        if v not in known:
            known[v] = (is_view(entry.opcode) or entry.opcode in CHEAP) and all(o < 0 or available(o) for o in entry.operands)
        return known[v]

    def base(v: int) -> int:  # keep what a view looks at, not a copy of the view
        entry = tape[v]
        while isinstance(entry, Step) and is_view(entry.opcode):
            v = entry.operands[0]
            entry = tape[v]
        return v

    for v in sorted(map(base, used)):
        if not available(v):
            saved.add(v)
            known.clear()
    return saved | (in_memory & _closure(tape, used, saved | in_memory))


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


def replay(graph: Any, plan: Plan, seeds: Sequence[Any], imms: dict[int, tuple[float, ...]], run_foreign: Callable[[ForeignStep], None],
           add_input: Callable[[Any], int]) -> tuple[int, ...]:
    """Records a plan on the graph its tape was recorded on and returns the gradients' ids (-1: none).

    seeds: what `add_input` turns into the plan's first inputs. run_foreign: flushes, computes that call's gradients and adds them as
    inputs. If the graph has grown since the tape was cut, every id of the plan is moved along.
    """
    offset = graph.size() - plan.first
    for seed in seeds:
        add_input(seed)
    steps = plan.steps
    if plan.patches:
        steps = list(steps)
        for at, source in plan.patches:
            steps[at] = (*steps[at][:5], imms[source], *steps[at][6:])
    if not offset:
        op = graph.op
        for step in steps:
            if step.__class__ is tuple:
                op(*step)
            else:
                run_foreign(step)
        return plan.gradients

    def moved(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(v + offset if v >= plan.first else v for v in values)

    for step in steps:
        if step.__class__ is tuple:
            graph.op(step[0], moved(step[1]), *step[2:])
        else:
            run_foreign(step._replace(gradients=moved(step.gradients), keep=moved(step.keep)))
    return moved(plan.gradients)
