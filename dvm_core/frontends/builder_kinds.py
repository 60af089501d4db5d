"""Kernel types, flags, run types and pass names: DVM's names and numbers, and what each means here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..errors import ArgumentError
from .builder_objects import fail

KINDS = ("vector", "cube", "mix", "parallel", "seq", "split", "eager", "spec")
K_VEC, K_CUBE, K_MIX, K_PARAL, K_SEQ, K_SPLIT, K_EAGER = range(7)  # indexes of KINDS

F_DYN, F_UWS, F_SPEC, F_OPT_FRAC, F_PRIV1, F_PRIV2 = 1, 2, 4, 1 << 29, 1 << 30, 1 << 31
FLAGS = {"dyn": F_DYN, "unify_ws": F_UWS, "spec": F_SPEC, "opt_fractal": F_OPT_FRAC, "priv1": F_PRIV1, "priv2": F_PRIV2}

RUN_TYPES = ("dev", "dry", "das")

# What DVM's passes are for is decided here at every launch, without being asked; see docs/kernels.md.
PASSES = (
    "PrintPeakLive",
    "ReorderStore",
    "ReorderLoad",
    "CompactPeakLiveness",
    "EliminateReshape",
    "EliminateDiamondView",
    "InsertRemovePad",
    "DeadCodeEliminate",
    "VfFusion",
    "VectorDoubleBuffer",
)


def kind_of(ker_type: Any, flags: Any = 0) -> tuple[str, frozenset[str]]:
    """(kind, flags) of "vector:dyn,spec", "" (vector) or K_MIX. Raises ArgumentError for a kind or flag that does not exist."""
    place = _core.user_place()
    if isinstance(ker_type, int) and not isinstance(ker_type, bool):
        if not 0 <= ker_type <= K_EAGER:
            raise fail(ArgumentError, f"kernel type error: {ker_type}; there are K_VEC (0) to K_EAGER ({K_EAGER})", place)
        ker_type = KINDS[ker_type]
    kind, _, named = str(ker_type).partition(":")
    if kind and kind not in KINDS:
        raise fail(ArgumentError, f"kernel type error: {ker_type!r}; there are {', '.join(KINDS)}", place)
    if isinstance(flags, int):
        unknown = [hex(flags)] if flags & ~sum(FLAGS.values()) else []
        named += "".join(f",{name}" for name, bit in FLAGS.items() if flags & bit)
    else:
        named += f",{flags}"
        unknown = []
    given = frozenset(flag for flag in named.split(",") if flag)
    unknown += sorted(given - FLAGS.keys())
    if unknown:
        raise fail(ArgumentError, f"kernel flag error: {', '.join(unknown)}; there are {', '.join(FLAGS)}", place)
    return kind or "vector", given


def passes_of(names: Sequence[str] | str | None) -> tuple[str, ...]:
    """Pass names as given to codegen; raises ArgumentError for one that does not exist."""
    names = (names,) if isinstance(names, str) else tuple(names or ())
    unknown = [str(name) for name in names if name not in PASSES]
    if unknown:
        raise fail(ArgumentError, f"there is no pass {', '.join(unknown)}; there are {', '.join(PASSES)}", _core.user_place(), op="codegen")
    return names
