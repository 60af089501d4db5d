"""`dvm doctor --coverage SCRIPT`: which ops a program's captured functions ran, where each ran, and how long that took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

_MOST = 3  # lines of the program told of an op


def report() -> str:
    """What the captured functions of this process have run so far, as two tables: by function and by op. Ours take no time of their own
    within a fused area, so theirs is told by function."""
    from . import programs, stats
    from .frontends import notices, observed

    counted, seen = stats()["functions"], observed.functions()
    ours: Counter[str] = Counter()
    for program in programs():
        for instruction in program.instructions:
            ours[instruction.name] += program.launches
    nothing = {"launches": 0, "instructions": 0, "time_us": {}}
    functions = []
    for name in dict.fromkeys([*counted, *seen]):
        entry, other = counted.get(name, nothing), seen.get(name, observed.Observed())
        if entry["launches"] or other.fallbacks:
            functions.append((name, f"{entry['launches']:,}", f"{entry['instructions']:,}", f"{sum(entry['time_us'].values()) / 1000:.1f}",
                              f"{other.fallbacks.total():,}", f"{sum(other.seconds.values()) * 1000:.1f}"))
    if not functions:
        return "no captured function ran an op"
    theirs: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for entry in seen.values():
        theirs.update(entry.fallbacks)
        seconds.update(entry.seconds)
    places: dict[str, list[str]] = defaultdict(list)
    by: dict[str, str] = {}
    for note in notices.past():
        op, _, rest = note["text"].partition(" is run by ")
        if note["category"] == "fallback" and rest:
            by[op] = rest.partition(":")[0]
            if note["path"] and (place := f"{note['path']}:{note['line']}") not in places[op]:
                places[op].append(place)
    ops = [(op, by.get(op, "the framework"), f"{times:,}", f"{seconds[op] * 1000:.1f}", _listed(places[op]))
           for op, times in theirs.most_common()]
    ops += [(op, "us", f"{times:,}", "", "") for op, times in ours.most_common() if times]
    share = ours.total() / max(ours.total() + theirs.total(), 1)
    return "\n".join([
        *_table(("function", "launches", "instructions", "our ms", "other ops", "their ms"), functions), "",
        *_table(("op", "run by", "times", "ms", "lines"), ops), "",
        f"{share:.1%} of {ours.total() + theirs.total():,} ops were ours",
    ])


def _listed(places: list[str]) -> str:
    more = len(places) - _MOST
    return ", ".join(places[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    rows = [head, *rows]
    widths = [max(len(str(row[at])) for row in rows) for at in range(len(head))]

    def cell(at: int, text: str) -> str:
        return f"{text:>{widths[at]}}" if at and head[at] not in ("run by", "lines") else f"{text:<{widths[at]}}"

    return ["  ".join(cell(at, text) for at, text in enumerate(row)).rstrip() for row in rows]
