"""What a stop shows: the tensor line on top of the stack, and the tensors that are visible from it."""
from __future__ import annotations

import ast
import collections
import functools
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from dvm_wire import syntax

from .. import _core
from ..hotreload.live import qualname
from . import naming, values
from .commands import Answer
from .places import Place, Texts, place, user_frame
from .tensors import Tensor

if TYPE_CHECKING:
    from .tiles import Tiles

_MOST_LISTED = 200
CONSTANT = "it is a dvm.constant, of which products keep prepared copies"


class View(Protocol):
    """One kind of stop."""

    def frame(self) -> Answer:
        """FRAME of the wire, without ref."""

    def tensors(self) -> list[Tensor]:
        """The operands at hand first, then the other named values of the function, newest first."""

    def find(self, text: str) -> Tensor | None:
        """What the program's text calls `%i0` or `%4`, whether it has another name or not."""


def plain_locals(frame: FrameType | None) -> dict[str, Any]:
    """A frame's variables, globals of its module behind them. Looked at, never changed."""
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


class LaunchView:
    """A launch that stands before an instruction (or, after a numeric check, is complete and points at the culprit)."""

    def __init__(self, launch: Any, instruction: int, capture: Any, texts: Texts, frame: FrameType | None) -> None:
        self.launch, self.capture, self.texts, self.python = launch, capture, texts, frame
        self.program = launch.program
        self.instructions = self.program.instructions
        self.inputs = self.program.input_shapes
        self.names = naming.of_program(self.program)
        self.at = instruction
        self.tiles: Tiles | None = None  # where it stands inside an area, between tile instructions

    def show(self, tiles: Tiles | None) -> None:
        """Stands between tile instructions, at the tensor instruction of the next one; or no more."""
        self.tiles = tiles
        if tiles is not None and tiles.replay.instruction >= 0:
            self.at = tiles.replay.instruction

    @property
    def place(self) -> Place:
        return place(self.instructions[self.at].place)

    def frame(self) -> Answer:
        instruction, where, areas = self.instructions[self.at], self.place, self.program.fused_areas()
        area = next((a for a in areas if a.index == instruction.area), None)
        return {
            "name": self.texts.line(where.path, where.line) or where.function or instruction.name, "path": where.path, "line": where.line,
            "column": where.column, "endLine": where.end_line, "function": where.function, "backward": where.backward,
            "program": self.program.id, "programName": self.program.name, "instruction": self.at, "instructions": len(self.instructions),
            "area": instruction.area, "areas": len(areas), "areaInstructions": list(area.instructions) if area else [self.at],
            "opcode": instruction.name, **({"tile": self.tiles.message()} if self.tiles is not None else {}),
        }

    # ---- tensors
    def value(self, local: int, name: str = "") -> Tensor:
        """The value with that local id."""
        count = len(self.inputs)

        def array() -> np.ndarray | None:
            return self.launch.array(local)

        if local < count:
            shape, dtype = self.inputs[local]
            name = name or self._input_names().get(local) or naming.number(local, count)
            fixed = CONSTANT if self.launch.constant(local) else ""
            return Tensor(name, dtype, tuple(shape), array, cls="input", reason="not in memory", fixed=fixed)
        made = self.instructions[local - count]
        folded = f"merged into instruction {made.folded_into}" if made.folded_into >= 0 else "not yet computed"
        where = place(made.place)
        name = name or self.names.get(made.index) or naming.expression(where, self.texts) or naming.number(local, count)
        return Tensor(name, made.dtype, tuple(made.shape), array, where,
                      reason=folded if local - count < self.launch.next else "not yet computed",
                      extra={"program": self.program.id, "instruction": local - count})

    def find(self, text: str) -> Tensor | None:
        local = naming.local(text, len(self.inputs))
        return self.value(local) if 0 <= local < len(self.inputs) + len(self.instructions) else None

    def operands(self, index: int) -> list[Tensor]:
        return [self.value(operand) for operand in dict.fromkeys(self.instructions[index].operands) if operand >= 0]

    def tensors(self) -> list[Tensor]:
        count, function = len(self.inputs), self.place.function
        found = [*self.operands(self.at), self.value(count + self.at)]
        seen = {tensor.name for tensor in found}
        for index, name in sorted(self.names.items(), reverse=True):
            if index <= self.at and name not in seen and place(self.instructions[index].place).function == function:
                seen.add(name)
                found.append(self.value(count + index, name))
        for local, name in self._input_names().items():
            if name not in seen:
                seen.add(name)
                found.append(self.value(local, name))
        return found[:_MOST_LISTED]

    def _input_names(self) -> dict[int, str]:
        """Names of inputs, which the program itself does not know."""
        if not hasattr(self, "_names"):
            self._names: dict[int, str] = {}
            held: dict[tuple[Any, ...], str] = {}
            for name, value in self._named_values():
                key = _memory(self.capture.graph.array(value))
                if key is not None:
                    held.setdefault(key, name)
            for local in range(len(self.inputs)):
                key = _memory(self.launch.array(local))
                if key in held:
                    self._names[local] = held[key]
        return self._names

    def _named_values(self) -> Iterator[tuple[str, int]]:
        """(name, value of the graph) by all that knows names: Python's variables, the graph's earlier programs, the models in sight."""
        if self.capture is None:
            return
        yield from ((name, value) for name, value, _ in tensor_variables(self.python, self.capture, self.texts))
        graph = self.capture.graph
        made = [value for value in range(graph.size()) if graph.opcode(value)]
        names = naming.of_places([graph.place(value) for value in made])
        yield from ((name, made[index]) for index, name in sorted(names.items(), reverse=True))
        for name, thing in naming.parameters(plain_locals(self.python)):
            value = _found(self.capture, thing)
            if value is not None:
                yield name, value
        yield from ((name, value) for value in range(graph.size()) if (name := self.capture.name_of(value)))


class CaptureView:
    """Python stopped inside a captured call: what was recorded before is complete and in memory, nothing later has begun."""

    def __init__(self, capture: Any, texts: Texts, frame: FrameType) -> None:
        self.capture, self.texts, self.python = capture, texts, frame
        self.graph = capture.graph

    def _made(self) -> list[int]:
        """Results so far, oldest first."""
        return [value for value in range(self.graph.size()) if self.graph.opcode(value)]

    def frame(self) -> Answer:
        code, line = self.python.f_code, self.python.f_lineno or 0
        made = self._made()
        told = {
            "name": self.texts.line(code.co_filename, line), "path": code.co_filename, "line": line, "column": 1,
            "endLine": self.texts.span(code.co_filename, line)[1], "function": qualname(code), "backward": False, "program": None,
            "programName": self.capture.function, "instruction": len(made), "instructions": None, "area": None, "areas": None,
            "areaInstructions": [], "opcode": None,
        }
        program = self._whole_program(made)
        if program is not None:
            following = program.instructions[len(made)]
            areas = program.fused_areas()
            area = next((a for a in areas if a.index == following.area), None)
            told.update(program=program.id, instructions=len(program.instructions), area=following.area, areas=len(areas),
                        areaInstructions=list(area.instructions) if area else [], opcode=following.name)
        elif (begun := self._begun_program(made)) is not None:
            told.update(program=begun.id, instruction=len(begun.instructions))
        return told

    def _begun_program(self, made: list[int]) -> Any:
        """The program that ran last in this call: all there is to show while no call of the function has been seen to its end."""
        recorded = [(self.graph.opcode(value), self.graph.place(value)) for value in made]
        for program in reversed(_core.programs()):
            instructions = program.instructions if program.name == self.capture.function and program.launches else []
            if instructions and [(i.opcode, i.place) for i in instructions] == recorded[-len(instructions):]:
                return program
        return None

    def _whole_program(self, made: list[int]) -> Any:
        """The newest program of this function that began with what has been recorded now, from a call that was not stopped."""
        begun = [(self.graph.opcode(value), self.graph.place(value)) for value in made]
        for program in reversed(_core.programs()):
            if program.name == self.capture.function and program.launches:
                instructions = program.instructions
                if len(instructions) > len(begun) and all(
                        i.opcode == opcode and i.place == where for i, (opcode, where) in zip(instructions, begun, strict=False)):
                    return program
        return None

    def tensors(self) -> list[Tensor]:
        found, seen = [], set()
        for name, value, _ in tensor_variables(self.python, self.capture, self.texts):
            if name not in seen:
                seen.add(name)
                found.append(self._value(value, name))
        held = {tensor.extra["value"] for tensor in found}
        for name, array, dtype in _not_captured(self.python, self.capture):
            if name not in seen:
                seen.add(name)
                found.append(Tensor(name, dtype, array.shape, functools.partial(np.asarray, array), cls="input"))
        function = qualname(self.python.f_code)
        made = self._made()
        names = naming.of_places([self.graph.place(value) for value in made])
        for index in range(len(made) - 1, -1, -1):
            value, where = made[index], place(self.graph.place(made[index]))
            if value not in held and where.function == function:
                name = names.get(index) or naming.expression(where, self.texts) or naming.number(index, 0)
                if name not in seen:
                    seen.add(name)
                    found.append(self._value(value, name))
        return found[:_MOST_LISTED]

    def find(self, text: str) -> Tensor | None:
        made, index = self._made(), naming.local(text, 0)
        return self._value(made[index], text) if 0 <= index < len(made) else None

    def _value(self, value: int, name: str) -> Tensor:
        made = bool(self.graph.opcode(value))
        return Tensor(name, self.graph.dtype(value), tuple(self.graph.shape(value)), lambda: self.graph.array(value),
                      place(self.graph.place(value)) if made else None, cls="activation" if made else "input",
                      fixed=CONSTANT if self.graph.constant(value) else "", extra={"value": value})


def _memory(array: np.ndarray | None) -> tuple[Any, ...] | None:
    """The same memory in the same shape is the same tensor."""
    return None if array is None or not array.size else (array.__array_interface__["data"][0], array.shape)


def call_frames(frame: FrameType | None, capture: Any) -> Iterator[FrameType]:
    """The frame and the user's around it, up to the captured call's."""
    while frame is not None and capture is not None:
        yield frame
        if frame.f_code.co_name == "<module>" or qualname(frame.f_code) == capture.function:
            return
        frame = user_frame(frame.f_back)


def tensor_variables(frame: FrameType | None, capture: Any, texts: Texts, *, around: bool = False) -> Iterator[tuple[str, int, FrameType]]:
    """(name, value id, frame that has it) of the tensors a frame can name: those in the statement it stands on first, as `x` or `self.w`,
    then its locals, then the same of the frames around it up to the captured call; of those without the statement unless `around`."""
    for here in call_frames(frame, capture):
        own = here.f_locals
        named = list(own.items())
        if here is frame or around:
            named[:0] = naming.chains(_statement(here, texts), collections.ChainMap(own, here.f_globals))
        for name, thing in named:
            value = _found(capture, thing)
            if value is not None:
                yield name, value, here


def _not_captured(frame: FrameType | None, capture: Any) -> Iterator[tuple[str, np.ndarray, int]]:
    """(name, elements, code of the dtype) of the frame's own tensors that the capture has not met yet: arguments on the first line, say."""
    for name, thing in list(frame.f_locals.items()) if frame is not None and capture is not None else ():
        if _may_be_tensor(thing) and _found(capture, thing) is None:
            try:
                seen = capture.peek(thing)
            except Exception:  # as in _found
                continue
            if seen is not None:
                yield name, seen[0], values.code_named(seen[1])


def _may_be_tensor(thing: Any) -> bool:
    # Numbers and texts are most of what frames hold; a front end need not be asked about them.
    return not (thing is None or isinstance(thing, (int, float, str, bytes, tuple, list, dict, type)))


def _found(capture: Any, thing: Any) -> int | None:
    if not _may_be_tensor(thing):
        return None
    try:
        return capture.find(thing)
    except Exception:  # a front end must not fail a stop over a variable of the user's
        return None


def _statement(frame: FrameType, texts: Texts) -> ast.AST:
    return _parsed(texts.statement(frame.f_code.co_filename, frame.f_lineno or 0))


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> ast.AST:
    try:
        return syntax.parse(text.rstrip(":") if text.endswith(":") else text)
    except (SyntaxError, ValueError):
        try:
            return syntax.parse(text + " pass")  # the head of an `if` or a loop
        except (SyntaxError, ValueError):
            return ast.Module([], [])
