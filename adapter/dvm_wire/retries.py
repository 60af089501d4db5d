"""Files that are saved together: one that was refused, for what another brings in, is tried once more behind that other."""
from __future__ import annotations

import time
from collections.abc import Callable

from .saves import Stamp, stamp

WITHIN = 3.0  # seconds between the two saves


class Retries:
    """Refused saves, each until it is tried again, saved again, or too old."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._refused: dict[str, tuple[float, Stamp | None]] = {}
        self._now = now

    def answered(self, path: str, outcome: str, again: bool = False) -> list[str]:
        """What came of a save. again: of one that was a try already. Gives what is to be tried again now."""
        self._refused.pop(path, None)
        if outcome == "refused" and not again:
            self._refused[path] = self._now(), stamp(path)
        if outcome != "applied":
            return []
        refused, self._refused = self._refused, {}
        return [other for other, (at, mark) in refused.items() if self._now() - at <= WITHIN and mark is not None and mark == stamp(other)]
