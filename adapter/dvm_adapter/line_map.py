"""Lines of a file as it is on disk and as the program runs it: they differ after a save that was refused, or is not in force yet."""
from __future__ import annotations

import difflib


class LineMap:
    """in_force, disk: texts with `\\n` as line ends. Lines count from 1; a line that only one of the texts has goes to None."""

    def __init__(self, in_force: str, disk: str) -> None:
        self.in_force = in_force
        old, new = in_force.split("\n"), disk.split("\n")
        # What is alike at both ends is most of a file, and the matcher takes quadratic time.
        head = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        most = min(len(old), len(new)) - head
        tail = next((i for i, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b or i == most), most)
        middle = difflib.SequenceMatcher(None, old[head:len(old) - tail], new[head:len(new) - tail], autojunk=False)
        self._blocks = [(0, 0, head), *((head + i, head + j, n) for i, j, n in middle.get_matching_blocks()),
                        (len(old) - tail, len(new) - tail, tail)]

    def to_disk(self, line: int) -> int | None:
        return next((line - i + j for i, j, n in self._blocks if i < line <= i + n), None)

    def to_force(self, line: int) -> int | None:
        return next((line - j + i for i, j, n in self._blocks if j < line <= j + n), None)
