"""One case in every mode of this machine: alone, fused with neighbours, cut from them, hooked, in small tiles, at each SIMD level."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import find
from .cases import OPS, Case, cases

MODES = ("alone", "fused", "cut", "hooked", "small tiles", "one thread")


def _code(name: str) -> int:
    dtype = find(name)
    assert dtype is not None
    return dtype.code


def run(case: Case, mode: str) -> np.ndarray | None:
    """The result's array (bfloat16 as its bits), None where the op does not take these dtypes."""
    recorded = _record(case, mode)
    if recorded is None or mode != "hooked":
        return None if recorded is None else recorded[0]
    # Once more, with statistics and a snapshot on every instruction of that program.
    program = recorded[1].program
    hooks = [(i, kind) for i in range(len(program.instructions)) for kind in (_core.HOOK_STATS, _core.HOOK_CAPTURE)]
    for instruction, kind in hooks:
        _core.set_hook(program.id, instruction, kind, -1)
    try:
        again = _record(case, mode)
    finally:
        for instruction, kind in hooks:
            _core.clear_hook(program.id, instruction, kind, -1)
    return None if again is None else again[0]


def _record(case: Case, mode: str) -> tuple[np.ndarray, Any] | None:
    graph = _core.Graph(f"dvm doctor --ops: {case.op} {mode}")
    values = [graph.input(a.ctypes.data, a.shape, _code(name), None, a) for a, name in zip(case.inputs, case.dtypes, strict=True)]
    if mode != "alone":  # a neighbour before and one behind, which change nothing
        values = [graph.op(OPS["COPY"], (value,)) for value in values]
        if mode == "cut":
            graph.flush(keep=tuple(values))
    operands = tuple(values[o] if o >= 0 else -1 for o in case.operands)
    try:
        last = graph.op(OPS[case.op], operands, case.attrs, case.shape, _code(case.dtype) if case.dtype else 0, case.imms)
    except _core.Error:
        return None
    if mode == "cut":
        graph.flush(keep=(last,))
    if mode != "alone":
        last = graph.op(OPS["COPY"], (last,))
    launch = graph.flush(keep=(last,))
    return np.array(graph.array(last)), launch


def results(case: Case) -> dict[str, np.ndarray] | None:
    """By mode; None where the op does not take these dtypes."""
    found: dict[str, np.ndarray] = {}
    for mode in MODES:
        _core.set_tile_elements(64 if mode == "small tiles" else 0)
        _core.set_threads(1 if mode == "one thread" else 0)
        try:
            array = run(case, mode)
        finally:
            _core.set_tile_elements(0)
            _core.set_threads(0)
        if array is None:
            return None
        found[mode] = array
    return found


def digest(array: np.ndarray) -> str:
    """Of the bits; any NaN is like any other, which of two survives is the processor's choice."""
    if array.dtype == np.uint16:
        array = np.where((array & 0x7FFF) > 0x7F80, 0x7FC0, array).astype(np.uint16)
    elif array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array).astype(array.dtype)
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def own_digests(ops: Sequence[str]) -> dict[str, list[str | None]]:
    """By op: of every case fused, None where it is not taken."""
    found: dict[str, list[str | None]] = {}
    for op in ops:
        arrays = [run(case, "fused") for case in cases(op)]
        found[op] = [None if array is None else digest(array) for array in arrays]
    return found


def digests_at(level: str, ops: Sequence[str]) -> dict[str, list[str | None]]:
    """The same of a process that runs the kernels of a SIMD level. Raises RuntimeError if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "dvm_core.opcheck", *ops],
        env={**os.environ, "DVM_SIMD": level, "DVM_AGENT": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a process at SIMD level {level} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)
