"""Data breakpoints: a stop where a tensor has been written, or where an input is no longer what the launch before read.

A value that a program makes is looked at as soon as its instruction has run; an input or parameter, which anyone may write between two
launches, before the first instruction that reads it."""
from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from dvm_wire import syntax

from .. import _core
from . import naming, values
from .commands import Answer, Arguments, CommandError, command, need
from .conditions import Gate
from .evaluate import evaluate
from .hooks import clear_hook, program_name
from .lookup import Names
from .places import place, real
from .replacing import replaced
from .tensors import Tensor

if TYPE_CHECKING:
    from .session import Session
    from .views import LaunchView

_KEPT = 16 << 20  # bytes of a tensor that are kept to name the first element that has changed; of larger ones a digest
_PROGRAMS = 8  # programs whose last values of an input are kept, those that ran last
# What a condition may ask beside the stop's tensors: of the part that is looked at.
FIGURES = ("value", "changed", "count", "nan", "inf", "zeros", "min", "max", "mean", "std")


@dataclass
class DataPoint:
    """One data breakpoint. A value that is made has `path` and `function`; an input is known by name, shape, dtype and the captured
    function that reads it (`program`, the name of its programs; "" for any, as in what was set before that was kept)."""
    id: int
    hook: int
    gate: Gate
    name: str
    part: str = ""  # a slice of it, "" for all
    path: str = ""
    function: str = ""
    program: str = ""
    shape: tuple[int, ...] = ()
    dtype: int = 0
    hooked: set[tuple[int, int]] = field(default_factory=set)
    last: dict[int, Any] = field(default_factory=dict)  # by program, 0 for a value that is made: values or digest when it was looked at

    @property
    def identity(self) -> tuple[Any, ...]:
        if self.made:
            return self.name, self.part, real(self.path), self.function
        return self.name, self.part, self.program, self.shape, self.dtype

    @property
    def made(self) -> bool:
        return bool(self.path)

    def seen(self, program: int, now: Any) -> Any:
        """What it was when it was looked at before, None the first time. An input is compared within a program: two functions may each
        have an `x` of that shape."""
        key = 0 if self.made else program
        before = self.last.pop(key, None)
        self.last[key] = now
        if len(self.last) > _PROGRAMS:
            del self.last[next(iter(self.last))]
        return before

    @property
    def called(self) -> str:
        return f"{self.name}[{self.part}]" if self.part else self.name


class DataBreakpoints:
    """The list in force, and where it hooks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._points: list[DataPoint] = []

    def set(self, asked: list[Answer]) -> list[Answer]:
        """Replaces all. Hits and what was seen last go on for the same tensor."""
        def keep(point: DataPoint, old: DataPoint | None) -> None:
            point.hook = old.hook if old else self._session.new_hook()
            if old:
                point.hooked, point.last = old.hooked, old.last

        points, results, gone = replaced(self._points, asked, _point_of, keep)
        for point in gone:
            self._unhook(point)
        self._points = points
        for program in _core.programs() if points else []:
            self.new_program(program)
        by_id = {point.id: point for point in points}
        return [result if "verified" in result else _verified(by_id[int(str(result["id"]))]) for result in results]

    def clear(self) -> None:
        for point in self._points:
            self._unhook(point)
        self._points = []

    @staticmethod
    def _unhook(point: DataPoint) -> None:
        for program, instruction in point.hooked:
            clear_hook(program, instruction, _core.HOOK_STOP, point.hook)
        point.hooked.clear()

    def new_program(self, program: Any) -> None:
        for point in self._points:
            was = bool(point.hooked)
            for index in _where(point, program):
                if (program.id, index) not in point.hooked:
                    point.hooked.add((program.id, index))
                    _core.set_hook(program.id, index, _core.HOOK_STOP, point.hook)
            if point.hooked and not was:
                self._session.later("bound", **_verified(point))

    def at(self, program: int, instruction: int) -> list[DataPoint]:
        return [point for point in self._points if (program, instruction) in point.hooked]

    def look(self, points: list[DataPoint], view: LaunchView, index: int) -> tuple[list[DataPoint], str]:
        """Those of the points at this instruction that stop, and why. Runs the instruction first where its result is looked at."""
        hit, texts = [], []
        for point in points:
            tensor = self._tensor(point, view, index)
            array = tensor.array() if tensor is not None else None
            if tensor is None or array is None:
                continue
            try:
                part = np.asarray(values.sliced(array, point.part)) if point.part else array
            except values.BadSlice:
                continue  # another shape than the one it was set on
            now = _remembered(part)
            before = point.seen(view.program.id, now)
            changed = before is not None and not _same(before, now)
            if not point.made and not changed:
                continue  # an input that is what it was has not been written
            names = _Figures(Names(view, self._session), part, tensor.dtype, changed)
            where = view.place
            tell = lambda text: self._session.notice(text, path=where.path, line=where.line, category="logpoint")  # noqa: B023, E731
            if point.gate.stops(lambda text: evaluate(naming.spelled(text), names), tell, f"data breakpoint {point.called}"):  # noqa: B023
                hit.append(point)
                texts.append(_told(point, view, index, part, tensor.dtype, before))
        return hit, "; ".join(texts)

    @staticmethod
    def _tensor(point: DataPoint, view: LaunchView, index: int) -> Tensor | None:
        if point.made:
            if view.launch.next <= index:
                view.launch.run_until(index + 1)
            return view.value(len(view.inputs) + index)
        for local in dict.fromkeys(view.instructions[index].operands):
            if 0 <= local < len(view.inputs) and view.value(local).name == point.name:
                return view.value(local)
        return None


def _where(point: DataPoint, program: Any) -> Iterator[int]:
    instructions = program.instructions
    if point.made:
        for index, name in naming.of_program(program).items():
            where = place(instructions[index].place)
            if name == point.name and where.function == point.function and where.real == real(point.path):
                yield index
        return
    if point.program and point.program != program.name:
        return
    for local, (shape, dtype) in enumerate(program.input_shapes):
        if tuple(shape) == point.shape and dtype == point.dtype:
            reader = next((i.index for i in instructions if local in i.operands), None)
            if reader is not None:
                yield reader


def _remembered(part: np.ndarray) -> Any:
    if part.nbytes <= _KEPT:
        return part.copy()
    return hashlib.blake2b(np.ascontiguousarray(part).view(np.uint8).data, digest_size=16).digest()


def _same(before: Any, now: Any) -> bool:
    """Bit for bit: a NaN that stays is no change, 0.0 that becomes -0.0 is one."""
    if isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
        return before.shape == now.shape and before.tobytes() == now.tobytes()
    return type(before) is type(now) and bool(before == now)


def _told(point: DataPoint, view: LaunchView, index: int, part: np.ndarray, dtype: int, before: Any) -> str:
    """`h was written by MUL at model.py:2: [0, 1] was 2.0, is 3.0`."""
    instruction = view.instructions[index]
    text = f"{point.called} was written by {instruction.name}" if point.made else f"{point.called} was written since the launch before"
    if not isinstance(before, np.ndarray) or before.shape != part.shape or not part.size:
        return text
    was, now = (np.atleast_1d(np.ascontiguousarray(a)).view(np.uint8).reshape(part.size, -1) for a in (before, part))
    differ = np.flatnonzero((was != now).any(axis=1))
    if not len(differ):
        return text + ", with the values it had"
    first = [int(i) for i in np.unravel_index(int(differ[0]), part.shape)]
    old, new = (values.texts(a, dtype, int(differ[0]), 1)[0] for a in (before, part))
    return f"{text}: {len(differ)} of {part.size} elements, first {first or ''} was {old}, is {new}".replace("  ", " ")


class _Figures(Mapping[str, Any]):
    """The stop's names, and figures of the part: those are computed when they are asked for."""

    def __init__(self, names: Names, part: np.ndarray, dtype: int, changed: bool) -> None:
        self._names, self._part, self._dtype, self._changed = names, part, dtype, changed

    def __getitem__(self, name: str) -> Any:
        if name == "value":
            return values.numbers(self._part, self._dtype)
        if name == "changed":
            return self._changed
        if name in FIGURES:
            stats = values.statistics(self._part, self._dtype)
            if name == "inf":
                return stats["pos_inf"] + stats["neg_inf"]
            return stats["zero"] / max(1, stats["count"]) if name == "zeros" else stats.get(name, float("nan"))
        return self._names[name]

    def __contains__(self, name: object) -> bool:
        return name in FIGURES or name in self._names

    def __iter__(self) -> Iterator[str]:
        yield from FIGURES
        yield from self._names

    def __len__(self) -> int:
        return len(FIGURES) + len(self._names)


def _point_of(item: Arguments) -> DataPoint:
    shape = need(item, "shape", list, [])
    if not all(type(extent) is int for extent in shape):
        raise CommandError(f'argument "shape" is {shape!r}; it must be a list of whole numbers')
    part = need(item, "part", str, "")
    if part:
        _check_part(part, tuple(shape) if shape else None)
    point = DataPoint(need(item, "id", int), 0, Gate(), need(item, "name", str), part, need(item, "path", str, ""),
                      need(item, "function", str, ""), need(item, "program", str, ""), tuple(shape), need(item, "dtype", int, 0))
    if "\0" in point.path or not point.name:
        raise CommandError("a data breakpoint names a tensor, and the function that makes it or its shape")
    return point


def _check_part(part: str, shape: tuple[int, ...] | None) -> None:
    """Raises CommandError for a slice that cannot be meant, or that has no element of that shape (None: not known): it would never stop."""
    try:
        if shape is None:
            values.parse_slice(part)
        elif not np.asarray(values.sliced(np.broadcast_to(np.int8(0), shape), part)).size:
            raise CommandError(f"[{part}] has no element of shape {list(shape)}: nothing there can be written")
    except values.BadSlice as error:
        raise CommandError(str(error)) from None


def _verified(point: DataPoint) -> Answer:
    verb = "written by" if point.made else "read first by"
    for program, instruction in sorted(point.hooked):
        name = program_name(program)
        if name is not None:
            return {"id": point.id, "verified": True, "message": f"{point.called}: {verb} instruction {instruction} of {name}"}
    return {"id": point.id, "verified": False, "message": f"waits for a program that makes or reads {point.name}"}


@command("dataBreakpoints")
def data_breakpoints(session: Session, arguments: Arguments) -> Answer:
    """items: all of them, as `dataInfo` describes tensors, with id, condition and hitCondition."""
    return {"results": session.data.set(need(arguments, "items", list))}


@command("dataInfo")
def data_info(session: Session, arguments: Arguments) -> Answer:
    """What a data breakpoint on a tensor, by reference or by its text (`h`, `net.fc.weight`, `h[0]`), has to say to find it again."""
    text, part = need(arguments, "name", str).strip(), ""
    if need(arguments, "ref", int, None) is not None:
        tensor: Tensor | None = session.references.get(arguments["ref"])
        prefix = need(arguments, "index", list, [])
        part = ", ".join(str(int(i)) for i in prefix)
    else:
        names = Names(session.stops.require().view, session)
        tensor = names.tensor(text)
        if tensor is None:
            tensor, part = _sliced(names, text)
    if tensor is None:
        raise CommandError(f"`{text}` is no tensor of this stop, nor a part of one")
    if part:
        _check_part(part, tuple(tensor.shape))
    if tensor.cls == "expression":
        raise CommandError(f"`{text}` is computed for this view alone: nothing writes it")
    if naming.is_number(tensor.name):
        raise CommandError(f"{tensor.name} has no name that holds from call to call; set an instruction breakpoint on what makes it")
    told: Answer = {"name": tensor.name, "part": part, "shape": list(tensor.shape), "dtype": tensor.dtype}
    if tensor.place is not None and tensor.place.path:
        told.update(path=tensor.place.path, function=tensor.place.function)
    else:
        told.update(program=_captured_function(session.stops.require().view))
    return {"data": told}


def _captured_function(view: Any) -> str:
    """As its programs are named: of the launch that stands, or of the call that is recorded."""
    program, recorded = getattr(view, "program", None), getattr(view, "capture", None)
    return str(program.name if program is not None else recorded.function if recorded is not None else "")


def _sliced(names: Names, text: str) -> tuple[Tensor | None, str]:
    try:
        node = syntax.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, ""
    if not isinstance(node, ast.Subscript):
        return None, ""
    part = ast.unparse(node.slice).strip("()")
    try:
        values.parse_slice(part)
    except values.BadSlice as error:
        raise CommandError(str(error)) from None
    return names.tensor(ast.unparse(node.value)), part
