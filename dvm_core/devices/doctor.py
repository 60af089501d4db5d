"""`dvm doctor --device D`: is it there, and what would run each op on it."""

from __future__ import annotations

from .. import _core
from ..errors import DeviceError
from . import profiles, pyacl
from . import report as reports
from .table_ascend import ASCEND
from .table_gpu import CUDA, ROCM, Row
from .templates import BackEnd, tile_names


def report(device: str) -> int:
    """Prints it. Returns 1 if the device is not there. Raises ArgumentError for a name without a back end."""
    end = reports.ends(device)[0]
    there, what = _there(end, device)
    print(f"{device}: {end.what}")
    print(f"    {what}")
    if end.hardware:
        print(f"    this way was {end.hardware}: it follows the vendor's documents (docs/devices.md)")
    for op, runs in rows(end.name):
        print(f"    {op:<22}{runs}")
    return 0 if there else 1


def _there(end: BackEnd, device: str) -> tuple[bool, str]:
    if end.name == "ascend":
        try:
            return True, pyacl.found()
        except DeviceError as error:
            return False, str(error)
    if not end.adapter:
        return False, "programs do not run on it in this version; the table says what would run them"
    names = [name for name in profiles() if name.partition(":")[0] == end.name]
    return device in names or device == end.name, f"{', '.join(names)}; kernels for {_core.simd_level()}"


def rows(end: str) -> list[tuple[str, str]]:
    """(op, what runs it, with the dtypes, or why nothing does) for every op: the table of docs/devices.md."""
    tables = {"ascend": _ascend, "cuda": lambda op: _library(CUDA[op]), "rocm": lambda op: _library(ROCM[op])}
    describe = tables.get(end, _tile)
    return [(name, describe(name)) for name, *_ in _core.OPS]


def _ascend(op: str) -> str:
    variants = ASCEND[op]
    if isinstance(variants, str):
        return f"– {variants}"
    parts: dict[str, list[str]] = {}  # by dtypes and reason: calls of all variants
    for variant in variants:
        calls = [line.split()[0] for line in variant.calls]
        parts.setdefault(f" ({variant.dtypes})" + (f": {variant.reason}" if variant.reason else ""), []).extend(calls)
    return "; ".join(f"{', '.join(dict.fromkeys(calls)) or '–'}{rest}" for rest, calls in parts.items())


def _library(row: Row) -> str:
    return f"{', '.join(row.calls)} ({row.dtypes})" if row.calls else f"– {row.note}"


def _tile(op: str) -> str:
    return ", ".join(tile_names(op)) or "strides alone"
