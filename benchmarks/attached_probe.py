"""Trains the digits model for some seconds and writes the median time of a step: run with and without a debugger attached."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from digits import median_step, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.write_text(repr(median_step(step(captured=True), options.seconds)))


if __name__ == "__main__":
    main()
