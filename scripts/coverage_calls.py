"""What one call of a framework's op gives, captured and plain, forward and backward: ours, fell back, wrong or refused."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import dvm_core as dvm
from dvm_core.frontends import observed

ORDER = ("ours", "fell back", "refused", "wrong")  # from best to worst


@dataclass
class Verdict:
    """forward, backward: of ORDER; backward "" where the op has none. note: what an error said, or how far a wrong result is off."""

    op: str
    call: str
    forward: str = ""
    backward: str = ""
    note: str = ""

    def told(self) -> dict[str, str]:
        return asdict(self)


def fallbacks(function: str = "") -> int:
    """Ops the frameworks ran for us so far, in all functions or in those of one name."""
    return sum(entry.fallbacks.total() for name, entry in observed.functions().items() if function in ("", name))


def differs(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], tolerance: float) -> str:
    """What is not equal within the tolerance, as text; "" where nothing is."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {number} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            with np.errstate(all="ignore"):
                off = np.abs(a.astype(np.complex128) - b.astype(np.complex128)) if a.size else np.zeros(1)
            return f"result {number} is off by {np.nanmax(off):.3g}"
    return ""


def judge(captured: Callable[[], Any], plain: Sequence[np.ndarray], tolerance: float, function: str = "",
          views: bool = False) -> tuple[str, str]:
    """(verdict, note) of a captured call that gives NumPy arrays, compared with the plain one's. function: whose fallbacks count. views:
    with no fallback and no launch the result is a view, which is no work."""
    before, launches = fallbacks(function), dvm.stats()["launches"]
    try:
        found = captured()
    except Exception as error:
        return "refused", f"{type(error).__name__}: {error}".partition("\n")[0][:160]
    if off := differs(found, plain, tolerance):
        return "wrong", off
    idle = not views and dvm.stats()["launches"] == launches
    return ("fell back" if fallbacks(function) > before or idle else "ours"), ""
