"""Each op checked: how far from float64 NumPy, whether the modes agree to the bit, how far the frameworks are, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .. import _core
from . import cases, modes, reference, ulp
from .peers import PEERS
from .reasons import level_reason, peer_reason, reason


@dataclass
class Row:
    """What was found of one op. Differences are in ulps of the result's dtype, the largest over all cases."""

    op: str
    dtypes: list[str] = field(default_factory=list)
    cases: int = 0
    off: float = 0.0  # from float64 NumPy
    worst: str = ""  # the dtype it was found in
    peers: dict[str, float] = field(default_factory=dict)  # framework -> from float64 NumPy
    why: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what nothing explains


def check(ops: Iterable[str] | None = None, frameworks: bool = True, levels: bool = True) -> list[Row]:
    """A row for each op of ops.def (or of those named)."""
    named = list(cases.OPS) if ops is None else list(ops)
    rows = [_row(op, frameworks) for op in named]
    if levels:
        checkable = [row.op for row in rows if row.cases]
        _levels({row.op: row for row in rows}, checkable)
    return rows


def _row(op: str, frameworks: bool) -> Row:
    row = Row(op)
    if not cases.known(op):
        row.wrong.append("there are no cases for it: dvm_core/opcheck/cases.py")
    if not reference.known(op):
        row.wrong.append("there is no reference for it: dvm_core/opcheck/reference.py")
    if row.wrong:
        return row
    for case in cases.cases(op):
        results = modes.results(case)
        if results is None:
            continue
        row.cases += 1
        if case.main not in row.dtypes:
            row.dtypes.append(case.main)
        _modes(row, case, results)
        _numbers(row, case, results["alone"], frameworks)
    if not row.cases:
        row.wrong.append("it takes none of the cases")
    return row


def _modes(row: Row, case: cases.Case, results: dict[str, np.ndarray]) -> None:
    alone = modes.digest(results["alone"])
    for mode, array in results.items():
        if modes.digest(array) != alone:
            row.wrong.append(f"{case.main}: {mode} has other bits than alone")


def _numbers(row: Row, case: cases.Case, array: np.ndarray, frameworks: bool) -> None:
    name = _result_dtype(case, array)
    got = cases.wide(array, name)
    operands = [cases.wide(a, dtype) for a, dtype in zip(case.inputs, case.dtypes, strict=True)]
    if case.immediate >= 0:
        imm = np.asarray(case.imms[0])
        operands.insert(case.immediate, cases.wide(cases.narrow(imm.astype(np.float64), case.main), case.main)
                        if ulp.is_float(case.main) else imm.astype(case.inputs[0].dtype))
    want = reference.of(case, operands)
    if not ulp.is_float(name):
        with np.errstate(all="ignore"):
            want = want.astype(got.dtype)
    scale = reference.magnitudes(case, operands) if case.op in reference.SUMS and ulp.is_float(name) else None
    off = ulp.largest(got, want, name, scale)
    known = reason(case.op, name)
    if off > row.off or not row.worst:
        row.off, row.worst = max(off, row.off), name
    if off > known.ulps:
        row.wrong.append(f"{case.main}{_note(case)}: {off:.3g} ulp from NumPy, at most {known.ulps:g} is known")
    elif off > 0 and known.text not in row.why:
        row.why.append(known.text)
    for peer in PEERS if frameworks else ():
        theirs = peer.run(case)
        if theirs is None:
            continue
        if not ulp.is_float(name) and theirs.dtype != got.dtype:
            theirs = theirs.astype(got.dtype)
        far = ulp.largest(theirs, want, name, scale)
        row.peers[peer.name] = max(row.peers.get(peer.name, 0.0), far)
        if far > max(4 * known.ulps, 8):
            why = peer_reason(peer.name, case.op, name)
            if why is None:
                row.wrong.append(f"{case.main}{_note(case)}: {peer.name} is {far:.3g} ulp from NumPy")
            elif why not in row.why:
                row.why.append(why)


def _note(case: cases.Case) -> str:
    if case.immediate >= 0:
        return f" with {case.imms[0]} on the {'right' if case.immediate else 'left'}"
    return f" to {case.dtype}" if case.op == "CAST" else ""


def _result_dtype(case: cases.Case, array: np.ndarray) -> str:
    if array.dtype == np.uint16:
        return "bfloat16"
    return array.dtype.name


def _levels(rows: dict[str, Row], ops: Sequence[str]) -> None:
    own = modes.own_digests(ops)
    for level in _core.simd_levels():
        if level == _core.simd_level():
            continue
        theirs = modes.digests_at(level, ops)
        for op in ops:
            if theirs[op] != own[op]:
                why = level_reason(level, op)
                if why is not None:
                    rows[op].why.append(why)
                    continue
                number = next(i for i, pair in enumerate(zip(own[op], theirs[op], strict=True)) if pair[0] != pair[1])
                rows[op].wrong.append(f"{cases.cases(op)[number].main}: SIMD level {level} has other bits than {_core.simd_level()}")
