"""A client's list of breakpoints that replaces the one before."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .commands import Answer, CommandError
from .conditions import BadCondition, Gate


def replaced(before: list[Any], asked: list[Answer], read: Callable[[Answer], Any], keep: Callable[[Any, Any], None],
             ) -> tuple[list[Any], list[Answer], list[Any]]:
    """The points that are in force now, an answer for each that was asked for, and those of before that are gone.

    read: makes a point of what was asked; keep(point, old): takes over what the same point had before, None for a new one. Hits count on.
    An entry that cannot be meant is answered unverified; the others are in force."""
    known = {point.identity: point for point in before}
    points, results = [], []
    for item in asked:
        try:
            if not isinstance(item, dict):
                raise CommandError(f"a breakpoint is an object with id and place; this is {item!r}")
            point = read(item)
            old = known.get(point.identity)
            count = old.gate.count if old else 0
            point.gate = Gate.of(item.get("condition"), item.get("hitCondition"), item.get("logMessage"), count)
        except (BadCondition, CommandError) as error:
            number = item.get("id") if isinstance(item, dict) else None
            results.append({"id": number, "verified": False, "message": str(error)})
            continue
        known.pop(point.identity, None)  # only now: of one that is refused, the hooks are taken out
        keep(point, old)
        points.append(point)
        results.append({"id": point.id})
    return points, results, list(known.values())
