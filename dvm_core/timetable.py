"""Where the VM's own time went, as a table: a line per captured function, a column per phase. And what the selector had ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PHASES = ("record", "fuse", "tile", "encode", "bind", "dispatch", "kernels", "waiting")


def text(stats: Mapping[str, Any]) -> str:
    """The times of `dvm.stats()` in milliseconds, the function that took longest first, and their sum."""
    functions = sorted(stats["functions"].items(), key=lambda item: -sum(item[1]["time_us"].values()))
    rows = [(name, entry["launches"], entry["time_us"]) for name, entry in functions if entry["launches"]]
    if not rows:
        return "nothing was launched, so there are no times to tell"
    rows.append(("all", sum(row[1] for row in rows), stats["time_us"]))
    width = max(len("function"), *(len(row[0]) for row in rows))
    lines = [f"{'function':<{width}} {'launches':>9} " + " ".join(f"{phase:>10}" for phase in (*PHASES, "ms"))]
    for name, launches, times in rows:
        cells = [times[phase] / 1000 for phase in PHASES]
        lines.append(f"{name:<{width}} {launches:>9} " + " ".join(f"{cell:>10.3f}" for cell in (*cells, sum(cells))))
    return "\n".join(lines)


def selector(stats: Mapping[str, Any]) -> str:
    """The selector's counters of `dvm.stats()` in two lines."""
    hits, misses, joined = stats["selector_hits"], stats["selector_misses"], stats["selector_clusters"]
    if not hits + misses:
        return "selector: no launch asked it for code"
    share = f"{hits / (hits + misses):.1%} of {hits + misses:,}"
    own, near = stats["compile_us"], stats["cluster_us"]
    lines = [f"selector: {share} launches found their code ready; of {misses:,} others {joined:,} took the tile code of a near shape"]
    kinds = (("compiled in", own), ("from a near shape in", near))
    times = [f"{what} {t['p50']:.1f} µs (p99 {t['p99']:.1f})" for what, t in kinds if t["max"]]
    if stats["selector_warmed"]:
        times.append(f"{stats['selector_warmed']:,} made before they were asked for")
    lines.append(f"  {', '.join([*times, ''])}{stats['selector_segments']:,} segments held in {stats['selector_bytes'] / 1024:,.0f} KB, "
                 f"{stats['selector_evictions']:,} forgotten")
    return "\n".join(lines)
