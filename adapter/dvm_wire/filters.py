"""What a numeric filter may be told: its condition taken apart and its names checked, by the adapter before any program runs and by the
agent that evaluates it.

    condition = read("diverged", "against npu-sim:910b:faithful > 1e-2 and gradient every 10")
    condition.against, condition.said, condition.every      # "npu-sim:910b:faithful", "error > 1e-2 and gradient", 10
"""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from . import syntax

FLOAT64, FUSED = "float64", "fused"  # what `diverged` compares with; else a device
_DRIFT = "error > 1e-3 + 16 * eps"
# filter -> (the condition where none is given, what every condition of it implies)
FILTERS: dict[str, tuple[str, str]] = {
    "nan": ("", "nan > 0"),
    "inf": ("", "inf > 0"),
    "overflow": ("", "(inf > 0 or nan > 0) and finite_operands"),
    "range": ("abs_max > 65504", ""),
    "zeros": ("zeros > 0.99 and count >= 16", ""),
    "unchanged": ("same", "weight"),
    "diverged": (_DRIFT, ""),
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
    "error": "largest difference from the same program run otherwise, relative to the largest magnitude there",
}
# Functions of expressions over tensors, which conditions may call; the first group is NumPy's.
NUMPY = tuple("""abs all allclose any argmax argmin argsort array_equal ceil clip concatenate cos count_nonzero cumsum diff dot exp
    expand_dims floor isclose isfinite isinf isnan log log10 log1p log2 matmul maximum mean median minimum moveaxis nanmax nanmean nanmin
    nonzero percentile prod ptp quantile ravel reshape round shape sign sin sort sqrt square squeeze stack std sum swapaxes tanh transpose
    unique var where""".split())
FUNCTIONS = frozenset(NUMPY) | frozenset("len float int bool str repr norm sorted max min sigmoid relu".split())
_EVERY = re.compile(r"\bevery (\d{1,9})$")
_AGAINST = re.compile(r"against(?: ([^\s<>=!,]+))?[ ,]*")
_LONGEST = 2000  # characters of a condition


class WrongFilter(ValueError):
    """A condition that cannot be meant; the text is for the user."""


@dataclass(frozen=True)
class Read:
    """A condition taken apart. text: all that has to hold; said: what the user said of it, or the filter's own; every: launches of a
    program from one look to the next; against: float64, fused, or a device (whether there is one of that name, the program knows)."""
    name: str
    text: str
    said: str
    every: int = 1
    against: str = FLOAT64


def names_in(expression: str) -> set[str]:
    """The names an expression mentions; none if it cannot be parsed."""
    try:
        return {node.id for node in ast.walk(syntax.parse(expression.strip(), mode="eval")) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def read(name: str, text: str) -> Read:
    """Raises WrongFilter: an unknown filter, no expression, or a name that conditions do not have."""
    if name not in FILTERS:
        raise WrongFilter(f"there is no filter {name!r}; there are {', '.join(FILTERS)}")
    if len(text) > _LONGEST:
        raise WrongFilter(f"a condition of {len(text):,} characters; at most {_LONGEST:,} are read")
    default, implied = FILTERS[name]
    text = " ".join(text.split())
    match = _EVERY.search(text)
    every, text = (int(match[1]), text[: match.start()].rstrip(" ;,")) if match else (1, text)
    if every < 1:
        raise WrongFilter("every 0: a launch can be looked at every time (every 1) or less often")
    against = FLOAT64
    if text.startswith("against"):
        against, text = _against(name, text)
        default = "error > 0" if against == FUSED else default
    if name == "diverged":
        text = _of_error(text, default)
    parts = [part for part in (implied, text or default) if part]
    whole = " and ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0]
    _check(whole, text or whole)
    return Read(name, whole, text or default or implied, every, against)


def _against(name: str, text: str) -> tuple[str, str]:
    """(what is compared with, the rest of the condition)"""
    match = _AGAINST.match(text)
    if match is None or not match[1]:
        raise WrongFilter("`against` what: float64, fused, or a device such as npu-sim:910b")
    if name != "diverged":
        raise WrongFilter(f"only the filter 'diverged' compares with something; {name!r} has no `against`")
    return {"unfused": FUSED}.get(match[1], match[1]), text[match.end() :]


def _of_error(text: str, default: str) -> str:
    """A bare `> 1e-3` is about the error, and what says nothing of the error narrows the filter's own condition."""
    if re.match(r"[<>]|[=!]=", text):
        return f"error {text}"
    text = text.removeprefix("and ").strip()
    return text if not text or "error" in names_in(text) else f"{default} and ({text})"


def _check(whole: str, said: str) -> None:
    try:
        syntax.parse(whole, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WrongFilter(f"the condition `{said}` is not an expression: {getattr(error, 'msg', error)}") from None
    unknown = sorted(names_in(whole) - set(COLUMNS) - FUNCTIONS)
    if unknown:
        raise WrongFilter(f"no `{unknown[0]}` here; a condition is over {', '.join(COLUMNS)}")
