"""Measures the VM and the debugger against their peers, prints a table and writes build/bench.json.

    python benchmarks/run.py [--quick] [--only TEXT]

Contenders of a row are interleaved in one process and compared by medians; ratios, not times, carry from machine to machine. Each group is
a process of its own: one that fails or crashes is told, with the rows it had, and the others go on. What is measured is on disk at once.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import command
from rich.console import Console
from rich.table import Table
from timing import Row, Share, Sweep

import dvm_core as dvm

FOLDER = Path(__file__).resolve().parent
Measured = Row | Sweep | Share
KINDS: dict[str, type[Measured]] = {kind.__name__: kind for kind in (Row, Sweep, Share)}


@dataclass(frozen=True)
class Group:
    """Rows that belong together. minutes: what it takes on two cores, told beforehand; measured(quick, folder for files): its rows."""

    minutes: float
    measured: Callable[[bool, Path], Iterable[Measured]]


def _module(name: str) -> Any:
    """Imported by the group's process alone, for some bring a framework with them."""
    return importlib.import_module(name)


GROUPS = {
    "calls": Group(3, lambda quick, _: _module("calls").measured(0.1 if quick else 1.0, quick)),
    "compiling": Group(0.3, lambda quick, _: _module("compiling").measured(quick)),
    "vectors": Group(20, lambda quick, _: _module("vectors").sweeps(quick)),
    "products": Group(20, lambda quick, _: _module("products").sweeps(quick)),
    "attention": Group(20, lambda quick, _: _module("attention").sweeps(quick)),
    "networks": Group(10, lambda quick, _: _module("networks").sweeps(quick)),
    "models": Group(25, lambda quick, _: _module("models").rows(quick)),
    "blocks": Group(5, lambda quick, _: _module("blocks").sweeps(quick)),
    "memory": Group(0.5, lambda quick, _: _module("memory").measured(quick)),
    "decoder": Group(5, lambda quick, _: _module("decoder").rows(1 if quick else 3)),
    "selector": Group(0.3, lambda quick, _: _module("selector").measured(quick)),
    "step": Group(0.5, lambda quick, _: _module("digits").training_step(1.0 if quick else 10.0)),
    "reload": Group(5, lambda quick, folder: _module("reload").measured(quick, folder)),
    "ops": Group(1, lambda quick, _: _module("ops").rows(0.5 if quick else 5.0)),
    "checks": Group(0.2, lambda quick, _: _module("checks").rows(0.1 if quick else 1.0)),
    "devices": Group(0.2, lambda quick, _: _module("devices").rows(0.1 if quick else 1.0)),
    "debugger": Group(10, lambda quick, folder: _module("debugger").measured(quick, folder)),
}


def line(sweep: Sweep) -> tuple[str, str, str, str]:
    """A row over many shapes: against the best peer of each shape, and each peer alone."""
    if not sweep.compared():
        return f"{sweep.name}, {len(sweep.cells)} shapes", "–", command.ALONE, sweep.aim
    best = sweep.against()
    each = [(peer, sweep.against(peer)) for peer in sweep.peers()]
    told = "   ".join(f"{peer} {s.geomean:.2f} × (won {s.won:.0%})" for peer, s in each)
    worst = f"worst {best.worst:.2f} × at {best.worst_at}"
    return f"{sweep.name}, {best.shapes} shapes", f"{best.geomean:.2f} ×", f"won {best.won:.0%}, {worst}   {told}", sweep.aim


@dataclass
class Results:
    """What was measured so far, and the groups that did not come to their end: why, in a line."""

    measured: list[Measured] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def of(self, kind: type) -> list[Any]:
        return [row for row in self.measured if isinstance(row, kind)]

    def table(self) -> Table:
        table = Table(title="medians per call; × = how many times faster than that peer ours is", title_justify="left")
        table.add_column("row")
        table.add_column("ours", justify="right")
        table.add_column("peers")
        table.add_column("aim")
        for row in self.of(Row):
            peers = "   ".join(f"{peer} {row.shown(peer)} ({row.ratio(peer):.2f} ×)" for peer in row.times if peer != row.ours)
            table.add_row(row.name, row.shown(row.ours), peers, row.aim)
        for sweep in self.of(Sweep):
            table.add_row(*line(sweep))
        for share in self.of(Share):
            ours, *others = (f"{what} {part:.1%}" for what, part in share.shares.items())
            table.add_row(share.name, ours, "   ".join(others), share.aim)
        for group, why in self.failed.items():
            table.add_row(f"group {group}", "failed", why, "")
        return table

    def write(self, out: Path) -> None:
        """Whole or not at all: a reader never finds half a file."""
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "simd": dvm.stats().get("simd")}
        rows = [{"name": r.name, "seconds" if r.unit == "s" else r.unit: r.times,
                 "ratios": {p: r.ratio(p) for p in r.times if p != r.ours}, "aim": r.aim} for r in self.of(Row)]
        sweeps = [{"name": s.name, "best": asdict(s.against()) if s.compared() else None, "cells": {c.name: c.times for c in s.cells},
                   "aim": s.aim} for s in self.of(Sweep)]
        told = {"machine": machine, "rows": rows, "sweeps": sweeps, "shares": [asdict(share) for share in self.of(Share)],
                "failed": self.failed, "group_seconds": self.seconds}
        unfinished = out.with_suffix(".part")
        unfinished.write_text(json.dumps(told, indent=1) + "\n")
        unfinished.replace(out)


# ---- a group's process ------------------------------------------------------------------------------------------------------------------

def written(row: Measured) -> str:
    """A row as a line of JSON, by which it goes from the group's process to this one."""
    return json.dumps({"kind": type(row).__name__, **asdict(row)})


def read(text: str) -> Measured:
    fields = json.loads(text)
    kind = KINDS[fields.pop("kind")]
    if kind is Sweep:
        fields["cells"] = [Row(**cell) for cell in fields["cells"]]
    return kind(**fields)


def measure_here(name: str, quick: bool, folder: Path, part: Path) -> None:
    """Every row is written to `part` when it is there."""
    with part.open("a", buffering=1) as to:
        for row in GROUPS[name].measured(quick, folder):
            to.write(written(row) + "\n")


def follow(process: subprocess.Popen[str], part: Path) -> Iterator[Measured]:
    """Rows as they are written, until the process ends."""
    with part.open() as lines:
        rest = ""
        while True:
            ended = process.poll() is not None
            rest += lines.read()
            *whole, rest = rest.split("\n")
            yield from map(read, whole)
            if ended:
                return
            time.sleep(0.05 if whole else 0.2)


def why(code: int, errors: str) -> str:
    """A failed process in a line: the last of what it said, or the signal that ended it."""
    said = [text for text in errors.splitlines() if text.strip()]
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{ended}: {said[-1].strip()}" if said else ended


def measure(names: list[str], quick: bool, out: Path, results: Results, say: Callable[[str], None]) -> None:
    """Runs the groups one after the other, each in its process; rows are told and written to disk as they come."""
    for number, name in enumerate(names, 1):
        say(f"[{number}/{len(names)}] {name}" + ("" if quick else f", about {GROUPS[name].minutes:g} min"))
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            part, errors = Path(folder, "rows"), Path(folder, "errors")
            part.touch()
            arguments = [sys.executable, str(FOLDER / "run.py"), "--group", name, "--part", str(part), "--out", str(out)]
            arguments += ["--quick"] * quick
            with errors.open("w") as to:
                process = subprocess.Popen(arguments, stdout=to, stderr=to, text=True)
            reason = ""
            try:
                for row in follow(process, part):
                    results.measured.append(row)
                    say(f"      {time.monotonic() - begin:5.0f} s  {row.name}")
                    results.write(out)
            except KeyboardInterrupt:
                results.failed[name] = "interrupted"
                raise
            except Exception as error:  # a row that cannot be read or told
                reason = f"{type(error).__name__}: {error}"
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            if reason or process.returncode:
                text = errors.read_text(errors="replace")
                results.failed[name] = reason or why(process.returncode, text)
                say(f"      failed, the other groups go on\n{reason or text.rstrip()}")
        results.seconds[name] = time.monotonic() - begin
        results.write(out)


def main(arguments: list[str] | None = None) -> int:
    all_minutes = round(sum(group.minutes for group in GROUPS.values()))
    each = ", ".join(f"{name} {group.minutes:g}" for name, group in GROUPS.items())
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=f"The whole takes about {all_minutes} minutes on two cores, --quick four. Minutes of each group: {each}.")
    parser.add_argument("--quick", action="store_true", help="some minutes in all: to see that it runs, not to judge by")
    parser.add_argument("--only", default="", metavar="TEXT", help="only groups whose name has TEXT")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    parser.add_argument("--group", choices=GROUPS, help=argparse.SUPPRESS)  # in this process, its rows to --part
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.group:
        measure_here(options.group, options.quick, options.out.parent.resolve(), options.part)
        return 0
    names = [name for name in GROUPS if options.only in name]
    if not names:
        parser.error(f"no group has {options.only!r}; there are {', '.join(GROUPS)}")
    console = Console(width=None if sys.stdout.isatty() else 150)
    results, interrupted = Results(), False
    try:
        measure(names, options.quick, options.out, results, lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        interrupted = True
    results.write(options.out)
    console.print(results.table())
    console.print(f"written to {options.out}" + (f"; failed: {', '.join(results.failed)}" if results.failed else ""))
    return 130 if interrupted else 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
