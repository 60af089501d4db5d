"""Measures the VM and the debugger against their peers in one run, prints a table and writes build/bench.json.

    python benchmarks/run.py [--quick] [--only TEXT]

Contenders of a row are interleaved and compared by medians; ratios, not times, carry from machine to machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attention
import blocks
import calls
import checks
import command
import decoder
import devices
import digits
import networks
import ops
import products
import selector
import vectors
from rich.console import Console
from rich.table import Table
from timing import Row, Share, Sweep, show

import dvm_core as dvm


def line(sweep: Sweep) -> tuple[str, str, str, str]:
    """A row over many shapes: against the best peer of each shape, and each peer alone."""
    if not sweep.compared():
        return f"{sweep.name}, {len(sweep.cells)} shapes", "–", command.ALONE, sweep.aim
    best = sweep.against()
    each = [(peer, sweep.against(peer)) for peer in sweep.peers()]
    told = "   ".join(f"{peer} {s.geomean:.2f} × (won {s.won:.0%})" for peer, s in each)
    worst = f"worst {best.worst:.2f} × at {best.worst_at}"
    return f"{sweep.name}, {best.shapes} shapes", f"{best.geomean:.2f} ×", f"won {best.won:.0%}, {worst}   {told}", sweep.aim


def report(rows: list[Row], sweeps: list[Sweep], shares: list[Share], compile_us: dict[str, float]) -> Table:
    table = Table(title="medians per call; × = how many times faster than that peer ours is", title_justify="left")
    table.add_column("row")
    table.add_column("ours", justify="right")
    table.add_column("peers")
    table.add_column("aim")
    for row in rows:
        peers = "   ".join(f"{peer} {show(t)} ({row.ratio(peer):.2f} ×)" for peer, t in row.times.items() if peer != row.ours)
        table.add_row(row.name, show(row.times[row.ours]), peers, row.aim)
    for sweep in sweeps:
        table.add_row(*line(sweep))
    for share in shares:
        ours, *others = (f"{what} {part:.1%}" for what, part in share.shares.items())
        table.add_row(share.name, ours, "   ".join(others), share.aim)
    slowest = f"p99 {compile_us['p99']:.0f} µs   max {compile_us['max']:.0f} µs"
    table.add_row("compile time per program", f"p50 {compile_us['p50']:.0f} µs", slowest, "")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds in all: to see that it runs, not to judge by")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="only groups whose name has TEXT: calls, vectors, products, attention, networks, decoder, selector, step, "
                             "ops, checks, devices, attached")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    options = parser.parse_args()
    seconds = 0.5 if options.quick else 5.0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 150)
    groups: dict[str, Callable[[], Iterable[Row | Sweep | Share]]] = {
        "calls": lambda: calls.measured(seconds / 5, options.quick),
        "vectors": lambda: vectors.sweeps(options.quick),
        "products": lambda: products.sweeps(options.quick),
        "attention": lambda: attention.sweeps(options.quick),
        "networks": lambda: [*networks.sweeps(options.quick), *blocks.sweeps(options.quick)],
        "decoder": lambda: decoder.rows(1 if options.quick else 3),
        "selector": lambda: selector.measured(options.quick),
        "step": lambda: digits.training_step(seconds * 2),
        "ops": lambda: ops.rows(seconds),
        "checks": lambda: checks.rows(seconds / 5),
        "devices": lambda: devices.rows(seconds / 5),
        "attached": lambda: digits.attached(seconds, options.out.parent.resolve(), pairs=1 if options.quick else 5),
    }
    if not any(options.only in name for name in groups):
        parser.error(f"no group has {options.only!r}; there are {', '.join(groups)}")
    measured: list[Row | Sweep | Share] = []
    for name, group in groups.items():
        if options.only in name:
            with console.status(f"measuring: {name}"):
                measured += group()
    rows = [row for row in measured if isinstance(row, Row)]
    sweeps = [row for row in measured if isinstance(row, Sweep)]
    compile_us = digits.compile_time()
    shares = [row for row in measured if isinstance(row, Share)]
    console.print(report(rows, sweeps, shares, compile_us))
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "simd": dvm.stats().get("simd")}
    told = [{"name": r.name, "seconds": r.times, "ratios": {p: r.ratio(p) for p in r.times if p != r.ours}, "aim": r.aim} for r in rows]
    over = [{"name": s.name, "best": asdict(s.against()) if s.compared() else None,
             "cells": {c.name: c.times for c in s.cells}, "aim": s.aim} for s in sweeps]
    counted = [asdict(share) for share in shares]
    results = {"machine": machine, "rows": told, "sweeps": over, "shares": counted, "compile_us": compile_us}
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
