"""Files that are saved together: one that was refused, for what another brings in, is tried again behind that other."""
from __future__ import annotations

from .saves import Stamp, stamp

WITHIN = 10.0  # seconds between the two saves


class Retries:
    """Refused saves, each until it is taken, saved again, or too old."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[float, Stamp | None]] = {}

    def answered(self, path: str, outcome: str, at: float, again: bool = False) -> list[str]:
        """What came of a save. at: when it was made, in seconds of a steady clock; again: it was a try already. Gives what is to be tried
        again now."""
        before = self._refused.pop(path, None)
        if outcome == "refused":  # what it waits for may be the next
            self._refused[path] = before if again and before is not None else (at, stamp(path))
        if outcome != "applied":
            return []
        self._refused = {other: (then, mark) for other, (then, mark) in self._refused.items()
                         if at - then <= WITHIN and mark is not None and mark == stamp(other)}
        return list(self._refused)
