"""Numeric filters: which results of a launch are worth a stop, by conditions over their statistics.

A condition is evaluated for all results of a launch at once: every name in it is a column, one row per result (and per weight read)."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dvm_wire.filters import COLUMNS, FLOAT64, FUSED, WrongFilter, names_in, read

from .. import _core, devices, dtypes
from . import naming, values
from .blocks import blocks
from .drift import Comparison, Incomparable, comparison
from .evaluate import Refused, evaluate
from .places import place
from .weights import Weights

if TYPE_CHECKING:
    from .views import LaunchView

# The conditions of MindInsight's debugger, by its short names, as they are said here. Thresholds are parameters there, examples here.
MINDINSIGHT: dict[str, tuple[str, str]] = {
    "OO": ("overflow", ""), "TO": ("inf", "inf > 0 or nan > 0"), "TZ": ("zeros", "zeros > 0.9"), "TR": ("range", "span > 100 or min < -50"),
    "TL": ("range", "abs_mean > 100"), "TS": ("range", "abs_mean < 1e-8"), "TI": ("range", "step <= 1 and activation and zeros > 0.5"),
    "WCL": ("unchanged", "change > 0.1"), "WCS": ("unchanged", "change < 1e-4"), "WNC": ("unchanged", "same"),
    "WI": ("range", "step <= 1 and weight and (zeros > 0.5 or abs_max > 10)"), "WO": ("range", "weight and (inf > 0 or nan > 0)"),
    "WL": ("range", "weight and abs_max > 100"), "WS": ("range", "weight and abs_max < 1e-8"),
    "AR": ("range", "op in ('TANH', 'SIGMOID', 'MAXIMUM') and max > 0.99"), "GE": ("range", "gradient and (inf > 0 or nan > 0)"),
    "GL": ("range", "gradient and abs_mean > 10"), "GV": ("range", "gradient and abs_mean < 1e-9"),
}
_SELF_EVIDENT = frozenset(("op", "name", "function", "weight", "gradient", "activation", "eps", "finite_operands", "same"))  # said anyway
_BITS = {"nan": 1, "inf": 2}  # of _core.set_check, which is cheaper than statistics


@dataclass(frozen=True)
class Condition:
    """One filter that is set. every: launches of a program from one look to the next; against: what `error` is the difference from."""
    name: str
    text: str  # all of it
    said: str = ""  # what the user said, or the filter's own
    every: int = 1
    against: str = FLOAT64

    @classmethod
    def of(cls, name: str, text: str) -> Condition:
        """Raises Refused: an unknown filter, or a condition that cannot be meant."""
        try:
            found = read(name, text)
        except WrongFilter as error:
            raise Refused(str(error)) from None
        if found.against not in (FLOAT64, FUSED) and found.against not in devices.profiles():
            raise Refused(f"{devices.unknown(found.against)}; `against` takes float64, fused or a device")
        condition = cls(name, found.text, found.said, found.every, found.against)
        condition.holds(_typical())
        return condition

    def uses(self, column: str) -> bool:
        return column in names_in(self.text)

    def holds(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        """By row. Raises Refused."""
        rows = len(columns["count"])
        found = np.asarray(evaluate(self.text, columns, elementwise=True))
        if found.dtype.kind not in "bif" or found.shape not in ((), (rows,)):
            raise Refused(f"`{self.text}` is neither true nor false of a result")
        return np.broadcast_to((found != 0) & (found == found), (rows,))  # NaN is no yes


def _typical() -> dict[str, np.ndarray]:
    """Two results, for a condition to be tried on."""
    texts, flags = ("op", "name", "function"), ("gradient", "activation", "weight", "finite_operands", "same")
    return {name: np.array(["ADD", "MUL"], object) if name in texts else np.array([name in flags, False]) if name in flags
            else np.array([1.0, 2.0]) for name in COLUMNS}


@dataclass(frozen=True)
class Hit:
    """A result that meets a condition: the filter, its instruction (of a weight: the first that reads it), and why in words."""
    name: str
    instruction: int
    text: str


class Numeric:
    """The filters in force."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """tell: takes what a person has to know of a filter."""
        self._tell = tell
        self.conditions: list[Condition] = []
        self._weights = Weights()
        self._every = 0  # what the core was told: launches of a program from one measured to the next
        self._seen: dict[int, int] = {}  # program -> its launches measured so far
        self._told: set[tuple[str, int]] = set()  # filters and programs of which it was told that they cannot be compared

    def set(self, conditions: list[Condition]) -> None:
        """None at all costs nothing. Filters `nan` and `inf` without a condition are checked in the core alone."""
        plain = [c for c in conditions if c.name in _BITS and c == Condition.of(c.name, "")]
        self.conditions = [c for c in conditions if c not in plain]
        self._weights = Weights()
        _core.set_check(sum(_BITS[name] for name in {c.name for c in plain}))
        self._seen, self._told = {}, set()
        self._every = math.gcd(*(c.every for c in self.conditions))  # 0 of none
        _core.set_measure(self._every)

    def look(self, view: LaunchView) -> Hit | None:
        """The first result of a measured launch, in program order, that meets a condition. A condition that fails is told of and left out
        from then on; where only this launch cannot be compared, that is told once for its program, and the condition stays."""
        seen = self._seen.get(view.program.id, 0)
        self._seen[view.program.id] = seen + 1
        conditions = [c for c in self.conditions if seen * self._every % c.every == 0]
        if not conditions:
            return None
        asked = set().union(*(names_in(c.text) for c in conditions))
        rows = _Rows(view, self._weights if asked & {"weight", "change", "same"} else None, "error" in asked)
        best: tuple[int, Condition] | None = None
        for condition in conditions:
            try:
                found = np.flatnonzero(condition.holds(rows.for_condition(condition)) & (condition.uses("error") | rows.measured))
            except Incomparable as error:
                if (condition.name, view.program.id) not in self._told:
                    self._told.add((condition.name, view.program.id))
                    self._tell(f"the filter {condition.name!r} passes over {view.program.name}: `{condition.said}`: {error}")
                continue
            except Refused as error:
                self.conditions = [c for c in self.conditions if c is not condition]
                self._tell(f"the filter {condition.name!r} is off: `{condition.said}`: {error}")
                continue
            if len(found) and (best is None or rows.at[found[0]] < rows.at[best[0]]):
                best = (int(found[0]), condition)
        return None if best is None else Hit(best[1].name, int(rows.at[best[0]]), rows.why(*best))


class _Rows:
    """The columns of one launch: its float results in program order, before each instruction the weights it is the first to read, and with
    `others` also results that are no floats: those have no statistics."""

    def __init__(self, view: LaunchView, weights: Weights | None, others: bool) -> None:
        self.view = view
        measured = np.frombuffer(view.launch.measured(), np.float64).reshape(-1, len(_core.MEASURED))
        told = {name: measured[:, i] for i, name in enumerate(_core.MEASURED)}
        self.at = told["instruction"].astype(np.int64)
        self._inputs = np.full(len(self.at), -1)
        self._since: dict[int, int] = {}  # weight -> the step it is compared with
        codes = np.array([view.instructions[i].dtype for i in self.at], np.int64)
        change: Any = np.full(len(self.at), np.nan)
        same: Any = np.zeros(len(self.at), bool)
        if others:
            rest = [i for i, instruction in enumerate(view.instructions) if dtypes.BY_CODE[instruction.dtype].kind != "f"]
            self.at = np.concatenate([self.at, np.array(rest, np.int64)])
            self._inputs = np.full(len(self.at), -1)
            codes = np.concatenate([codes, np.array([view.instructions[i].dtype for i in rest], np.int64)])
            unknown = np.full(len(rest), np.nan)
            told = {name: np.concatenate([told[name], unknown]) for name in told}
            change, same = np.concatenate([change, unknown]), np.concatenate([same, np.zeros(len(rest), bool)])
        if weights is not None:
            seen = weights.look(view)
            self._since = {w.local: w.since for w in seen}
            self.at = np.concatenate([self.at, np.array([w.first_reader for w in seen], np.int64)])
            self._inputs = np.concatenate([self._inputs, np.array([w.local for w in seen], np.int64)])
            codes = np.concatenate([codes, np.array([w.dtype for w in seen], np.int64)])
            more = {name: np.array([w.stats[name] for w in seen], np.float64) for name in _core.MEASURED[1:]}
            told = {name: np.concatenate([told[name], more[name]]) for name in more}
            change = np.concatenate([change, np.array([w.change for w in seen], np.float64)])
            same = np.concatenate([same, np.array([w.same for w in seen], bool)])
        order = np.lexsort((-self._inputs, self.at))  # a weight before the instruction that reads it
        self.at, self._inputs, codes, change, same = (c[order] for c in (self.at, self._inputs, codes, change, same))
        told = {name: told[name][order] for name in _core.MEASURED[1:]}
        self.measured = ~np.isnan(told["count"])
        weight = self._inputs >= 0
        instructions = [view.instructions[i] for i in self.at]
        places = {i.place: place(i.place) for i in instructions}
        backward = np.array([places[i.place].backward for i in instructions], bool)
        with np.errstate(all="ignore"):
            self.columns: dict[str, np.ndarray] = {
                **{name: told[name] for name in ("count", "nan", "min", "max", "mean", "std", "abs_mean")},
                "zeros": told["zero"] / np.maximum(told["count"], 1), "inf": told["pos_inf"] + told["neg_inf"],
                "abs_max": np.maximum(np.abs(told["min"]), np.abs(told["max"])), "span": told["max"] - told["min"],
                "eps": np.array([_eps(code) for code in codes], np.float64), "op": np.array([i.name for i in instructions], object),
                "name": np.array([self._name(row) for row in range(len(self.at))], object),
                "function": np.array([places[i.place].function for i in instructions], object),
                "step": np.full(len(self.at), float(view.launch.step)), "gradient": backward & ~weight,
                "activation": ~backward & ~weight, "weight": weight, "change": change, "same": same,
                "finite_operands": self._finite_operands(told),
            }
        self._results = ~weight
        self._compared: dict[str, Comparison] = {}

    def for_condition(self, condition: Condition) -> dict[str, np.ndarray]:
        """The columns, with the error a condition means. Raises Incomparable."""
        against = condition.against
        if not condition.uses("error"):
            return {**self.columns, "error": np.full(len(self.at), np.nan)}
        if against not in self._compared:
            self._compared[against] = comparison(self.view, against)
        return {**self.columns, "error": self._compared[against].errors(self.at, self._results)}

    def _name(self, row: int) -> str:
        view, at, local = self.view, int(self.at[row]), int(self._inputs[row])
        count = len(view.inputs)
        return naming.number(local, count) if local >= 0 else view.names.get(at) or naming.number(count + at, count)

    def _finite_operands(self, told: dict[str, np.ndarray]) -> np.ndarray:
        """Whether a result's operands are finite: earlier results by their statistics, through views, and inputs by a look at them."""
        view, first = self.view, len(self.view.inputs)
        bad = {first + int(i) for i, w, n in zip(self.at, self._inputs, told["nan"] + told["pos_inf"] + told["neg_inf"], strict=True)
               if n > 0 and w < 0}
        if not bad:
            return np.ones(len(self.at), bool)
        bad |= {local for local in range(first) if _not_finite(view.value(local))}
        measured = {int(i) for i, w in zip(self.at, self._inputs, strict=True) if w < 0}
        for index, instruction in enumerate(view.instructions):  # views are not measured: they are as their operands
            if index not in measured and bad.intersection(instruction.operands):
                bad.add(first + index)
        return np.array([not bad.intersection(view.instructions[i].operands) for i in self.at], bool)

    def why(self, row: int, condition: Condition) -> str:
        """`range: TANH made h, f32[3,4]: abs_max 1.2e+05, at [0, 2]; the condition is abs_max > 65504`."""
        view, index, local = self.view, int(self.at[row]), int(self._inputs[row])
        tensor = view.value(local if local >= 0 else len(view.inputs) + index)
        kind = values.summary(tensor.dtype, tensor.shape, None).split("  ")[0]
        subject = f"the weight {tensor.name}" if local >= 0 else f"{view.instructions[index].name} made {tensor.name}"
        columns = self.for_condition(condition)
        figures = [f"{name} {_figure(columns[name][row])}" for name in COLUMNS if condition.uses(name) and name not in _SELF_EVIDENT]
        since = self._since.get(local, -1)
        if condition.uses("same") and since >= 0:
            figures.append(f"{'has not changed' if self.columns['same'][row] else 'has changed'} since step {since}")
        text = f"{condition.name}: {subject}, {': '.join([kind, ', '.join(figures)] if figures else [kind])}"
        where = _largest(tensor) if condition.uses("abs_max") or condition.uses("max") or condition.uses("min") else ""
        if condition.uses("error") and local < 0 and (found := self._compared[condition.against].differences.get(index)):
            where = found.told() + where
        against = f" against {condition.against}" if condition.against != FLOAT64 else ""
        return f"{text}{where}; the condition is {condition.said}{against}"


def _figure(value: Any) -> str:
    return str(bool(value)).lower() if isinstance(value, (bool, np.bool_)) else values.figure(value)


def _eps(code: int) -> float:
    name = dtypes.BY_CODE[code].name
    return 2.0 ** -7 if name == "bfloat16" else float(np.finfo(name).eps) if dtypes.BY_CODE[code].kind == "f" else 0.0


def _not_finite(tensor: Any) -> bool:
    entry, array = dtypes.BY_CODE.get(tensor.dtype), tensor.array()
    if entry is None or entry.kind != "f" or array is None or not array.size:
        return False
    stats = values.statistics(array, tensor.dtype)
    return bool(stats["nan"] or stats["pos_inf"] or stats["neg_inf"])


def _largest(tensor: Any) -> str:
    array = tensor.array()
    if array is None or not array.size:
        return ""
    most, at = -1.0, -1
    for start, part in blocks(array):
        magnitude = np.abs(values.numbers(part, tensor.dtype).astype(np.float64))
        magnitude[~np.isfinite(magnitude)] = -1
        if at < 0 or magnitude.max() > most:
            most, at = float(magnitude.max()), start + int(magnitude.argmax())
    index = np.unravel_index(at, array.shape)
    shown = values.texts(np.asarray(array[index]), tensor.dtype, 0, 1)[0]
    return f"; the largest magnitude is {shown} at {[int(i) for i in index]}"
