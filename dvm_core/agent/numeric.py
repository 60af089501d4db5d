"""Numeric filters: which results of a launch are worth a stop, by conditions over their statistics.

A condition is evaluated for all results of a launch at once: every name in it is a column, one row per result (and per weight read)."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, dtypes
from . import naming, values
from .blocks import blocks
from .drift import Drift
from .evaluate import FUNCTIONS, Refused, evaluate, names_in
from .places import place
from .weights import Weights

if TYPE_CHECKING:
    from .views import LaunchView

# filter -> (the condition where none is given, what every condition of it implies)
FILTERS: dict[str, tuple[str, str]] = {
    "nan": ("", "nan > 0"),
    "inf": ("", "inf > 0"),
    "overflow": ("", "(inf > 0 or nan > 0) and finite_operands"),
    "range": ("abs_max > 65504", ""),
    "zeros": ("zeros > 0.99 and count >= 16", ""),
    "unchanged": ("same", "weight"),
    "diverged": ("error > 1e-3 + 16 * eps", ""),
}
# What can be asked of a result, with what it means. Those of the last group need more than statistics.
COLUMNS: dict[str, str] = {
    "count": "elements", "zeros": "share of zeros", "nan": "NaN elements", "inf": "infinite elements", "min": "least finite element",
    "max": "largest finite element", "mean": "mean of the finite elements", "std": "their standard deviation",
    "abs_mean": "mean magnitude", "abs_max": "largest magnitude", "span": "max - min", "eps": "spacing of its dtype at 1",
    "op": "name of the instruction", "name": "variable", "function": "function of the line", "step": "training step",
    "gradient": "whether a backward pass made it", "activation": "whether a forward pass made it", "weight": "whether it is a parameter",
    "finite_operands": "whether all it was made from is finite",
    "change": "of a weight: mean |new - old| / mean |old| since the step before", "same": "of a weight: not changed, to 1e-5",
    "error": "largest difference from the same program in float64, relative to the largest magnitude there",
}
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
_EVERY = re.compile(r"\bevery (\d{1,9})$")
_LONGEST = 2000  # characters of a condition


@dataclass(frozen=True)
class Condition:
    """One filter that is set. every: launches of a program from one look to the next."""
    name: str
    text: str  # all of it
    said: str = ""  # what the user said, or the filter's own
    every: int = 1

    @classmethod
    def of(cls, name: str, text: str) -> Condition:
        """Raises Refused: an unknown filter, or a condition that cannot be meant."""
        if name not in FILTERS:
            raise Refused(f"there is no filter {name!r}; there are {', '.join(FILTERS)}")
        default, implied = FILTERS[name]
        if len(text) > _LONGEST:
            raise Refused(f"a condition of {len(text):,} characters; at most {_LONGEST:,} are read")
        text = " ".join(text.split())
        match = _EVERY.search(text)
        every, text = (int(match[1]), text[:match.start()].rstrip(" ;,")) if match else (1, text)
        if every < 1:
            raise Refused("every 0: a launch can be looked at every time (every 1) or less often")
        parts = [part for part in (implied, text or default) if part]
        whole = " and ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0]
        unknown = sorted(names_in(whole) - set(COLUMNS) - set(FUNCTIONS))
        if unknown:
            raise Refused(f"no `{unknown[0]}` here; a condition is over {', '.join(COLUMNS)}")
        condition = cls(name, whole, text or default or implied, every)
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

    def set(self, conditions: list[Condition]) -> None:
        """None at all costs nothing. Filters `nan` and `inf` without a condition are checked in the core alone."""
        plain = [c for c in conditions if c.name in _BITS and c == Condition.of(c.name, "")]
        self.conditions = [c for c in conditions if c not in plain]
        self._weights = Weights()
        _core.set_check(sum(_BITS[name] for name in {c.name for c in plain}))
        self._seen = {}
        self._every = math.gcd(*(c.every for c in self.conditions))  # 0 of none
        _core.set_measure(self._every)

    def look(self, view: LaunchView) -> Hit | None:
        """The first result of a measured launch, in program order, that meets a condition. A condition that fails is told of and left out
        from then on."""
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
                found = np.flatnonzero(condition.holds(rows.columns))
            except Refused as error:
                self.conditions = [c for c in self.conditions if c is not condition]
                self._tell(f"the filter {condition.name!r} is off: `{condition.said}`: {error}")
                continue
            if len(found) and (best is None or rows.at[found[0]] < rows.at[best[0]]):
                best = (int(found[0]), condition)
        return None if best is None else Hit(best[1].name, int(rows.at[best[0]]), rows.why(*best))


class _Rows:
    """The columns of one launch: its float results in program order, before each instruction the weights it is the first to read."""

    def __init__(self, view: LaunchView, weights: Weights | None, with_error: bool) -> None:
        self.view = view
        measured = np.frombuffer(view.launch.measured(), np.float64).reshape(-1, len(_core.MEASURED))
        told = {name: measured[:, i] for i, name in enumerate(_core.MEASURED)}
        self.at = told["instruction"].astype(np.int64)
        self._inputs = np.full(len(self.at), -1)
        self._since: dict[int, int] = {}  # weight -> the step it is compared with
        codes = np.array([view.instructions[i].dtype for i in self.at], np.int64)
        change: Any = np.full(len(self.at), np.nan)
        same: Any = np.zeros(len(self.at), bool)
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
            told = {name: told[name][order] for name in more}
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
        self.columns["error"] = Drift(view).errors(self.at, ~weight) if with_error else np.full(len(self.at), np.nan)

    def _name(self, row: int) -> str:
        view, at, local = self.view, int(self.at[row]), int(self._inputs[row])
        count = len(view.inputs)
        return naming.number(local, count) if local >= 0 else view.names.get(at) or naming.number(count + at, count)

    def _finite_operands(self, told: dict[str, np.ndarray]) -> np.ndarray:
        """Whether a result's operands are finite: earlier results by their statistics, through views, and inputs by a look at them."""
        view, first = self.view, len(self.view.inputs)
        bad = {first + int(i) for i, w, n in zip(self.at, self._inputs, told["nan"] + told["pos_inf"] + told["neg_inf"], strict=True)
               if n and w < 0}
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
        figures = [f"{name} {_figure(self.columns[name][row])}" for name in COLUMNS if condition.uses(name) and name not in _SELF_EVIDENT]
        since = self._since.get(local, -1)
        if condition.uses("same") and since >= 0:
            figures.append(f"{'has not changed' if self.columns['same'][row] else 'has changed'} since step {since}")
        text = f"{condition.name}: {subject}, {': '.join([kind, ', '.join(figures)] if figures else [kind])}"
        where = _largest(tensor) if condition.uses("abs_max") or condition.uses("max") or condition.uses("min") else ""
        return f"{text}{where}; the condition is {condition.said}"


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
