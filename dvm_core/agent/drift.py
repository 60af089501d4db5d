"""How far a launch's results are from the same program run otherwise: in float64, unfused, or on another device."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dvm_wire.filters import FLOAT64, FUSED

from .. import dtypes
from ..opcheck import reference
from ..opcheck.cases import Case
from . import values
from .bounds import Refused

if TYPE_CHECKING:
    from .views import LaunchView

_MOST_WORK = 1 << 28  # multiplications of a product, or elements, that are worth the wait; beyond, float64 goes on from the result itself


@dataclass(frozen=True)
class Difference:
    """Of one result. error: the largest difference over the largest magnitude of the other; infinite where only one is a number, and where
    whole numbers or truth values differ at all. at: where that is, None if they are the same; here and there: both elements. where: what
    `there` is."""
    error: float = 0.0
    at: tuple[int, ...] | None = None
    here: Any = None
    there: Any = None
    where: str = ""

    def told(self) -> str:
        """`; the largest difference is at [0, 2]: 0.5 here, 0.25 in float64`."""
        if self.at is None:
            return ""
        here, there = (values.texts(np.asarray(value), 0, 0, 1)[0] for value in (self.here, self.there))
        return f"; the largest difference is at {list(self.at)}: {here} here, {there} {self.where}"


class Incomparable(Refused):
    """This launch cannot be run again as asked; others may."""


class Comparison:
    """Differences by instruction; those that have none to tell are not there."""

    def __init__(self) -> None:
        self.differences: dict[int, Difference] = {}

    def errors(self, at: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """A column: by row, whose instruction `at` tells, NaN where it is not `wanted`."""
        found = [self.differences[i].error if w and i in self.differences else np.nan for i, w in zip(at.tolist(), wanted, strict=True)]
        return np.array(found, np.float64)


def comparison(view: LaunchView, against: str) -> Comparison:
    """Raises Incomparable if the launch cannot be run again so."""
    if against == FLOAT64:
        return Drift(view)
    try:
        return _Fusing(view) if against == FUSED else _Device(view, against)
    except Exception as error:  # the core's, or whatever a device raises that is reached through Python
        raise Incomparable(f"the launch cannot be compared: {error}") from None


class _Runs(Comparison):
    """Against the same instructions run again on the inputs the launch had."""

    def __init__(self, view: LaunchView) -> None:
        super().__init__()
        self._view = view

    def _compare(self, here: Any, there: Any, where: str) -> None:
        """here, there: launches, by what they have of each result."""
        first = len(self._view.inputs)
        for index, instruction in enumerate(self._view.instructions):
            mine, other = here.array(first + index), there.array(first + index)
            if mine is None or other is None:
                continue
            known = self.differences.get(index, Difference())
            found = difference(mine, other, instruction.dtype, where)
            self.differences[index] = found if found.error >= known.error else known


class _Fusing(_Runs):
    """Against each instruction as an area of its own: the launch, whose results are all kept, and one that keeps what it was asked for."""

    def __init__(self, view: LaunchView) -> None:
        super().__init__(view)
        unfused = view.launch.rerun(unfused=True)
        for fused in (view.launch, view.launch.rerun(all=False)):
            self._compare(fused, unfused, "unfused")


class _Device(_Runs):
    def __init__(self, view: LaunchView, device: str) -> None:
        super().__init__(view)
        self._compare(view.launch, view.launch.rerun(device), f"on {device}")


class Drift(Comparison):
    """Each result again in NumPy, from what float64 made of its operands. What has no reference (random numbers), is too large, or is no
    float but made of floats goes on from the result itself: a comparison that fell the other way is not followed."""

    def __init__(self, view: LaunchView) -> None:
        super().__init__()
        self._view = view
        self._exact: dict[int, np.ndarray | None] = {}
        first = len(view.inputs)
        last_use = {operand: index for index, i in enumerate(view.instructions) for operand in i.operands if operand >= 0}
        for index, instruction in enumerate(view.instructions):
            got = self._own(first + index)
            exact = self._again(instruction)
            if exact is not None and got is not None and exact.shape == got.shape and (got.dtype.kind == "f" or self._whole(instruction)):
                self.differences[index] = difference(got, exact, 0, "in float64")
                self._exact[first + index] = exact
            else:
                self._exact[first + index] = got
            for operand in instruction.operands:
                if last_use.get(operand) == index:
                    self._exact.pop(operand, None)

    def _own(self, local: int) -> np.ndarray | None:
        tensor = self._view.value(local)
        array = tensor.array()
        if array is None:
            return None
        numbers = values.numbers(array, tensor.dtype)
        return numbers.astype(np.float64) if dtypes.BY_CODE[tensor.dtype].kind == "f" else numbers

    def _whole(self, i: Any) -> bool:
        """Whether an instruction is one of whole numbers or truth values alone."""
        return all(dtypes.BY_CODE[self._view.value(operand).dtype].kind != "f" for operand in i.operands if operand >= 0)

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


def difference(here: np.ndarray, there: np.ndarray, code: int, where: str) -> Difference:
    """Of two arrays of one shape. code: the dtype of both, 0 for arrays of numbers; where: what `there` is."""
    bits, others = (np.ascontiguousarray(a).view(np.uint8) for a in (here, there))
    if not here.size or (here.dtype == there.dtype and np.array_equal(bits, others)):
        return Difference(where=where)
    here, there = values.numbers(here, code), values.numbers(there, code)
    whole = here.dtype.kind != "f" and there.dtype.kind != "f"
    with np.errstate(all="ignore"):
        distance = np.abs(here.astype(np.float64) - there)
        finite = np.isfinite(there)
        odd = (finite != np.isfinite(here)) | (~finite & (here != there) & ~(np.isnan(here) & np.isnan(there)))
        distance = np.where(odd, np.inf, np.where(finite, distance, 0))
    # Of whole numbers any difference counts, also one of int64 that a float64 does not show.
    flat = int((np.where(here != there, distance + 1, 0) if whole else distance).argmax())
    if whole and here.reshape(-1)[flat] != there.reshape(-1)[flat]:
        distance.reshape(-1)[flat] = np.inf
    worst = float(distance.reshape(-1)[flat])
    if not worst:
        return Difference(where=where)
    at = tuple(int(i) for i in np.unravel_index(flat, here.shape))
    scale = float(np.abs(there[finite]).max()) if finite.any() else 0.0
    return Difference(worst / scale if scale and worst < np.inf else worst, at, here[at], there[at], where)
