"""Watches: statistics or bytes of a value, taken while the program runs, every n-th launch."""
from __future__ import annotations

import collections
import difflib
import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dvm_wire import MOST_KEPT

from .. import _core
from ..frontends import reloadable
from . import naming, unmatched, values
from .commands import Answer, Arguments, CommandError, command, need
from .hooks import Changes, Hook
from .line_map import line_map, runs_of_line
from .live import MOST_BYTES, Expression
from .places import Place, place, real

if TYPE_CHECKING:
    from .inputs import Names
    from .session import Session

_PLACES = 3  # a message names at most
_NAMED = 8  # names a message lists at most
_PATIENCE = 2  # steps in which a name may not be made before that is said
_OTHERS = "; made so far: "
_MOST_NEW = 256  # programs between two looks


@dataclass
class Watch:
    """A watch and where it has found its value. A variable may be watched in several programs: forward, backward, other shapes."""
    id: int
    name: str
    kind: int  # HOOK_STATS or HOOK_CAPTURE
    every: int
    variables: tuple[str, ...] = ()  # that are looked for
    path: str = ""
    line: int = 0
    program: int = 0
    instruction: int | None = None
    matched: list[Answer] = field(default_factory=list)
    places: dict[tuple[int, int], Place] = field(default_factory=dict)  # of what matched, of an input of what reads it
    found: dict[int, dict[int, str]] = field(default_factory=dict)  # of what matched by program and instruction the variable, "" for none;
    # -1 - i for a program's input i
    readers: dict[tuple[int, int], int] = field(default_factory=dict)  # of inputs the first instruction that reads each
    live: Expression | None = None  # computed from the variables
    across: bool = False  # other ranks have it as well: digests are told, for the adapter to compare
    since: int = -1  # across: the step in which it was first taken, or again after a loss, perhaps not from its beginning
    times: dict[bool, tuple[int, int]] = field(default_factory=dict)  # across: by backward the last step, and how often in it
    told: bool = False  # why nothing can
    together: bool = False  # what is told of it comes with what is told of others, in one event
    asked: int = 0  # the step in which it was set
    unclear: set[str] = field(default_factory=set)  # names of inputs of which several are told of
    stale: set[int] = field(default_factory=set)  # programs that it was found in and that have not run since a reload
    late: bool = False  # it has been looked for elsewhere some steps later

    @property
    def where(self) -> str:
        """The place it is narrowed to, as it is told: "" for none."""
        return f"{os.path.basename(self.path)}:{self.line}" if self.path and self.line else ""

    def hooks(self, program: int, limit: int) -> list[Hook]:
        """As hooks.Changes has them. limit: bytes of a value that is shown."""
        limit = limit if self.live is None else max(limit, MOST_BYTES)
        joint = len(self.variables) > 1
        return [(program, index, self.hook_kind, self.id, self.every, limit, joint or index < 0) for index in self.found.get(program, ())]

    def missing(self) -> list[str]:
        """The variables that nothing has made so far, and that are no inputs."""
        made = {name for names in list(self.found.values()) for name in list(names.values())}
        return [name for name in self.variables if name not in made]

    def unmade(self) -> list[str]:
        """The variables that no instruction has made so far: those that may be inputs."""
        made = {name for program, names in list(self.found.items()) if program not in self.stale
                for index, name in list(names.items()) if index >= 0}
        return [name for name in self.variables if name not in made]

    def drop_inputs(self) -> list[Hook]:
        """Of variables that instructions turn out to make, inputs of the same name are others. Gives the hooks of these."""
        made = set(self.variables) - set(self.unmade())
        return [hook for program in self.found for hook in self.drop(program, made)]

    def drop(self, program: int, dropped: set[str]) -> list[Hook]:
        """The program's inputs of these names are watched no longer. Gives their hooks."""
        out: list[Hook] = []
        if names := self.found.get(program):
            gone = [index for index, name in names.items() if index < 0 and name in dropped]
            out += [hook for hook in self.hooks(program, 0) if hook[1] in gone]
            for index in gone:
                del names[index], self.places[program, index], self.readers[program, index]
                self.matched = [match for match in self.matched if match["program"] != program or match.get("input") != -1 - index]
        return out

    @property
    def hook_kind(self) -> int:
        """An expression needs the values, whatever is told of it."""
        return self.kind if self.live is None else _core.HOOK_CAPTURE


class Watches:
    """All watches, by their hook numbers in the core, which are the ids the adapter has."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._watches: dict[int, Watch] = {}
        self.lock = threading.Lock()  # for what a watch has found and for its hooks: programs are made on any thread
        self._changes = Changes()
        self._version = reloadable.version
        self._new: collections.deque[Any] = collections.deque(maxlen=_MOST_NEW)  # programs that some watch found nothing in

    def add(self, watch: Watch) -> None:
        self._watches[watch.id] = watch
        programs = _core.programs()
        for look in (self._place, self._place_inputs) if watch.variables else (self._place,):
            for program in programs:
                with self.lock:
                    self._changes.queue(look(watch, program))
        with self.lock:
            self._changes.set([])
        if watch.variables:
            self._session.inputs.want()

    def remove(self, number: int) -> None:
        watch = self._watches.pop(number, None)
        if watch is None:
            raise CommandError(f"there is no watch {number}")
        with self.lock:
            self._changes.clear([hook for program in watch.found for hook in watch.hooks(program, 0)])
        self._session.kept.forget(number)

    def settle(self) -> None:
        """Hooks that were to be set are, and those of what was taken back are taken out."""
        with self.lock:
            self._changes.make()

    def clear(self) -> None:
        for number in list(self._watches):
            self.remove(number)
        self.settle()

    def new_program(self, program: Any) -> None:
        """On the capturing thread, before the program's first launch."""
        self._after_reload()
        if any(watch.unmade() for watch in list(self._watches.values())):
            self._session.inputs.want()
        self._place_all(self._place, program)
        if any(self._puzzled()):
            self._new.append(program)

    def launched(self, program: Any) -> None:
        """On the capturing thread: what the program makes after a reload, it makes still."""
        if self._version != reloadable.version:
            self._after_reload()
        for watch in list(self._watches.values()):
            if program.id in watch.stale:
                with self.lock:
                    watch.stale.discard(program.id)
                    self._changes.clear(watch.drop_inputs())
                    self._changes.make()

    def passed_over(self, program: Any, names: dict[int, Names]) -> list[tuple[int, int]]:
        """On the capturing thread: (watch, instruction) of the inputs that are not meant in the launch that is about to begin, which has
        these names for them; of several that one watch needs one of, all but the one that is read first."""
        out: list[tuple[int, int]] = []
        for watch in list(self._watches.values()):
            if not watch.readers:
                continue
            with self.lock:
                found = watch.found.get(program.id, {})
                inputs = sorted((watch.readers[program.id, index], -1 - index, name) for index, name in found.items() if index < 0)
            one = len(watch.variables) > 1 or self._session.kept.takes(watch.id)
            taken: dict[str, int] = {}  # by name its first reader
            for reader, local, name in inputs:
                if not _has(watch, names.get(local, {}), name) or (one and name in taken):
                    out.append((watch.id, -1 - local))
                    if name in taken and name not in watch.unclear:
                        watch.unclear.add(name)
                        where = place(program.instructions[taken[name]].place)
                        self._notice(watch, f": `{name}` is the name of several tensors that {where.function} reads: the first read, at "
                                            f"{os.path.basename(where.path)}:{where.line}, is taken")
                else:
                    taken[name] = reader
        return out

    def inputs_named(self, program: Any) -> None:
        """On the capturing thread, before a launch of the program: more of its inputs have names."""
        self._place_all(self._place_inputs, program)

    def _place_all(self, look: Callable[[Watch, Any], list[Hook]], program: Any) -> None:
        """For the launch that is about to begin."""
        with self.lock:
            if hooks := [hook for watch in list(self._watches.values()) for hook in look(watch, program)]:
                self._changes.queue(hooks)
                self._changes.make()

    def look(self) -> None:
        """On the agent's thread, for files may be read: tells why a watch found nothing in the programs made since the last look."""
        every = list(self._watches.values())
        self._after_reload()
        self._session.inputs.look(any(watch.unmade() for watch in every), any(watch.readers for watch in every))
        new = [self._new.popleft() for _ in range(len(self._new))]
        for watch in self._puzzled() if new else ():
            if why := self._why(watch, new):
                watch.told = True
                self._notice(watch, why)
        for watch in list(self._watches.values()):
            if watch.live is not None and not watch.missing() and watch.live.apart():
                made = {name: (place, key[1]) for key, place in list(watch.places.items())
                        if (name := watch.found.get(key[0], {}).get(key[1]))}
                self._notice(watch, ": no call of a captured function has made all of its variables; " + ", ".join(
                    f"{name} is {'made' if at >= 0 else 'read'} in {where.function} at {os.path.basename(where.path)}:{where.line}"
                    for name, (where, at) in made.items()))
        for watch in self._puzzled():
            if not watch.late and self._session.step() > watch.asked + _PATIENCE:
                watch.late = True
                self._missing(watch)

    def _after_reload(self) -> None:
        with self.lock:
            if self._version == reloadable.version:
                return
            self._version = reloadable.version
            for watch in list(self._watches.values()):
                watch.stale.update(watch.found)
        if any(watch.variables for watch in list(self._watches.values())):
            self._session.inputs.anew()

    def _missing(self, watch: Watch) -> None:
        why, at = self.instead(watch), f" at {watch.where}" if watch.where else ""
        if (not self._session.rank) if watch.across else why:  # ranks compare nothing without one, and the first of them says so
            it = "it" if len(watch.variables) == 1 else " and ".join(watch.missing())
            self._notice(watch, f": nothing has made {it}{at} in {_PATIENCE} steps{why}")

    def _notice(self, watch: Watch, text: str) -> None:
        self._session.later("notice", text=f"watch {watch.name}{text}", path="", line=0, category="watch")

    def _puzzled(self) -> list[Watch]:
        return [watch for watch in list(self._watches.values()) if not watch.told and watch.missing()]

    def _why(self, watch: Watch, programs: list[Any]) -> str:
        reasons = (unmatched.why(name, watch.path, programs, self._session.texts) for name in watch.missing())
        return next(filter(None, reasons), "")

    def _place(self, watch: Watch, program: Any) -> list[Hook]:
        """Looks for its values; the hooks for them, if these are news."""
        if program.id in watch.found or watch.id not in self._watches:
            return []
        for index, name in self._indices(watch, program):
            where = place(program.instructions[index].place)
            match = {"program": program.id, "instruction": index, "backward": where.backward}
            watch.matched.append(match)
            watch.places[program.id, index] = where
            watch.found.setdefault(program.id, {})[index] = name
        if program.id not in watch.found:
            return []
        self._changes.clear(watch.drop_inputs())
        return watch.hooks(program.id, self._session.settings["snapshotMaxBytes"])

    def _place_inputs(self, watch: Watch, program: Any) -> list[Hook]:
        """The hooks for variables that are inputs of the program, if these are news. Not for names that an instruction makes anywhere."""
        named, known = self._session.inputs.of(program.id), watch.found.get(program.id, {})
        wanted = watch.unmade() if named and watch.id in self._watches else ()
        fresh = {local: name for local, names in sorted(named.items()) for name in wanted
                 if -1 - local not in known and _has(watch, names, name)}
        for local, name in fresh.items():
            readers = [i.index for i in program.instructions if local in i.operands]
            if watch.line:
                readers = [index for index in readers if self._in_line(watch, place(program.instructions[index].place))]
            if not readers:
                continue
            index = -1 - local
            watch.matched.append({"program": program.id, "instruction": readers[0], "backward": False, "input": local})
            watch.places[program.id, index] = place(program.instructions[readers[0]].place)
            watch.readers[program.id, index] = readers[0]
            watch.found.setdefault(program.id, {})[index] = name
        taken = {-1 - local for local in fresh}
        return [hook for hook in watch.hooks(program.id, self._session.settings["snapshotMaxBytes"]) if hook[1] in taken]

    def _in_line(self, watch: Watch, where: Place) -> bool:
        first, last = self._session.texts.span(where.real, watch.line)
        return (not watch.path or real(watch.path) == where.real) and first <= where.line <= last

    def _indices(self, watch: Watch, program: Any) -> list[tuple[int, str]]:
        """With the variable each of them makes."""
        if watch.instruction is not None:
            return [(watch.instruction, "")] if program.id == watch.program and 0 <= watch.instruction < len(program.instructions) else []
        if watch.variables:
            return self._named(watch, program)
        # A line is watched by what it leaves behind: the last instruction of its first forward run.
        texts = self._session.texts
        starts = [run.index for run in runs_of_line(program, watch.path, watch.line, texts) if not place(run.place).backward]
        return [(_last_of_run(program, starts[0], texts), "")] if starts else []

    def _named(self, watch: Watch, program: Any) -> list[tuple[int, str]]:
        """The last instruction that makes a value of each name, per place: in a loop, the newest one wins."""
        found: dict[tuple[int, str], int] = {}
        instructions = program.instructions
        for index, name in sorted(naming.of_program(program).items()):
            if name not in watch.variables:
                continue
            where = place(instructions[index].place)
            if (watch.path and real(watch.path) != where.real) or (watch.line and not self._in_line(watch, where)):
                continue
            found[instructions[index].place, name] = index
        return sorted((index, name) for (_, name), index in found.items())

    def instead(self, watch: Watch) -> str:
        """Where else a name is made that nothing has made yet where it was looked for, what makes it, or else what it may have meant: the
        nearest names among those made so far, or some of them. Of a line, those near it that have run."""
        if not watch.variables:
            return self._lines(watch)
        missing = watch.missing()
        made: dict[str, dict[str, None]] = {}  # name: the places that make it, in order
        elsewhere: dict[str, None] = {}  # places in other files
        for program in _core.programs():
            for index, name in naming.of_program(program).items():
                where = place(program.instructions[index].place)
                here = not watch.path or real(watch.path) == where.real
                if here or name in missing:
                    (made.setdefault(name, {}) if here else elsewhere)[f"{os.path.basename(where.path)}:{where.line}"] = None
        if elsewhere and watch.late:  # until then its own file may be to come
            made.setdefault(missing[0], elsewhere)
        if not made:
            return ""
        if there := [name for name in missing if name in made]:
            watch.told = True
            return "; " + ", ".join(f"{name} is made at {' and '.join(list(made[name])[:_PLACES])}" for name in there)
        if why := self._why(watch, _core.programs()):
            watch.told = True
            return why
        near = difflib.get_close_matches(missing[0], made, 3)
        if near:
            watch.told = True
            return "; did you mean " + " or ".join(f"{name}, made at {next(iter(made[name]))}" for name in near) + "?"
        return _OTHERS + ", ".join(sorted(made)[:_NAMED])

    @staticmethod
    def _lines(watch: Watch) -> str:
        known = {line for program in _core.programs() for line in line_map(program).lines(real(watch.path))} if watch.path else set()
        near = sorted(sorted(known, key=lambda line: (abs(line - watch.line), line))[:_PLACES])
        return "; lines of it that have run: " + ", ".join(map(str, near)) if near else ""

    def snapshots(self, event: dict[str, Any]) -> list[Answer]:
        """The wire's `snapshot`s for an event of the core: none if its watch has gone, if it is kept and another tells of it, or as long as
        the other variables of its expression are to come."""
        watch = self._watches.get(event["hook"])
        if watch is None or (event["instruction"] < 0 and event["instruction"] not in watch.found.get(event["program"], ())):
            return []  # of an input of that name that has been dropped since
        if watch.live is None:
            return [told for told in (self._snapshot(watch, event),) if told is not None]
        variable = watch.found.get(event["program"], {}).get(event["instruction"], "")
        told = []
        for made in watch.live.meet(event, variable, event["beside"]):
            limit = self._session.settings["snapshotMaxBytes"]
            computed = watch.live.of(made, limit, statistics=watch.kind == _core.HOOK_STATS)
            if computed is None:
                self._session.leave_out(1)
            elif (one := self._snapshot(watch, computed)) is not None:
                told.append(one)
        return told

    def _snapshot(self, watch: Watch, event: dict[str, Any]) -> Answer | None:
        at = event["program"], event["instruction"]
        where, kept = watch.places.get(at), self._session.kept
        if at in watch.readers:
            event = {**event, "instruction": watch.readers[at], "input": -1 - at[1]}
        keeps = kept.takes(watch.id)
        told = wire_snapshot(event, watch.id, watch.name, where is not None and where.backward, with_data=not keeps)
        if watch.live is not None:
            told["of"] = ", ".join(watch.live.variables)
        if not keeps:
            return told
        if watch.across:
            self._tell_digest(watch, event, told, where)
            return None
        if not event.get("placeholder"):
            told["snapshot"] = kept.add(watch.id, watch.name, event, where)
        return told if kept.due(watch.id, told) else None

    def _tell_digest(self, watch: Watch, event: dict[str, Any], told: Answer, where: Place | None) -> None:
        step, backward = told["step"], told["backward"]
        if watch.since < 0:
            watch.since = step
        if step == watch.since:
            return
        last, count = watch.times.get(backward, (-1, 0))
        watch.times[backward] = step, count + 1 if step == last else 0
        taken = {"missing": True} if event.get("placeholder") else {
            "snapshot": self._session.kept.add(watch.id, watch.name, event, where),
            "digest": hashlib.blake2b(event["data"], digest_size=16).hexdigest()}
        self._session.connection.event(
            "digest", watch=watch.id, name=watch.name, step=step, call=_core.call_of_step(step), backward=backward,
            ordinal=watch.times[backward][1], shape=told["shape"], dtype=told["dtype"], path=where.path if where is not None else "",
            line=where.line if where is not None else 0, **taken)

    def together(self, number: int | None) -> bool:
        watch = None if number is None else self._watches.get(number)
        return watch is not None and watch.together

    def lost(self) -> None:
        """Events have gone missing, which nobody can tell the watch of: which time in its step the next one is cannot be known."""
        for watch in self._watches.values():
            watch.since = -1


def wire_snapshot(event: dict[str, Any], watch: int | None, name: str, backward: bool, with_data: bool = True) -> Answer:
    """The wire's `snapshot` for an event of the core: with `stats`, `data`, or `placeholder` and its reason."""
    told: Answer = {"watchId": watch, "name": name, "step": event["step"], "shape": list(event["shape"]),
                    "dtype": values.dtype_name(event["dtype"]), "program": event["program"], "instruction": event["instruction"],
                    "launch": event["launch"], "timeNs": event["time_ns"], "backward": backward}
    if "input" in event:
        told["input"] = event["input"]
    if event.get("stats"):
        told["stats"] = event["stats"]
    if event["kind"] == "capture":
        if event.get("placeholder"):
            told.update(placeholder=True, reason=event["placeholder"])
        elif with_data:
            told["data"] = values.packed(event["data"])
    return told


def _last_of_run(program: Any, start: int, texts: Any) -> int:
    here = place(program.instructions[start].place)
    span, last = texts.span(here.path, here.line), start
    for instruction in program.instructions[start:]:
        there = place(instruction.place)
        if instruction.place and (there.path, texts.span(there.path, there.line), there.backward) != (here.path, span, here.backward):
            break
        last = instruction.index
    return last


def _has(watch: Watch, names: Names, name: str) -> bool:
    """Whether an input of these names has the one that is watched, in the watch's file."""
    files = names.get(name)
    return files is not None and (not watch.path or not files.isdisjoint(("", real(watch.path))))


def _waits(watch: Watch) -> str:
    if not watch.variables:
        return f"waits for a captured function to run {watch.where or watch.name}"
    return f"waits for a captured function to make {' and '.join(watch.missing())}{f' at {watch.where}' if watch.where else ''}"


@command("watch")
def watch(session: Session, arguments: Arguments) -> Answer:
    """A variable, or an expression of some, by `expression` (path and line narrow it), a `path` and `line`, or a `program` and
    `instruction`.

    Snapshots of an expression have its variables in `of`; of one that fails they are placeholders with the reason. Of several variables
    the values of one captured call are taken, and everyN counts such calls.

    keep: of "values" so many snapshots are kept here, for `view` and `compare`; their events have a `snapshot` number instead of data.
    across: of these there are `digest` events instead, one for each, with `missing` where there is a placeholder.
    together: of statistics and of what is kept; events come some times a second as `snapshots`, with all there are since the last."""
    what = need(arguments, "what", str, "stats")
    kinds = {"stats": _core.HOOK_STATS, "values": _core.HOOK_CAPTURE}
    if what not in kinds:
        raise CommandError(f"a watch shows {' or '.join(kinds)}, not {what!r}")
    every = need(arguments, "everyN", int, 1)
    if every < 1:
        raise CommandError(f"everyN is {every}; it must be at least 1")
    name = need(arguments, "expression", str, "").strip()
    made = Watch(session.new_hook(), "", kinds[what], every,
                 path=need(arguments, "path", str, ""), line=need(arguments, "line", int, 0), program=need(arguments, "program", int, 0),
                 instruction=need(arguments, "instruction", int, None))
    if not name and not (made.path and made.line) and made.instruction is None:
        raise CommandError("a watch needs an expression, a path and line, or a program and instruction")
    if name:
        made.variables, made.live = Expression.read(name)
    if len(made.variables) > 1 and made.line:
        raise CommandError(f"`{name}` is of {len(made.variables)} variables, which have lines of their own: leave `line` out")
    where = f"{made.path}:{made.line}" if made.path else f"{made.program}:{made.instruction}"
    made.name = need(arguments, "name", str, "") or name or where
    keep = need(arguments, "keep", int, 0)
    if not 0 <= keep <= MOST_KEPT or (keep and what != "values"):
        raise CommandError(f"keep is {keep} of {what}; of values up to {MOST_KEPT} snapshots are kept")
    made.across = bool(keep) and need(arguments, "across", bool, False)
    made.together = need(arguments, "together", bool, False)
    if made.together and what == "values" and not keep:
        raise CommandError("together is for statistics and for snapshots that are kept: these would be large")
    if keep:
        session.kept.keep(made.id, keep)
    made.asked = session.step()
    session.watches.add(made)
    message = "" if made.matched and not made.missing() else _waits(made) + session.watches.instead(made)
    return {"watchId": made.id, "matched": made.matched, "message": message}


@command("unwatch")
def unwatch(session: Session, arguments: Arguments) -> Answer:
    session.watches.remove(need(arguments, "watchId", int))
    return {}
