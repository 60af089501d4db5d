"""When a breakpoint that was reached stops: conditions, hit counts, log messages. debugpy's syntax, since its users know it."""
from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dvm_wire import syntax
from dvm_wire.logged import split_message

from . import naming

_HITS = re.compile(r"\s*(==|>=|<=|>|<|%(?!\s*0+\s*$))?\s*(\d{1,18})\s*")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
    "%": lambda hits, n: hits % n == 0,
}
HIT_SYNTAX = "a hit count is a number, or ==, >, >=, <, <= or % and a number (% at least 1)"


class BadCondition(ValueError):
    """A condition that cannot be meant."""


def parse_hits(text: str | None) -> Callable[[int], bool]:
    """The test for the n-th hit; a bare number means that very hit. Raises BadCondition."""
    if not text:
        return lambda hits: True
    match = _HITS.fullmatch(text)
    if match is None:
        raise BadCondition(f"{HIT_SYNTAX}; this is {text!r}")
    compare, count = _COMPARE[match[1] or "=="], int(match[2])
    return lambda hits: compare(hits, count)


def _check(condition: str) -> None:
    """Raises BadCondition for a text that is no expression. What its names mean is known at a stop only."""
    try:
        if condition.strip():
            syntax.parse(naming.spelled(condition.strip()), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadCondition(f"the condition `{condition.strip()}` is not an expression: {getattr(error, 'msg', error)}") from None


@dataclass
class Gate:
    """What has to hold for one breakpoint to stop, and how often it was reached."""
    condition: str = ""
    hits: Callable[[int], bool] = field(default=lambda hits: True)
    message: list[tuple[bool, str]] = field(default_factory=list)
    count: int = 0

    @classmethod
    def of(cls, condition: str | None, hit_condition: str | None, log_message: str | None, count: int = 0) -> Gate:
        """Raises BadCondition."""
        for name, value in (("condition", condition), ("hitCondition", hit_condition), ("logMessage", log_message)):
            if not isinstance(value or "", str):
                raise BadCondition(f"{name} must be a text; this is {value!r}")
        _check(condition or "")
        return cls((condition or "").strip(), parse_hits(hit_condition), split_message(log_message) if log_message else [], count)

    def stops(self, evaluate: Callable[[str], object], tell: Callable[[str], None], where: str = "") -> bool:
        """Whether this hit stops. The condition comes first and only hits that meet it count. evaluate: value of an expression, raises
        ValueError; tell: takes log lines and complaints; where: `file.py:12`, named by complaints."""
        where = where and where + ": "
        if self.condition:
            try:
                if not evaluate(self.condition):
                    return False
            except ValueError as error:
                # and stop: a condition that cannot be checked must not be passed over
                tell(f"{where}condition `{self.condition}`: {error}")
        self.count += 1
        if not self.hits(self.count):
            return False
        if self.message:
            tell("".join(_shown(text, evaluate, where) if expression else text for expression, text in self.message))
            return False
        return True


def _shown(expression: str, evaluate: Callable[[str], object], where: str) -> str:
    try:
        return str(evaluate(expression))
    except ValueError as error:
        return f"<{where}`{expression}`: {error}>"
