"""What this run tells of the user's source lines, for an editor that shows it when the run is over: shapes, dtypes, areas, times.

`Recorder.look()` gathers it from the programs when they have changed and writes a file per source file (dvm_wire.lastrun). It is called
from a thread of the debugger's, or at the end of a script that `dvm run` runs; never on the way of a launch.
"""
from __future__ import annotations

import functools
import linecache
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from dvm_wire import lastrun

from . import _core, _library_prefixes, advice
from .dtypes import BY_CODE
from .frontends import names, notices
from .frontends.vjp_rules import CONSTANT
from .msbc import Code
from .symbols import symbols_of

_MOST_VALUES = 20_000  # of a source file
_MOST_PROGRAMS = 100  # that a look goes through, the newest: a session must not be held at its end
_SPARE = 20  # times the last look took, before the next; where nothing but times is new, twice as many after each, up to
_MOST_SPARE = 640
_PAUSE = 2.0  # seconds between two looks, at least
_LIBRARIES = tuple(_library_prefixes())

Value = dict[str, Any]
Key = tuple[Any, ...]


class Recorder:
    """Gathers and saves while a program runs.

    line_of(path, line): the text of a source line that is in force."""

    def __init__(self, line_of: Callable[[str, int], str] = linecache.getline) -> None:
        self._line_of = line_of
        self._stopped = False
        self._seen: dict[int, int] = {}  # program -> launches when it was looked at
        self._values: dict[str, dict[Key, Value]] = {}
        self._next = self._times_due = 0.0
        self._spare = _SPARE
        self._extents: dict[int, Any] = {}  # program -> what its inputs' extents were then
        self._watched = False  # statistics have come in since
        self._stats: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._failed = False
        self._changed: set[str] = set()

    def stop(self) -> None:
        """Saves what is not saved yet; nothing more is saved then."""
        if not self._stopped:
            self.look(at_once=True)
            self._stopped = True

    def statistics(self, program: int, instruction: int, stats: Mapping[str, Any], step: int) -> None:
        """The statistics of a watch that have just come in."""
        self._stats[program, instruction] = {**stats, "step": step}
        self._watched = True

    def look(self, *, at_once: bool = False) -> None:
        """Gathers and saves if there is something new and the last time was long enough ago."""
        begun = time.monotonic()
        if self._stopped or (begun < self._next and not at_once):
            return
        changed = [p for p in _core.programs() if p.launches and self._seen.get(p.id) != p.launches][-_MOST_PROGRAMS:]
        extents = {program.id: program.extents_seen() for program in changed}
        news = self._watched or any(self._extents.get(number) != now for number, now in extents.items())
        if not (news or at_once or begun >= self._times_due):
            self._next = begun + _PAUSE
            return
        self._extents.update(extents)
        self._watched = False
        line_of = functools.cache(self._line_of)
        for program in changed:
            self._seen[program.id] = program.launches
            self._gather(program, extents[program.id], line_of)
        for path in sorted(self._changed):
            self._save(path, line_of)
        self._changed.clear()
        took = time.monotonic() - begun
        self._spare = _SPARE if news else min(2 * self._spare, _MOST_SPARE)
        self._next, self._times_due = begun + max(_PAUSE, _SPARE * took), begun + max(_PAUSE, self._spare * took)

    def _gather(self, program: Any, extents: Any, line_of: Callable[[str, int], str]) -> None:
        instructions, areas = program.instructions, {area.index: area for area in program.areas}
        code = Code.of(program)
        count = len(code.inputs)
        symbols = {dim: symbol for symbol in symbols_of(code, extents) for dim in symbol.dims}
        named = {**names.names_for_program(program), **{i.index: i.value_name for i in instructions if i.value_name}}
        places = [_core.place_info(i.place) if i.place else ("", 0, 0, 0, 0, "", False) for i in instructions]
        lines = {index: sorted({places[i][1] for i in area.instructions if places[i][1]}) for index, area in areas.items()}
        times: dict[Key, int] = {}
        for item, (path, line, end_line, column, end_column, _, backward) in zip(instructions, places, strict=True):
            if not path or path.startswith(_LIBRARIES) or not line:
                continue
            key = (line, column, end_line, end_column, item.opcode, backward)
            times[key] = occurrence = times.get(key, 0) + 1
            area = areas.get(item.area)
            dims = []
            for axis, extent in enumerate(item.shape):
                symbol = symbols.get((count + item.index, axis))
                dims.append([symbol.name if symbol else "", *(symbol.extents if symbol else (extent, extent))])
            folded = places[item.folded_into][1] if item.folded_into >= 0 else 0
            value: Value = {
                "op": item.name, "dtype": BY_CODE[item.dtype].short, "dims": dims, "name": named.get(item.index, ""), "line": line,
                "column": column, "endLine": end_line, "endColumn": end_column, "backward": backward, "program": program.id,
                "instruction": item.index, "area": area.index if area else 0, "areas": len(areas), "cut": area.cut_reason if area else "",
                "lines": lines.get(item.area, []), "folded": folded, "ns": area.ns // len(area.instructions) if area else 0,
                "gradient": item.opcode not in CONSTANT, "stats": self._stats.get((program.id, item.index)),
            }
            known = self._values.setdefault(path, {})
            text = value["text"] = line_of(path, line).rstrip()
            before = known.pop((*key, occurrence), None)  # the newest comes last
            if before is not None and before["text"] == text:
                _widen(value, before)
            if len(known) < _MOST_VALUES:
                known[(*key, occurrence)] = value
            self._changed.add(path)

    def _save(self, path: str, line_of: Callable[[str, int], str]) -> None:
        if not os.path.isfile(path):  # a notebook's cell, code from a text
            return
        # A line that was edited since is another line: what was gathered of it is of no use.
        gathered = list(self._values.get(path, {}).values())  # the training thread goes on gathering
        values = [value for value in gathered if value["text"] == line_of(path, value["line"]).rstrip()]
        told = [{name: notice[name] for name in ("text", "line", "category")}
                for notice in notices.past() if notice["path"] == path and notice["line"]]
        wanted = {value["line"] for value in values} | {notice["line"] for notice in told}
        texts = {str(line): line_of(path, line).rstrip() for line in sorted(wanted)}
        values = [{name: part for name, part in value.items() if name != "text"} for value in values]
        try:
            lastrun.save(path, {"texts": texts, "values": values, "functions": _functions(values), "notices": told})
        except OSError as error:
            if not self._failed:
                self._failed = True
                notices.notice(f"what editors show of lines is not kept: {error}", once="lastrun")


def _widen(value: Value, known: Value) -> None:
    # Ranges of extents cover those that other programs of the line have had; a rank that has changed begins anew.
    if len(value["dims"]) == len(known["dims"]):
        for dim, before in zip(value["dims"], known["dims"], strict=True):
            dim[1], dim[2] = min(dim[1], before[1]), max(dim[2], before[2])
    value["stats"] = value["stats"] or known["stats"]


def _functions(values: list[Value]) -> list[dict[str, Any]]:
    """By captured function with a line here: its first line, launches, µs a launch, areas, instructions, verdict."""
    stats = _core.stats()
    found = advice.of(stats)
    told = []
    for name, first in _first_lines(values).items():
        counted = stats["functions"].get(name)
        if not counted or not counted["launches"]:
            continue
        launches = counted["launches"]
        judged = found.get(name)
        told.append({"name": name, "line": first, "launches": launches, "us": sum(counted["time_us"].values()) / launches,
                     "kernelsUs": counted["time_us"]["kernels"] / launches, "shapes": counted["shapes"],
                     "instructions": counted["instructions"] / launches, "verdict": judged.verdict if judged else "",
                     "why": judged.why if judged else "", "do": judged.do if judged else ""})
    return told


def _first_lines(values: list[Value]) -> dict[str, int]:
    names_of = {program.id: program.name for program in _core.programs()}
    first: dict[str, int] = {}
    for value in values:
        name = names_of.get(value["program"])
        if name and not value["backward"]:
            first[name] = min(first.get(name, value["line"]), value["line"])
    return first

