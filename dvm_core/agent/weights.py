"""Weights from one step to the next: how much each parameter that a program reads has changed."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from . import values

if TYPE_CHECKING:
    from .views import LaunchView

_EPSILON = 1e-9
_RTOL, _ATOL = 1e-5, 1e-8  # as numpy.allclose


@dataclass(frozen=True)
class Weight:
    """A parameter as this launch reads it. change: NaN at its first step, same: False, since: the step compared with, -1."""
    local: int
    first_reader: int
    dtype: int
    stats: dict[str, Any]
    change: float
    same: bool
    since: int


@dataclass
class _Known:
    step: int
    values: np.ndarray
    change: float = float("nan")
    same: bool = False
    since: int = -1


class Weights:
    """Copies of all weights as of the step before: what is compared, and what it costs. A weight is known by its program's name and its
    turn among the weights there, since training may give it new memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Known] = {}

    def look(self, view: LaunchView) -> list[Weight]:
        """All weights of a launch. Launches of one step see the change since the step before."""
        found = []
        turn = 0
        for local, cls in enumerate(view.program.input_classes):
            dtype = view.inputs[local][1]
            if cls != "parameter" or dtypes.BY_CODE[dtype].kind != "f":
                continue
            turn += 1
            array = view.launch.array(local)
            reader = next((i.index for i in view.instructions if local in i.operands), None)
            if array is None or not array.size or reader is None:
                continue
            known = self._compare((view.program.name, turn, array.shape, dtype), view.launch.step, values.numbers(array, dtype))
            found.append(Weight(local, reader, dtype, values.statistics(array, dtype), known.change, known.same, known.since))
        return found

    def _compare(self, key: tuple[Any, ...], step: int, new: np.ndarray) -> _Known:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known(step, new.copy())
        elif known.step != step:
            old = known.values
            with np.errstate(all="ignore"):
                change = float(np.abs(new - old).mean(dtype=np.float64) / (np.abs(old).mean(dtype=np.float64) + _EPSILON))
                known = self._known[key] = _Known(step, new.copy(), change, bool(np.allclose(new, old, _RTOL, _ATOL)), known.step)
        return known
