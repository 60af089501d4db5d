"""Where the VM's own time went, as a table: a line per captured function, a column per phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PHASES = ("record", "fuse", "tile", "encode", "bind", "dispatch", "kernels", "waiting")


def text(stats: Mapping[str, Any]) -> str:
    """The times of `dvm.stats()` in milliseconds, the function that took longest first, and their sum."""
    functions = sorted(stats["functions"].items(), key=lambda item: -sum(item[1]["time_us"].values()))
    rows = [(name, entry["launches"], entry["time_us"]) for name, entry in functions if entry["launches"]]
    rows.append(("all", sum(row[1] for row in rows), stats["time_us"]))
    width = max(len("function"), *(len(row[0]) for row in rows))
    lines = [f"{'function':<{width}} {'launches':>9} " + " ".join(f"{phase:>10}" for phase in (*PHASES, "ms"))]
    for name, launches, times in rows:
        cells = [times[phase] / 1000 for phase in PHASES]
        lines.append(f"{name:<{width}} {launches:>9} " + " ".join(f"{cell:>10.3f}" for cell in (*cells, sum(cells))))
    return "\n".join(lines)
