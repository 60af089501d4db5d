"""Breakpoints on lines and instructions: from what the editor asked for to STOP hooks on the instructions of every program."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import _core
from .commands import Answer, Arguments, command, need
from .conditions import BadCondition, Gate
from .hooks import clear_hook, program_name
from .line_map import line_map, runs_of_line
from .places import function_around, place, real
from .replacing import replaced
from .tiles import listing

if TYPE_CHECKING:
    from .session import Session

_COMPILED = ("torch forward", "torch backward")  # programs of torch.compile: Python never runs the lines that they come from
_NEAREST = 2  # lines with a gradient that are named for one without


@dataclass
class Point:
    """One breakpoint. A line has `path` and `line`, an instruction `program` and `instruction`, a tile instruction `program` and `tile`,
    an op its name."""
    id: int
    hook: int  # our number in the core
    gate: Gate
    path: str = ""
    line: int = 0
    mode: str = "forward"
    program: int = 0
    instruction: int | None = None
    tile: tuple[int, int] | None = None  # area, and line of its listing
    op: str = ""
    hooked: set[tuple[int, int]] = field(default_factory=set)  # (program, instruction) with a STOP of ours
    bound: Answer | None = None  # "tensorLine" of the first program that has the line
    moved: int = 0  # the line below it that it stops at: of its own there is no instruction, and the function runs compiled
    bare: bool = False  # nor is there one below it in its function, which runs compiled
    head: str = ""  # what is told of the head of a captured function
    hint: str = ""  # why a backward line will not stop, as far as the programs so far show

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes it the same breakpoint when the list is sent again: conditions may change, the hits go on."""
        return (real(self.path), self.line, self.mode) if self.path else (self.program, self.instruction, self.tile, self.op)


class Breakpoints:
    """All lists. Hooks of a program are set when it is made, or when the list arrives."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines: list[Point] = []
        self._instructions: list[Point] = []
        self._ops: list[Point] = []
        self._by_hook: dict[int, Point] = {}
        self._given: dict[str, str] = {}  # real path -> the spelling the editor uses
        self.graph_mode: set[int] = set()  # programs whose Python body does not run again
        self._made = 0  # programs that were told of
        self._replayed: dict[str, int] = {}  # captured function -> how many these were when its programs were last looked for
        self._gradients: dict[str, set[int]] = {}  # real path -> lines that backward instructions come from
        self._looked_at: set[int] = set()  # programs whose lines are in there

    def given_path(self, path: str) -> str:
        return self._given.get(real(path), path) if path else path

    def at(self, hooks: tuple[int, ...]) -> list[Point]:
        """The breakpoints with these hook numbers."""
        return [self._by_hook[hook] for hook in hooks if hook in self._by_hook]

    def on(self, program: int, instruction: int) -> list[Point]:
        return [point for point in self._by_hook.values() if (program, instruction) in point.hooked]

    def tiles_at(self, view: Any) -> list[Point]:
        """Those on the tile instruction, or in the strip, that a view stands before."""
        at = view.tiles.area, view.tiles.replay.line
        return [point for point in self._instructions if point.program == view.program.id and point.tile is not None
                and (point.tile[0], view.tiles.strip(point.tile[1])) == at]

    # ---- the lists ---------------------------------------------------------------------------------------------------------------------
    def set_lines(self, asked: list[Answer]) -> list[Answer]:
        """Replaces all line breakpoints."""
        self._lines, results = self._read(self._lines, asked, _line_of)
        self._given.update({real(point.path): point.path for point in self._lines})
        return self._place_all(self._lines, results)

    def set_instructions(self, asked: list[Answer]) -> list[Answer]:
        self._instructions, results = self._read(self._instructions, asked, _instruction_of)
        return self._place_all(self._instructions, results)

    def set_ops(self, asked: list[Answer], read: Callable[[Answer], Point]) -> list[Answer]:
        self._ops, results = self._read(self._ops, asked, read)
        return self._place_all(self._ops, results)

    def _read(self, before: list[Point], asked: list[Answer], read: Any) -> tuple[list[Point], list[Answer]]:
        def keep(point: Point, old: Point | None) -> None:
            point.hook = self._session.new_hook()
            if old is not None:  # hooks stay where they are; only what they mean is new
                point.hook, point.hooked, point.bound, point.moved = old.hook, old.hooked, old.bound, old.moved
            self._by_hook[point.hook] = point

        points, results, gone = replaced(before, asked, read, keep)
        for point in gone:
            self._unhook(point)
        return points, results

    def _place_all(self, points: list[Point], results: list[Answer]) -> list[Answer]:
        """Binds a list that is in force already: a program made meanwhile on the training thread has seen it (`new_program`)."""
        programs = _core.programs() if points else []
        for program in programs:
            self._note_gradients(program)
        for point in points:
            for program in programs:
                self._place(point, program)
            self._look_for_head(point, programs)
            point.hint = self._hint(point)
        by_id = {point.id: point for point in points}
        return [result if "verified" in result else _verified(by_id[result["id"]]) for result in results]

    def clear(self) -> None:
        for point in self._lines + self._instructions + self._ops:
            self._unhook(point)
        self._lines, self._instructions, self._ops = [], [], []

    def _unhook(self, point: Point) -> None:
        self._take_out(point)
        self._by_hook.pop(point.hook, None)

    @staticmethod
    def _take_out(point: Point) -> None:
        for program, instruction in point.hooked:
            clear_hook(program, instruction, _core.HOOK_STOP, point.hook)
        point.hooked.clear()

    # ---- programs ----------------------------------------------------------------------------------------------------------------------
    def new_program(self, program: Any, graph_mode: bool) -> None:
        """On the capturing thread, before the program's first launch."""
        self._made += 1
        self._place_in(program, graph_mode)

    def replayed(self, function: str) -> None:
        """On the capturing thread, before a function's trace is run: its Python body does not, so its lines stop here, also in programs
        that were made while it did."""
        if self._replayed.get(function) == self._made:
            return
        self._replayed[function] = self._made
        for program in _core.programs():
            if program.name == function and program.id not in self.graph_mode:
                self._place_in(program, True)

    def _place_in(self, program: Any, graph_mode: bool) -> None:
        if graph_mode:
            self.graph_mode.add(program.id)
        self._note_gradients(program)
        for point in self._lines + self._ops:
            was = point.bound, point.hint
            self._place(point, program)
            self._look_for_head(point, [program])
            point.hint = self._hint(point)
            if point.bound is not was[0] or point.hint != was[1]:
                self._session.later("bound", **_verified(point))

    def _note_gradients(self, program: Any) -> None:
        if program.id in self._looked_at:
            return
        self._looked_at.add(program.id)
        for number in {instruction.place for instruction in program.instructions}:
            where = place(number)
            if where.backward:
                self._gradients.setdefault(where.real, set()).add(where.line)

    def _hint(self, point: Point) -> str:
        """What is told, once a program of its file was made, of a backward line without a gradient, and of the head of a function that was
        captured; "" for any other."""
        if point.head:
            return point.head
        if point.bare and point.bound is None:
            return "nothing stops here: no instruction comes of this line or of one below it in its function, which runs compiled"
        if point.mode != "backward" or not point.path or (point.bound is not None and point.bound["backward"]):
            return ""
        lines = self._gradients.get(real(point.path), ())
        nearest = sorted(sorted(lines, key=lambda line: (abs(line - point.line), line))[:_NEAREST])
        known = "; nearest lines that have: " + ", ".join(map(str, nearest))
        return "nothing on this line has a gradient" + known if nearest else ""

    def _look_for_head(self, point: Point, programs: list[Any]) -> None:
        if point.head or not point.path or point.bound is not None:
            return
        path = real(point.path)
        body = self._session.texts.headed(path, point.line)
        if body is not None and any(line_map(program).instructions(path, *body[1:]) for program in programs):
            point.head = f"stops once, when Python defines {body[0]}; to stop in its calls set it at line {body[1]}, where the body begins"

    def _place(self, point: Point, program: Any) -> None:
        """Sets the hooks of one breakpoint in one program."""
        if point.op:
            for instruction in program.instructions:
                if instruction.name == point.op and instruction.folded_into < 0:
                    self._hook(point, program, instruction)
            return
        if point.tile is not None:
            area, line = point.tile
            if program.id == point.program and any(known.line == line for known in listing(program, area)):
                # The launch stops before the area, which is then run again up to the instruction.
                self._hook(point, program, program.instructions[min(program.fused_areas()[area].instructions)])
            return
        if point.instruction is not None:
            if program.id == point.program and 0 <= point.instruction < len(program.instructions):
                self._hook(point, program, program.instructions[point.instruction])
            return
        compiled = program.name in _COMPILED
        runs = runs_of_line(program, point.path, point.line, self._session.texts)
        if runs and point.moved:
            self._move(point, 0)
        elif not runs and compiled and point.mode != "backward" and (line := self._line_below(program, point)):
            if line != point.moved:
                self._move(point, line)
            runs = runs_of_line(program, point.path, line, self._session.texts)
        for instruction in runs:
            backward = place(instruction.place).backward
            if point.bound is None or (backward and not point.bound["backward"] and point.mode != "forward"):
                point.bound = _tensor_line(program, instruction, backward)
            # A line that Python itself runs stops there, by Python's debugger; a second stop in the VM would be one too many.
            if (backward and point.mode in ("backward", "both")) or (
                    not backward and point.mode in ("forward", "both") and (compiled or program.id in self.graph_mode)):
                self._hook(point, program, instruction)

    def _move(self, point: Point, line: int) -> None:
        self._take_out(point)
        point.moved, point.bound = line, None

    def _line_below(self, program: Any, point: Point) -> int:
        """The next line of its function that has a forward instruction there, or the one that is known if none is nearer; 0 where there is
        none, or the line itself is in another program."""
        path = real(point.path)
        known, body = line_map(program), function_around(self._session.texts.text(path), point.line)
        if body is None or (point.bound is not None and not point.moved):
            return 0
        last = point.moved or (body.end_lineno or point.line)
        places = program.places
        there = [line for line in sorted(known.lines(path)) if body.lineno <= line <= last
                 and any(not place(places[index]).backward for index in known.instructions(path, line, line))]
        point.bare = point.bare or bool(there)
        return next((line for line in there if line > point.line), 0)

    @staticmethod
    def _hook(point: Point, program: Any, instruction: Any) -> None:
        if point.bound is None:
            point.bound = _tensor_line(program, instruction, place(instruction.place).backward)
        if (program.id, instruction.index) not in point.hooked:
            point.hooked.add((program.id, instruction.index))
            _core.set_hook(program.id, instruction.index, _core.HOOK_STOP, point.hook)


def _tensor_line(program: Any, instruction: Any, backward: bool) -> Answer:
    return {"program": program.id, "instruction": instruction.index, "area": instruction.area, "backward": backward}


def _verified(point: Point) -> Answer:
    if point.hint:
        return {"id": point.id, "verified": False, "message": point.hint, "hint": True}
    if point.bound is None and point.tile is not None:
        where = f"program {point.program} has no tile instruction {point.tile[1]} in area {point.tile[0]}"
        return {"id": point.id, "verified": False, "message": where}
    if point.bound is None:
        if point.op:
            return {"id": point.id, "verified": False, "message": f"waits for a program with the op {point.op}"}
        missing = "" if point.instruction is None else f"there is no instruction {point.instruction} in program {point.program}"
        return {"id": point.id, "verified": False, "message": missing}
    bound = point.bound
    name = program_name(bound["program"]) or "a program that is gone"
    direction = f"every {point.op}, first" if point.op else "gradient of this line" if bound["backward"] else "tensor line"
    area = f", area {bound['area']}" if bound["area"] >= 0 else ""  # a view is in no area
    if point.tile is not None:
        return {"id": point.id, "verified": True, "message": f"tile instruction {point.tile[1]} of area {point.tile[0]} of {name}",
                "tensorLine": bound}
    told = {"id": point.id, "verified": True, "message": f"{direction}: instruction {bound['instruction']} of {name}{area}",
            "tensorLine": bound}
    if point.moved:
        told.update(line=point.moved, message=f"the next line with an instruction, of line {point.line} there is none; {told['message']}")
    return told


def _line_of(item: Arguments) -> Point:
    mode = item.get("mode") or "forward"
    if mode not in ("forward", "backward", "both"):
        raise BadCondition(f"there is no mode {mode!r}; there are forward, backward and both")
    path = need(item, "path", str)
    if "\0" in path:
        raise BadCondition(f'argument "path" is {path!r}; no file is called that')
    return Point(need(item, "id", int), 0, Gate(), path=path, line=need(item, "line", int), mode=mode)


def _instruction_of(item: Arguments) -> Point:
    if item.get("area") is not None:
        tile = need(item, "area", int), need(item, "line", int)
        return Point(need(item, "id", int), 0, Gate(), program=need(item, "program", int), tile=tile)
    return Point(need(item, "id", int), 0, Gate(), program=need(item, "program", int), instruction=need(item, "instruction", int))


@command("breakpoints")
def breakpoints(session: Session, arguments: Arguments) -> Answer:
    """lines: all of them, in every file. Those that are in no program yet are bound when one comes, which is told by `bound`."""
    return {"results": session.breakpoints.set_lines(need(arguments, "lines", list))}


@command("instructionBreakpoints")
def instruction_breakpoints(session: Session, arguments: Arguments) -> Answer:
    return {"results": session.breakpoints.set_instructions(need(arguments, "items", list))}
