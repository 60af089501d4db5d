"""How far a launch has drifted from the same program in float64: each result again in NumPy, from what float64 made of its operands."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..opcheck import reference
from ..opcheck.cases import Case
from . import values

if TYPE_CHECKING:
    from .views import LaunchView

_MOST_WORK = 1 << 28  # multiplications of a product, or elements, that are worth the wait; beyond, float64 goes on from the result itself


class Drift:
    """Float64 values by local id. What has no reference (random numbers), is too large, or is no float goes on from the result itself:
    a comparison that fell the other way is not followed."""

    def __init__(self, view: LaunchView) -> None:
        self._view = view
        self._exact: dict[int, np.ndarray | None] = {}
        first = len(view.inputs)
        last_use = {operand: index for index, i in enumerate(view.instructions) for operand in i.operands if operand >= 0}
        self.error = np.full(len(view.instructions), np.nan)
        for index, instruction in enumerate(view.instructions):
            got = self._own(first + index)
            exact = self._again(instruction)
            if exact is not None and got is not None and got.dtype.kind == "f" and exact.shape == got.shape:
                self.error[index] = _difference(got, exact)
                self._exact[first + index] = exact
            else:
                self._exact[first + index] = got
            for operand in instruction.operands:
                if last_use.get(operand) == index:
                    self._exact.pop(operand, None)

    def errors(self, at: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        return np.where(wanted, self.error[at], np.nan)

    def _own(self, local: int) -> np.ndarray | None:
        tensor = self._view.value(local)
        array = tensor.array()
        if array is None:
            return None
        numbers = values.numbers(array, tensor.dtype)
        return numbers.astype(np.float64) if dtypes.BY_CODE[tensor.dtype].kind == "f" else numbers

    def _again(self, i: Any) -> np.ndarray | None:
        if not reference.known(i.name) or _work(self._view, i) > _MOST_WORK:
            return None
        operands: list[np.ndarray] = []
        for operand in i.operands:
            if operand >= 0:
                if operand not in self._exact:
                    self._exact[operand] = self._own(operand)
                value = self._exact[operand]
                if value is None:
                    return None
                operands.append(value)
            else:
                operands.append(np.asarray(i.imms[0], np.float64 if isinstance(i.imms[0], float) else None))
        floats = [x.dtype.kind == "f" for x in operands]
        if any(floats):  # an immediate beside floats is one of them
            operands = [x.astype(np.float64) if operand < 0 else x for operand, x in zip(i.operands, operands, strict=True)]
        case = Case(i.name, tuple(operands), tuple("float64" if f else str(x.dtype) for f, x in zip(floats, operands, strict=True)),
                    tuple(i.attrs), tuple(i.shape), dtypes.BY_CODE[i.dtype].name, tuple(i.imms))
        try:
            return np.asarray(reference.of(case, operands))
        except (ValueError, IndexError, TypeError, MemoryError):
            return None


def _work(view: LaunchView, i: Any) -> int:
    size = int(np.prod(i.shape, dtype=np.int64))
    if i.name in ("MATMUL", "CONV2D", "CONV2D_WEIGHT") and i.operands[0] >= 0:
        left = view.value(i.operands[0])
        return size * (left.shape[-2 if i.attrs[0] else -1] if i.name == "MATMUL" else int(np.prod(left.shape[1:], dtype=np.int64)))
    return size


def _difference(got: np.ndarray, exact: np.ndarray) -> float:
    """Largest difference over the largest magnitude; infinite where only one of them is a number."""
    if not got.size:
        return 0.0
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(got)):
        return float("inf")
    if not finite.any():
        return 0.0
    with np.errstate(all="ignore"):
        scale = float(np.abs(exact[finite]).max())
        worst = float(np.abs(got[finite] - exact[finite]).max())
    return worst / scale if scale else worst
