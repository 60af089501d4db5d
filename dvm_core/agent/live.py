"""Expressions of variables, such as `abs(h - t).max()`, that are watched: checked beforehand, computed from copies of their values.

They are computed on the agent's thread from bytes that were copied beside the training."""
from __future__ import annotations

import ast
import time

import numpy as np

from ..dtypes import BY_CODE
from . import values
from .commands import Answer, CommandError
from .evaluate import ATTRIBUTES, Refused, check, evaluate, is_constant, parsed, prefixed
from .kept import array_of

MOST_BYTES = 16 << 20  # of a variable that is copied for its expression: more than of one that is shown, since the copy goes nowhere
_MOST_VARIABLES = 8  # of one expression
_MOST_LAUNCHES = 8  # some of whose values are still to come
_PATIENCE = 3  # calls that make some of the variables and not all, until that is told
_LONGEST = 1000  # characters of an expression
_DEAR = 0.001  # seconds of the processor: an expression that usually takes longer rests after it
_OWNERS = ("self", "cls")  # `self.size` is a variable, `h.size` a number
_RESTS = 3  # times as long as it takes: commands are served on the same thread
_USUAL = 0.1  # weight of the newest time


class Expression:
    """One watched expression. variables: what is copied for it, as `h`, `self.w` or `grad(h)`."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        self.text, self.variables = text, variables
        self._usual = self._due = 0.0
        self._met: dict[str, Answer] = {}  # by variable its newest value
        self._fresh: set[str] = set()  # of them, those that were made since it was computed last
        self._launches: dict[int, dict[int, tuple[str, Answer]]] = {}  # by launch and instruction, while some are to come
        self._partly: set[int] | None = set()  # calls that have made some of the variables; None once one has made all, or it was told

    @classmethod
    def read(cls, text: str) -> tuple[tuple[str, ...], Expression | None]:
        """The variables, and what is computed from them, None for one variable itself. Raises CommandError, which names what is wrong."""
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
        if len(found) > _MOST_VARIABLES:
            raise CommandError(f"`{text}` is of {len(found)} variables; at most {_MOST_VARIABLES} are watched together")
        return tuple(found), None if ast.unparse(tree) == found[0] else cls(text, tuple(found))

    def meet(self, event: Answer, variable: str, expected: int) -> list[dict[str, Answer]]:
        """Takes the core's event about a variable; gives, each with all variables as one captured call made them, in the order of the
        program, what is to be computed now; the newest value is the last. expected: values that its launch makes of all variables.

        It is computed once all of them are new, and for each further value of one that none of the others follows in that launch."""
        if len(self.variables) == 1:
            return [{self.variables[0]: event}]
        launch = self._launches.setdefault(event["launch"], {})
        launch[event["instruction"]] = variable, event
        if len(launch) < expected:
            if len(self._launches) > _MOST_LAUNCHES:  # events of the oldest were lost, or it was given up
                del self._launches[min(self._launches)]
            return []
        del self._launches[event["launch"]]
        made = [launch[index] for index in sorted(launch)]
        ready = []
        for at, (name, value) in enumerate(made):
            self._met = {key: old for key, old in self._met.items() if key != name and old["step"] == value["step"]} | {name: value}
            self._fresh = (self._fresh | {name}) & self._met.keys()
            follows = made[at + 1][0] if at + 1 < len(made) else name
            if len(self._met) == len(self.variables) and (len(self._fresh) == len(self.variables) or follows == name):
                self._fresh.clear()
                ready.append(self._met)
        if ready:
            self._partly = None
        elif self._partly is not None:
            self._partly.add(event["step"])
        return ready

    def apart(self) -> bool:
        """Whether calls make some of the variables and none has made all: true once."""
        if self._partly is None or len(self._partly) < _PATIENCE:
            return False
        self._partly = None
        return True

    def of(self, made: dict[str, Answer], limit: int, *, statistics: bool) -> Answer | None:
        """The core's events about the variables as one about the expression; None while it rests. limit: bytes of a value that is sent."""
        event = next(reversed(made.values()))
        for name, value in made.items():
            if why := value.get("placeholder"):
                return {**event, "kind": "capture", "placeholder": why if len(made) == 1 else f"{name}: {why}"}
        if time.monotonic() < self._due:
            return None
        begun = time.thread_time()
        try:
            array, code = self._value(made)
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

    def _value(self, made: dict[str, Answer]) -> tuple[np.ndarray, int]:
        value = evaluate(self.text, {name: _numbers(event) for name, event in made.items()})
        try:
            array = np.asarray(value)
        except ValueError:  # a ragged list
            array = np.asarray(None)
        if array.dtype.kind not in "biuf":
            raise Refused(f"`{self.text}` is {type(value).__name__}, not a number or numbers")
        code = values.code_of(array)
        return (array, code) if code in BY_CODE else (array.astype(np.float64), values.code_named("float64"))


def _numbers(event: Answer) -> np.ndarray:
    given = values.numbers(array_of(event["data"], event["dtype"], tuple(event["shape"])), event["dtype"])
    return given.astype(np.float32) if given.dtype == np.float16 else given  # sums of it would overflow


def _variables(node: ast.AST) -> list[str]:
    """The names of values in an expression, in order; what is called is none, nor is a constant of a module."""
    if is_constant(node, ()):
        return []
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
