"""Expressions of one variable, such as `abs(h).max()`, that are watched: checked beforehand, computed from each copy of its value.

They are computed on the agent's thread from bytes that were copied beside the training."""
from __future__ import annotations

import ast
import time

import numpy as np

from ..dtypes import BY_CODE
from . import values
from .commands import Answer, CommandError
from .evaluate import ATTRIBUTES, Refused, check, evaluate, parsed, prefixed
from .kept import array_of

MOST_BYTES = 16 << 20  # of a variable that is copied for its expression: more than of one that is shown, since the copy goes nowhere
_LONGEST = 1000  # characters of an expression
_DEAR = 0.001  # seconds of the processor: an expression that usually takes longer rests after it
_OWNERS = ("self", "cls")  # `self.size` is a variable, `h.size` a number
_RESTS = 3  # times as long as it takes: commands are served on the same thread
_USUAL = 0.1  # weight of the newest time


class Expression:
    """One watched expression. variable: what is copied for it, as `h`, `self.w` or `grad(h)`."""

    def __init__(self, text: str, variable: str) -> None:
        self.text, self.variable = text, variable
        self._usual = self._due = 0.0

    @classmethod
    def read(cls, text: str) -> tuple[str, Expression | None]:
        """The variable, and what is computed from it, None for the variable itself. Raises CommandError, which names what is wrong."""
        if len(text) > _LONGEST:
            raise CommandError(f"an expression of {len(text):,} characters: at most {_LONGEST:,} are watched")
        try:
            tree = parsed(text)
            found = list(dict.fromkeys(_variables(tree)))
            check(tree, found)
        except Refused as error:
            raise CommandError(str(error)) from None
        except RecursionError:
            raise CommandError(f"`{text[:_LONGEST // 10]}…` is nested too deeply") from None
        if not found:
            raise CommandError(f"`{text}` names no variable: watch one, or an expression of one, such as abs(h).max()")
        if len(found) > 1:
            raise CommandError(f"`{text}` is of {len(found)} variables, {', '.join(found)}; while the program runs an expression of one is "
                               "computed. Give the result a name in the program and watch that, or evaluate it at a stop")
        return found[0], None if ast.unparse(tree) == found[0] else cls(text, found[0])

    def of(self, event: Answer, limit: int, *, statistics: bool) -> Answer | None:
        """The core's event about the variable as one about the expression; None while it rests. limit: bytes of a value that is sent."""
        if event.get("placeholder"):
            return {**event, "kind": "capture"}
        if time.monotonic() < self._due:
            return None
        begun = time.thread_time()
        try:
            array, code = self._value(event)
        except Refused as error:
            return {**event, "kind": "capture", "placeholder": str(error)}
        finally:
            self._usual += _USUAL * (time.thread_time() - begun - self._usual)
            self._due = time.monotonic() + _RESTS * self._usual if self._usual > _DEAR else 0.0
        told = {**event, "shape": array.shape, "dtype": code}
        if statistics:
            return {**told, "kind": "stats", "stats": values.statistics(array, code)}
        if array.nbytes > limit:
            return {**told, "placeholder": f"{array.nbytes:,} bytes, more than snapshotMaxBytes, {limit:,}"}
        return {**told, "data": values.contiguous(array, 0, array.nbytes)}

    def _value(self, event: Answer) -> tuple[np.ndarray, int]:
        given = values.numbers(array_of(event["data"], event["dtype"], tuple(event["shape"])), event["dtype"])
        if given.dtype == np.float16:  # sums of it would overflow
            given = given.astype(np.float32)
        value = evaluate(self.text, {self.variable: given})
        try:
            array = np.asarray(value)
        except ValueError:  # a ragged list
            array = np.asarray(None)
        if array.dtype.kind not in "biuf":
            raise Refused(f"`{self.text}` is {type(value).__name__}, not a number or numbers")
        code = values.code_of(array)
        return (array, code) if code in BY_CODE else (array.astype(np.float64), values.code_named("float64"))


def _variables(node: ast.AST) -> list[str]:
    """The names of values in an expression, in order; what is called is none."""
    if isinstance(node, ast.Call):
        name = node.func
        if isinstance(name, ast.Name):
            if name.id == "grad" and len(node.args) == 1 and not node.keywords and _dotted(node.args[0]):
                return [ast.unparse(node)]
            inside: list[ast.AST] = []
        else:
            inside = [] if isinstance(name, ast.Attribute) and prefixed(name) else [name.value if isinstance(name, ast.Attribute) else name]
        return [found for part in (*inside, *node.args, *node.keywords) for found in _variables(part)]
    if isinstance(node, (ast.Name, ast.Attribute)) and _dotted(node):
        while isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES and ast.unparse(node.value) not in _OWNERS:
            node = node.value
        return [ast.unparse(node)]
    return [found for part in ast.iter_child_nodes(node) for found in _variables(part)]


def _dotted(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
