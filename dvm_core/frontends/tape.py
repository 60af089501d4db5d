"""The tape: what a front end recorded on a graph, in the form gradients are derived from."""
from __future__ import annotations

from typing import Any, NamedTuple

from .emit import CODE, Emitter

POW = CODE["POW"]  # the one opcode whose gradient computes with its immediate
DETACHED = "detached"  # rule of a group that stops gradients


class Input(NamedTuple):
    """A tape entry for an operand in memory."""

    shape: tuple[int, ...]
    dtype: int
    needs_grad: bool
    foreign: int  # number of the foreign call that made it, -1


class Step(NamedTuple):
    """A tape entry for an instruction: the arguments of Graph.op, without immediates unless its rule computes with them."""

    opcode: int
    operands: tuple[int, ...]
    attrs: tuple[int, ...]
    shape: tuple[int, ...] | None
    dtype: int
    imms: tuple[float, ...]
    place: int


class Group(NamedTuple):
    """Marks an instruction as the last of several that share one rule of vjp_rules.GROUPS."""

    rule: str
    operands: tuple[int, ...]
    attrs: tuple[Any, ...]
    saved: tuple[int, ...]


class Foreign(NamedTuple):
    """A call the framework made itself: results are inputs of the graph, its gradient is the framework's business."""

    operands: tuple[int, ...]  # value ids of its tensor arguments, -1 where no gradient can go
    results: tuple[int, ...]  # value ids of its tensor results, -1 where none can come from
    place: int


class Tape(Emitter):
    """Records on a graph and remembers it. Entries lie by value id."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.entries: list[Any] = []  # Input, or a Step as a plain tuple: a named one would cost half as much as recording it
        self.imms: dict[int, tuple[float, ...]] = {}  # immediates of the instructions that have some
        self.groups: dict[int, Group] = {}
        self.foreign: list[Foreign] = []
        self.place = 0  # of what is recorded next
        self._record = graph.op
        self._append = self.entries.append

    def op(self, opcode: int, operands: tuple[int, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float, ...] = ()) -> int:
        value = self._record(opcode, operands, attrs, shape, dtype, imms, self.place)
        self._append((opcode, operands, attrs, shape, dtype, imms if opcode == POW else (), self.place))
        if imms:
            self.imms[value] = imms
        return value

    def shape(self, value: int) -> tuple[int, ...]:
        return self.graph.shape(value)

    def dtype(self, value: int) -> int:
        return self.graph.dtype(value)

    def add_input(self, pointer: int, shape: tuple[int, ...], dtype: int, strides: tuple[int, ...] | None = None, keep: Any = None,
                  cls: str = "", needs_grad: bool = False, foreign: int = -1) -> int:
        """An operand in memory (see Graph.input); needs_grad: a gradient is wanted for it, or flows through it to the foreign call."""
        value = self.graph.input(pointer, shape, dtype, strides, keep, cls)
        self._append(Input(shape, dtype, needs_grad, foreign))
        return value

    def group(self, rule: str, value: int, operands: tuple[int, ...], attrs: tuple[Any, ...] = (), saved: tuple[int, ...] = ()) -> int:
        """Makes the instructions from operands to value one for gradients."""
        self.groups[value] = Group(rule, operands, attrs, saved)
        return value

    def steps(self) -> list[Input | Step]:
        """The entries, all of them named."""
        return [Step(*entry) if entry.__class__ is tuple else entry for entry in self.entries]

    def key(self) -> tuple:
        """Equal for tapes with the same structure, shapes and places: they have the same gradient plan."""
        return tuple(self.entries), tuple(self.groups.items()), tuple(self.foreign)
