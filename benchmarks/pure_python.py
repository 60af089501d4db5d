"""A script without tensors, for `debugger.py`: calls, loops, dicts and text; writes what it took, in seconds, to the file that is named."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def collatz(n: int) -> int:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def words(count: int) -> dict[str, int]:
    seen: dict[str, int] = {}
    for number in range(count):
        for letter in f"{number:x}":
            seen[letter] = seen.get(letter, 0) + 1
    return seen


def main() -> None:
    began = time.perf_counter()
    found = max(collatz(n) for n in range(1, 60_000)), len(words(300_000))
    Path(sys.argv[1]).write_text(repr(time.perf_counter() - began))
    print(*found)


if __name__ == "__main__":
    main()
