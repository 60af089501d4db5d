"""The table of `dvm doctor --ops`."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .check import Row, check
from .modes import MODES
from .peers import PEERS

_RED = "\x1b[31m"


def report(ops: Sequence[str] | None = None, color: bool = False, frameworks: bool = True) -> int:
    """Prints a line per op and what differs and why. Returns 1 if a difference is not explained."""
    rows = check(ops, frameworks)
    names = [peer.name for peer in PEERS if peer.installed] if frameworks else []
    print(f"{'op':<21}{'cases':>5}  {'ulp':>6}  {''.join(f'{name:>11}' for name in names)}   why")
    for row in rows:
        print(_line(row, names))
        for wrong in dict.fromkeys(row.wrong):
            print(f"    {_RED if color else ''}not explained: {wrong}" + ("\x1b[0m" if color else ""))
    for peer in PEERS if frameworks else ():
        if not peer.installed:
            print(f"{peer.name} not installed: not compared")
    bad = [row.op for row in rows if row.wrong]
    print(
        f"ulp: largest difference from float64 NumPy in units of the last place, ours and the frameworks'. Modes with the same bits: "
        f"{', '.join(MODES)}; SIMD levels {', '.join(_core.simd_levels())}"
    )
    print(f"{len(rows)} ops, all differences explained" if not bad else f"{len(rows)} ops; not explained: {', '.join(bad)}")
    return 1 if bad else 0


def _line(row: Row, names: Sequence[str]) -> str:
    theirs = "".join(f"{_number(row.peers[name]) if name in row.peers else '-':>11}" for name in names)
    return f"{row.op:<21}{row.cases:>5}  {_number(row.off):>6}  {theirs}   {'; '.join(row.why)}".rstrip()


def _number(ulps: float) -> str:
    return "0" if ulps == 0 else "other" if ulps == float("inf") else f"{ulps:.3g}"
