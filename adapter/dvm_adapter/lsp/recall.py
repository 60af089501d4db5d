"""What the last run told of a document's lines, moved to where those lines are now."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dvm_wire import lastrun

from .document import moved_lines

Value = dict[str, Any]  # as in dvm_wire.lastrun, lines and columns those of the document


@dataclass
class Recall:
    """values: of lines that are still what ran. functions, notices: as saved, those whose line is still there."""

    values: list[Value] = field(default_factory=list)
    functions: list[dict[str, Any]] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, path: str, lines: Sequence[str]) -> Recall:
        told = lastrun.load(path)
        if told is None:
            return cls()
        texts: dict[int, str] = told["texts"]
        moved = moved_lines(texts, lines)
        values = [here for value in told["values"] if (here := _moved(value, moved, texts, lines)) is not None]
        return cls(values, _kept(told["functions"], moved), _kept(told["notices"], moved))

    def named(self, name: str, first: int, last: int) -> Value | None:
        """The newest value of that name made on those lines, forward."""
        found = [v for v in self.values if v["name"] == name and first <= v["line"] <= last and not v["backward"]]
        return found[-1] if found else None

    def at(self, line: int, column: int) -> list[Value]:
        """Values whose expression covers a position (both from 1), the innermost first; forward before backward."""
        covering = [v for v in self.values if v["line"] <= line <= v["endLine"]
                    and (v["line"] < line or v["column"] <= column) and (line < v["endLine"] or column <= v["endColumn"])]
        return sorted(covering, key=lambda v: (v["backward"], v["endLine"] - v["line"], v["endColumn"] - v["column"]))


def _kept(told: list[dict[str, Any]], moved: Mapping[int, int]) -> list[dict[str, Any]]:
    return [{**entry, "line": moved[entry["line"]]} for entry in told if entry["line"] in moved]


def _moved(value: Value, moved: Mapping[int, int], texts: Mapping[int, str], lines: Sequence[str]) -> Value | None:
    line = moved.get(value["line"], 0)
    if not line:
        return None
    shift = indentation(lines[line - 1]) - indentation(texts[value["line"]])
    end = line + value["endLine"] - value["line"]
    end_shift = shift if value["endLine"] == value["line"] else 0
    return {**value, "line": line, "endLine": end, "column": max(1, value["column"] + shift), "endColumn": value["endColumn"] + end_shift,
            "lines": [moved[other] for other in value["lines"] if other in moved], "folded": moved.get(value["folded"], 0)}


def indentation(text: str) -> int:
    return len(text) - len(text.lstrip())


def shape_text(value: Value) -> str:
    """`f32[s0,64]`: what has varied by its symbol, or as a range where it has none."""
    return f"{value['dtype']}[{','.join(_dim(*dim) for dim in value['dims'])}]"


def _dim(symbol: str, low: int, high: int) -> str:
    return str(low) if low == high else symbol or f"{low}…{high}"


def ranges_text(value: Value) -> str:
    """`s0 = 2 to 7`: the symbols of the shape, "" if none has varied."""
    told = {symbol: f"{symbol} = {low} to {high}" for symbol, low, high in value["dims"] if symbol and low != high}
    return ", ".join(told.values())


def duration(ns: float) -> str:
    """`0.6 µs`, `1.2 ms`: two significant digits and more."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1e3:.2g} µs" if ns else "0 µs"
