"""The result of a check: findings, and of every area what its local memory holds; as objects and as text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from .names import Names

# kind of finding -> what it is called in the text
KINDS = {
    "rule": "misuse",
    "race": "missing wait",
    "overwritten": "two values in one place",
    "alias": "a result over its own operand",
    "unwritten": "not written",
    "failed": "failed",
    "cut": "does not fit",
    "cast": "cast",
    "lacks": "no instruction",
    "order": "order of a sum",
}
NOTES = ("cut", "cast", "lacks", "order")  # worth knowing, not wrong


@dataclass(frozen=True)
class Finding:
    """One thing found. kind: a key of KINDS. places: (file, line) of what it speaks of, the first one foremost."""

    kind: str
    text: str
    places: tuple[tuple[str, int], ...] = ()
    program: int = -1
    area: int = -1
    rule: str = ""  # of devices/rules.py

    @property
    def is_note(self) -> bool:
        """Worth knowing, but nothing is wrong."""
        return self.kind in NOTES

    def __str__(self) -> str:
        where = f"{self.places[0][0]}:{self.places[0][1]}: " if self.places and self.places[0][0] else ""
        return f"{where}{'note: ' if self.is_note else ''}{KINDS[self.kind]}: {self.text}"


@dataclass
class AreaReport:
    """One area's tile code on the device: what `_core.check` says of it, and how the other chips would take it."""

    program: int
    number: int
    facts: dict[str, Any]
    names: Names
    elsewhere: list[str] = field(default_factory=list)

    @property
    def peak(self) -> int:
        """Bytes of local memory its tiles take."""
        return self.facts["peak"]

    def title(self) -> str:
        """One line: kind, tiles, and the share of the local memory."""
        return f"area {self.number}: {self.what()}"

    def what(self) -> str:
        """The same without its number."""
        f = self.facts
        rows, cols = f["tile"]
        text = f"{f['kind']}, {f['tiles']:,} tiles of {rows} x {cols}"
        if not f["limit"] or f["kind"] == "move":
            return text + (", copied as a whole" if f["kind"] == "move" else "")
        return f"{text}, {f['peak']:,} of {f['limit']:,} bytes of UB ({100 * f['peak'] // f['limit']} %)"

    def map(self) -> list[str]:
        """The UB where it is fullest: bytes, size, value, line, how long it lives there."""
        f = self.facts
        if not f["buffers"]:
            return []
        held = sorted((f["buffers"][number] for number in f["held"]), key=lambda buffer: buffer["bytes"])
        total = sum(buffer["bytes"][1] - buffer["bytes"][0] for buffer in held)
        lines = [f"fullest at {self.names.tile(f, f['fullest'])}: {total:,} bytes hold"]
        for buffer in held:
            first, last = buffer["bytes"]
            lives = "for the whole area" if buffer["pinned"] else f"instructions {buffer['first']} to {buffer['last']}"
            lines.append(f"  {first:#07x}-{last:#07x} {last - first:>9,}  {self.names.buffer(buffer):<56} {lives}")
        if f["peak"] > total:
            lines.append(f"  {'':>15} {f['peak'] - total:>9,}  of other instructions, or between them")
        return lines

    def rest(self, maps: bool) -> list[str]:
        """What is said below its title; maps: with what lies where."""
        events = [f"events used, of 8: {self.events()}"] if self.facts["events"] else []
        return [*self.map(), *events] if maps else []

    def events(self) -> str:
        """Events by pair of pipes, of eight."""
        return ", ".join(f"{start} to {end} {used}" for (start, end), used in self.facts["events"].items())


@dataclass
class Report:
    """What `dvm.check` found. True if something was checked and nothing is wrong; str() is the text."""

    device: str
    what: str
    findings: list[Finding] = field(default_factory=list)
    areas: list[AreaReport] = field(default_factory=list)
    programs: list[tuple[int, str]] = field(default_factory=list)
    ran: bool = False  # launches were watched: coverage and orders are of them

    @property
    def errors(self) -> list[Finding]:
        """The findings that are wrong, without notes."""
        return [item for item in self.findings if not item.is_note]

    @property
    def notes(self) -> list[Finding]:
        """Findings worth knowing."""
        return [item for item in self.findings if item.is_note]

    def __bool__(self) -> bool:
        return bool(self.programs) and not self.errors

    def text(self, maps: bool = True) -> str:
        """The report; maps: with what lies where in the UB of each area."""
        lines = [f"{self.what} on {self.device}: {_count(len(self.programs), 'program')}, {_count(len(self.areas), 'area')}"]
        for number, name in self.programs:
            lines.append(f"program {number} {name}")
            for alike in _alike([item for item in self.areas if item.program == number], maps):
                first, last = alike[0], alike[-1]
                lines.append(f"  {first.title()}" if len(alike) == 1 else f"  areas {first.number} to {last.number} alike: {first.what()}")
                lines += [f"    {line}" for line in first.rest(maps)]
                lines += [f"    {line}" for line in last.elsewhere]
        lines += [str(item) for item in (*self.errors, *self.notes)]
        checked = "waits, places in the UB, results" + (", every byte that was written" if self.ran else "")
        if self.errors:
            lines.append(f"{_count(len(self.errors), 'fault')} found")
        else:
            lines.append(f"nothing wrong: {checked}" if self.programs else "nothing was launched, so nothing was checked")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()


def _alike(areas: list[AreaReport], maps: bool) -> list[list[AreaReport]]:
    # Areas in a row of which the same would be said.
    return [list(group) for _, group in itertools.groupby(areas, lambda area: (area.what(), area.rest(maps)))]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
