"""The command line of a benchmark: its options, and what is printed of each row."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence

from timing import Row, Share, Sweep

from dvm_core import _core

ALONE = "no peer is installed, so there is nothing to compare with (`make bench` installs torch)"


def options(doc: str, quick: str) -> argparse.ArgumentParser:
    """doc: the benchmark's own text, whose first line is shown; quick: what --quick does."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has TEXT")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="of every contender (0: one per processor)")
    parser.add_argument("--shapes", type=int, default=0, metavar="N", help="shapes per row")
    parser.add_argument("--cells", action="store_true", help="every shape as well")
    return parser


def parsed(parser: argparse.ArgumentParser, names: Sequence[str], arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; --only must find one of the rows' names."""
    chosen = parser.parse_args(arguments)
    if not any(chosen.only in name for name in names):
        parser.error(f"no row has {chosen.only!r}; there are: {'; '.join(names)}")
    return chosen


def tell(sweeps: Iterable[Sweep], cells: bool, parts: Callable[[Sweep], Iterable[Sweep]] = lambda sweep: ()) -> None:
    """Prints every sweep against each peer and the best of them, then its parts, then, if wanted, its cells."""
    for sweep in sweeps:
        if not sweep.compared():
            print(f"{sweep.name}: {len(sweep.cells)} shapes; {ALONE}", flush=True)
            continue
        for peer in [*sweep.peers(), None]:
            told = sweep.against(peer)
            print(f"{sweep.name} vs {peer or 'best'}: {told.shapes} shapes, geomean {told.geomean:.2f}, won {told.won:.0%}, "
                  f"worst {told.worst:.2f} at {told.worst_at}")
        for part in parts(sweep):
            told = part.against()
            print(f"    {part.name:16} {told.shapes:4} shapes, geomean {told.geomean:.2f}, won {told.won:.0%}, worst {told.worst:.2f}")
        for cell in sweep.compared() if cells else ():
            ratio = min(cell.ratio(peer) for peer in cell.times if peer != cell.ours)
            print(f"        {cell.name:36} {ratio:6.2f}   " + "   ".join(f"{name} {time * 1e6:.1f}" for name, time in cell.times.items()))
        sys.stdout.flush()


def tell_row(row: Row | Share) -> None:
    """Prints a row that is no sweep."""
    if isinstance(row, Share):
        print(row.name, *(f"{what} {share:.1%}" for what, share in row.shares.items()), sep="   ", flush=True)
        return
    ratios = (f"{peer} {row.ratio(peer):.2f} ×" for peer in row.times if peer != row.ours)
    print(row.name, *(f"{what} {row.shown(what)}" for what in row.times), *ratios, sep="   ", flush=True)


def rows(doc: str, measured: Callable[[bool], Iterable[Row | Sweep | Share]]) -> int:
    """A whole benchmark of rows: measured(quick). Returns the exit code."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: to see that it runs, not to judge by")
    for row in measured(parser.parse_args().quick):
        if isinstance(row, Sweep):
            tell([row], False)
        else:
            tell_row(row)
    return 0


def main(doc: str, quick: str, sweeps: Callable[[bool, str, int, int], Iterable[Sweep]], names: Sequence[str]) -> int:
    """A whole benchmark of sweeps, by name: sweeps(quick, only, shapes, threads), each with its parts by prefix. Returns the exit code."""
    chosen = parsed(options(doc, quick), names)
    _core.set_threads(chosen.threads)
    tell(sweeps(chosen.quick, chosen.only, chosen.shapes, chosen.threads), chosen.cells, by_prefix)
    return 0


def by_prefix(sweep: Sweep) -> list[Sweep]:
    """Its cells by what their names have before the colon."""
    names = dict.fromkeys(cell.name.partition(":")[0] for cell in sweep.cells)
    return [Sweep(name, [cell for cell in sweep.cells if cell.name.startswith(name + ":")]) for name in names]
