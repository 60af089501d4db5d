"""The command line of a benchmark of sweeps: its options, and what is printed of each sweep."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

from timing import Sweep

from dvm_core import _core


def options(doc: str, quick: str) -> argparse.ArgumentParser:
    """doc: the benchmark's own text, whose first line is shown; quick: what --quick does."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has TEXT")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="of every contender (0: one per processor)")
    parser.add_argument("--shapes", type=int, default=0, metavar="N", help="shapes per row")
    parser.add_argument("--cells", action="store_true", help="every shape as well")
    return parser


def tell(sweeps: Iterable[Sweep], cells: bool, parts: Callable[[Sweep], Iterable[Sweep]] = lambda sweep: ()) -> None:
    """Prints every sweep against each peer and the best of them, then its parts, then, if wanted, its cells."""
    for sweep in sweeps:
        for peer in [*sweep.peers(), None]:
            told = sweep.against(peer)
            print(f"{sweep.name} vs {peer or 'best'}: {told.shapes} shapes, geomean {told.geomean:.2f}, won {told.won:.0%}, "
                  f"worst {told.worst:.2f} at {told.worst_at}")
        for part in parts(sweep):
            told = part.against()
            print(f"    {part.name:16} {told.shapes:4} shapes, geomean {told.geomean:.2f}, won {told.won:.0%}, worst {told.worst:.2f}")
        for cell in sweep.cells if cells else ():
            ratio = min(cell.ratio(peer) for peer in cell.times if peer != cell.ours)
            print(f"        {cell.name:36} {ratio:6.2f}   " + "   ".join(f"{name} {time * 1e6:.1f}" for name, time in cell.times.items()))
        sys.stdout.flush()


def main(doc: str, quick: str, sweeps: Callable[[bool, str, int, int], Iterable[Sweep]]) -> int:
    """A whole benchmark: sweeps(quick, only, shapes, threads), each row with its parts by prefix. Returns the exit code."""
    chosen = options(doc, quick).parse_args()
    _core.set_threads(chosen.threads)
    tell(sweeps(chosen.quick, chosen.only, chosen.shapes, chosen.threads), chosen.cells, by_prefix)
    return 0


def by_prefix(sweep: Sweep) -> list[Sweep]:
    """Its cells by what their names have before the colon."""
    names = dict.fromkeys(cell.name.partition(":")[0] for cell in sweep.cells)
    return [Sweep(name, [cell for cell in sweep.cells if cell.name.startswith(name + ":")]) for name in names]
