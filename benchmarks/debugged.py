"""The program that `debugger.py` debugs: trains the digits model until a file comes. What each step took can be read while it runs."""

from __future__ import annotations

import argparse
import mmap
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

MOST = 1 << 20  # steps
WARM_UP = 20  # steps


class Steps:
    """A file that two processes share: of every step time.perf_counter() at its begin, and its seconds; before them, how many there are."""

    def __init__(self, path: Path, new: bool = False) -> None:
        with path.open("w+b" if new else "r+b") as file:
            if new:
                file.truncate(16 * MOST + 8)
            self._values = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")

    def add(self, began: float, took: float) -> None:
        at = int(self._values[0])
        self._values[1 + 2 * at], self._values[2 + 2 * at] = began, took
        self._values[0] = at + 1

    def __len__(self) -> int:
        return int(self._values[0])

    def all(self) -> list[tuple[float, float]]:
        values = self._values[1:1 + 2 * len(self)].tolist()
        return list(zip(values[::2], values[1::2], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", action="store_true", help="with MindSpore alone, nothing captured")
    parser.add_argument("--steps", type=int, default=MOST, help="ends after so many")
    parser.add_argument("--until", type=Path, required=True, help="ends when this file is there")
    parser.add_argument("--out", type=Path, required=True, help="where its steps are written")
    options = parser.parse_args()
    from digits import step

    run, until = step(captured=not options.plain), str(options.until)
    steps = Steps(options.out, new=True)
    for _ in range(WARM_UP):
        run()
    print("ready", flush=True)
    while not os.path.exists(until) and len(steps) < options.steps:
        began = time.perf_counter()
        run()
        steps.add(began, time.perf_counter() - began)


if __name__ == "__main__":
    main()
