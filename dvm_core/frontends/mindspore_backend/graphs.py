"""Graphs that MindSpore has compiled for this back end. One runs node by node inside a captured call, and is replayed from then on."""
from __future__ import annotations

import itertools
import os
import re
from typing import Any, NamedTuple

import mindspore as ms
from mindspore import ops

from ... import _core
from ...errors import UnsupportedError, where
from .. import capture as captures
from .. import fallback, mindspore_call, mindspore_gradients  # noqa: F401 - lowerings
from .. import mindspore_compat as compat
from ..jit import CapturedFunction
from .plain import PLAIN, Partial

_HOME = os.path.dirname(ms.__file__) + os.sep
_LINE = re.compile(r"In file (?P<file>[^\n]+?):(?P<line>\d+)(?:~(?P<end_line>\d+))?(?:, (?P<column>\d+)~(?P<end>\d+))?/"
                   r"(?:\s*def (?P<function>\w+))?")
_NAME = re.compile(r"(?:\d+_)+(?P<name>.+)_\d+")  # MindSpore numbers its graphs
_BACKWARD = "bprop_builder"  # what it calls those of gradients


class Node(NamedTuple):
    """One call of a graph."""

    number: int
    target: int  # the node that says what is called
    operands: tuple[int, ...]
    own: bool  # of the graph itself, not of one around it
    place: int
    gone: tuple[int, ...] = ()  # what nobody reads after it


class Primitive(NamedTuple):
    """An op as a value of a graph."""

    name: str
    instance: Any  # with its attributes, as MindSpore's Python has it
    attributes: tuple[tuple[int, str], ...]  # operands that are attributes there, by number
    foreign: bool = False  # MindSpore runs it, though it is one of ours


class Closure(NamedTuple):
    """A graph as a value, with what it reads of the graphs around it."""

    graph: Graph
    around: dict[int, Any]


class Graph:
    """What MindSpore calls a FuncGraph."""

    def __init__(self, name: str, parameters: list[tuple[int, str, bool]], steps: list[tuple], result: int, whole: str, place: int) -> None:
        """whole: the name of the function that was compiled; place: what stands for a node of which no line is known."""
        self.name = name
        self.parameters = [number for number, _, _ in parameters]
        self.dynamic = any(dynamic for _, _, dynamic in parameters)
        self.result = result
        self.constants: dict[int, Any] = {}
        self.functions: dict[int, int] = {}  # node -> the number of a graph
        self.nodes: list[Node] = []
        for number, kind, *rest in steps:
            if kind == "call":
                (target, *operands), own, lines, scope, backward = rest
                self.nodes.append(Node(number, target, tuple(operands), own, place_of(lines, scope, backward, whole) or place))
            elif kind == "graph":
                self.functions[number] = rest[0]
            else:
                self.constants[number] = _primitive(*rest[0]) if kind == "primitive" else rest[0]
        self._end()
        self.own = {*self.parameters, *self.constants, *self.functions, *(node.number for node in self.nodes if node.own)}
        self.free = {number for node in self.nodes for number in (node.target, *node.operands)} - self.own  # of graphs around it

    def forget(self, kept: set[int]) -> None:
        """From now on values go when nobody reads them any more. kept: what graphs inside of it read."""
        last = {number: at for at, node in enumerate(self.nodes) for number in node.operands}
        made = {node.number for node in self.nodes} - {self.result} - kept
        self.nodes = [node._replace(gone=tuple(number for number in set(node.operands) & made if last[number] == at))
                      for at, node in enumerate(self.nodes)]

    def _end(self) -> None:
        """`last`: the call whose value is the result as it is, -1 if there is none. What is not followed is refused."""
        self.last, number = -1, self.result
        for node in reversed(self.nodes):
            primitive = self.constants.get(node.target)
            through = isinstance(primitive, Primitive) and primitive.name in ("Return", "Depend")
            if node.number != number or not through:
                self.last = number if node.number == number and not isinstance(primitive, Primitive) else -1
                break
            number = node.operands[0]
        for node in self.nodes:
            primitive = self.constants.get(node.target)
            if not isinstance(primitive, Primitive):
                continue
            if primitive.name in _INSIDE and not self._only_reads(node.number, _INSIDE[primitive.name]):
                self.constants[node.target] = primitive._replace(foreign=True)
            if primitive.name in _PYTHON:
                file, line = where(node.place)
                raise UnsupportedError("this makes a Python object while the graph runs (a list or a dict as a result, None, a call of "
                                       'Python): ms.jit(backend="dvm") gives tensors, numbers and tuples; return those, or use '
                                       '@dvm.jit(mode="graph") instead', op=primitive.name, file=file, line=line)


    def _only_reads(self, number: int, parts: int) -> bool:
        """Whether of what a node gives no more than the first parts are read."""
        readers = [node for node in self.nodes if number in node.operands]
        return number != self.result and all(
            isinstance(primitive := self.constants.get(node.target), Primitive) and primitive.name == "TupleGetItem"
            and self.constants[node.operands[1]] < parts for node in readers)


class Program:
    """A compiled function: its graph and those it calls."""

    def __init__(self, described: list[tuple]) -> None:
        name, file, line, self.backward = _function_of(described)
        place = _core.place(file, line, function=name) if file else 0
        place = _core.backward_place(place) if place and self.backward else place
        self.graphs = [Graph(title, parameters, steps, result, name, place) for title, parameters, steps, result in described]
        grown = True
        while grown:  # what a graph reads of those around it, also for those inside of it
            grown = False
            for graph in self.graphs:
                inside = set().union(*(self.graphs[number].free for number in graph.functions.values())) - graph.own
                grown, graph.free = grown or not inside <= graph.free, graph.free | inside
        for graph in self.graphs:
            graph.forget(set().union(*(self.graphs[number].free for number in graph.functions.values())))
        self.changes = any(isinstance(value, Primitive) and _CHANGES.match(value.name)
                           for graph in self.graphs for value in graph.constants.values())

        def call(*arguments: Any) -> Any:
            return self.run(arguments)

        call.__qualname__ = f"{name} (backward)" if self.backward else name
        self.info = CapturedFunction(call, "stream" if self.graphs[0].dynamic else "graph")
        self.info.at = file, line

    def run(self, arguments: tuple) -> Any:
        """Inside a capture."""
        return self._apply(Closure(self.graphs[0], {}), arguments)

    def _apply(self, function: Any, arguments: tuple) -> Any:
        while isinstance(function, Partial):
            function, arguments = function.function, (*function.arguments, *arguments)
        if isinstance(function, Primitive):
            return self._op(function, arguments)
        if not isinstance(function, Closure):
            raise UnsupportedError(f"{type(function).__name__} is called by a graph of ms.jit: this back end calls ops and graphs only")
        while True:
            graph, values = function.graph, dict(function.around)
            values.update(graph.constants)
            values.update(zip(graph.parameters, arguments, strict=True))
            for node in graph.nodes:
                if not node.own and node.number in values:
                    continue
                read = [values[number] if number in values else self._closure(graph.functions[number], values)
                        for number in (node.target, *node.operands)]
                function, arguments = read[0], tuple(read[1:])
                del read
                while isinstance(function, Partial):
                    function, arguments = function.function, (*function.arguments, *arguments)
                if node.number == graph.last and isinstance(function, Closure):
                    break  # what it gives is the result: a loop is a graph that calls itself so
                _capture().at = node.place
                values[node.number] = self._apply(function, arguments)
                del arguments
                for number in node.gone:
                    del values[number]
            else:
                return values[graph.result]

    def _closure(self, number: int, values: dict[int, Any]) -> Closure:
        graph = self.graphs[number]
        return Closure(graph, {at: values[at] for at in graph.free if at in values})

    def _op(self, primitive: Primitive, operands: tuple) -> Any:
        capture = _capture()
        own = PLAIN.get(primitive.name)
        if own is not None:
            capture.primitive = primitive.instance
            return own(self, *operands)
        for number, name in primitive.attributes:
            primitive.instance.add_prim_attr(name, operands[number])
        dispatched = primitive.instance, primitive.name, operands
        if primitive.foreign:
            capture.place = capture.at
            return fallback.run(capture, _Run(primitive.name), primitive.name, dispatched, operands)
        return capture.__ms_dispatch__(_Run(primitive.name), dispatched)


class _Run(NamedTuple):
    """MindSpore's own way to run an op, as a dispatch hands it over."""

    name: str

    def __call__(self, *dispatched: Any) -> Any:
        return compat.call_again(self.name, dispatched)


def _capture() -> Any:
    return captures.active()


def _primitive(name: str, attributes: dict[str, Any], operands: list[tuple[str, bool]]) -> Primitive:
    instance = ops.Primitive(name)
    attributes.setdefault("data_format", attributes.get("format", "NCHW"))
    for attribute, value in attributes.items():
        instance.add_prim_attr(attribute, value)
    return Primitive(name, instance, tuple((number, operand) for number, (operand, known) in enumerate(operands) if known))


def place_of(lines: list[str], scope: str, backward: bool, whole: str = "") -> int:
    """Of a node, from the lines MindSpore has for it, innermost first: the innermost that is not MindSpore's own, 0 if there is none.
    whole: the function that was compiled."""
    found = [match for line in lines if (match := _LINE.search(line))]
    at = next((n for n, match in enumerate(found) if match["column"] and not match["file"].startswith(_HOME)), None)
    if at is None:
        return 0
    first = found[at]
    function = next((match["function"] for match in found[at + 1:at + 2] if match["function"]), "") or whole
    module = "" if backward else ".".join(part.partition("-")[0] for part in scope.split("/")[1:])
    place = _core.place(first["file"], int(first["line"]), int(first["end_line"] or first["line"]), int(first["column"]) + 1,
                        int(first["end"]) + 1, f"{function} ({module})" if module else function)
    return _core.backward_place(place) if backward else place


def _function_of(described: list[tuple]) -> tuple[str, str, int, bool]:
    """Name, file and first line of the user's function that a graph was made of, and whether it is its gradient's."""
    outermost = (line for _, _, steps, _ in described for _, kind, *rest in steps if kind == "call" for line in rest[2][-1:])
    at = next(filter(None, map(_LINE.search, outermost)), None)
    file, line = (at["file"], int(at["line"])) if at else ("", 0)
    name = described[0][0]
    match = _NAME.fullmatch(name)
    name = match["name"] if match else name
    if name == _BACKWARD:
        return _names.get((file, line), name), file, line, True
    _names[file, line] = name
    return name, file, line, False


_names: dict[tuple[str, int], str] = {}  # of functions, by where they are


_CHANGES = re.compile("Assign|Apply|Inplace|Scatter|Adam|Momentum|SGD|Lamb|Lars|Fused")  # ops that give a tensor other values
_INSIDE = {"LSTM": 3}  # how many of its results are not only there for MindSpore's own gradient of the op
_PYTHON = frozenset(("PyExecute", "PyInterpret"))


# ---- what the plug-in calls ----------------------------------------------------------------------------------------------------------

_numbers = itertools.count()
_programs: dict[int, Program] = {}


def add(described: list[tuple]) -> int:
    """Takes a compiled graph; returns its number."""
    number = next(_numbers)
    _programs[number] = Program(described)
    return number


def remove(number: int) -> None:
    _programs.pop(number, None)


def run(number: int, arguments: list) -> Any:
    """Calls a graph with MindSpore tensors and plain values; returns what it returns."""
    program = _programs[number]
    before = compat.stop_recording()  # the gradient is MindSpore's: it compiles a graph for it
    try:
        return mindspore_call.call(program.info, tuple(arguments), {}, step=not program.backward)
    finally:
        compat.record_again(before)

