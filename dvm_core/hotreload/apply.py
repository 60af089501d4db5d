"""A patch of the running process: assignments that are made together and can be taken back."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from . import turns
from .edits import MISSING


@dataclass
class Assignment:
    """One place that gets a new value. `read` gives MISSING and `write` takes it for a place that is not there."""
    read: Callable[[], Any]
    write: Callable[[Any], None]
    new: Any
    old: Any = MISSING
    where: tuple[Any, ...] = ()  # equal for two assignments to one place, as long as its owner lives
    function: FunctionType | None = None  # whose attribute it is


def attribute(function: FunctionType, name: str, value: Any) -> Assignment:
    """`__code__`, `__defaults__`, `__kwdefaults__` or `__doc__` of a function."""
    return Assignment(lambda: getattr(function, name), lambda new: setattr(function, name, new), value, where=(id(function), name),
                      function=function)


def item(names: dict[str, Any], name: str, value: Any) -> Assignment:
    """A module's global."""
    def write(new: Any) -> None:
        if new is MISSING:
            names.pop(name, None)
        else:
            names[name] = new
    return Assignment(lambda: names.get(name, MISSING), write, value, where=(id(names), name))


def class_attribute(cls: type, name: str, value: Any) -> Assignment:
    def write(new: Any) -> None:
        if new is not MISSING:
            setattr(cls, name, new)
        elif name in vars(cls):
            delattr(cls, name)
    return Assignment(lambda: vars(cls).get(name, MISSING), write, value, where=(id(cls), name))


def contents(container: Any, value: Any) -> Assignment:
    """What a list, dict or set holds: the object stays, since others may hold it, too."""
    def write(new: Any) -> None:
        container.clear()
        (container.extend if isinstance(container, list) else container.update)(new)
    return Assignment(lambda: type(container)(container), write, value, where=(id(container),))


def emptied(cache: Any) -> Assignment:
    """A cache of results that other code has made: empty, after the swap and after its undo."""
    return Assignment(lambda: MISSING, lambda new: cache.cache_clear(), MISSING, where=(id(cache),))


@dataclass
class Patch:
    """All assignments of one transaction."""
    assignments: list[Assignment] = field(default_factory=list)
    applied: int = 0  # how many are in force

    def __bool__(self) -> bool:
        return bool(self.assignments)

    def apply(self) -> None:
        """Makes all assignments or, if one fails, none; its error is raised then."""
        with turns.uninterrupted():  # no other thread runs a mixture of old and new functions in between
            try:
                for assignment in self.assignments[self.applied:]:
                    assignment.old = assignment.read()
                    self.applied += 1  # first: a signal's exception may come between the two
                    assignment.write(assignment.new)
            except BaseException:
                with contextlib.suppress(Exception):  # of the one that takes no new value, and no old one
                    self.revert()
                raise

    def revert(self) -> None:
        """Puts back what was there before, last change first. All of it, though one refuses: its error is raised in the end."""
        refused: Exception | None = None
        while self.applied:
            assignment = self.assignments[self.applied - 1]
            try:
                assignment.write(assignment.old)
            except Exception as error:
                refused = error
            self.applied -= 1
        if refused is not None:
            raise refused

    def sweep(self, functions: list[FunctionType], inner: dict[CodeType, CodeType]) -> list[FunctionType]:
        """Swaps closures that were made of old inner code between the search and the swap, and gives them. inner: old code -> new."""
        swept = []
        for function in functions:
            new = inner.get(function.__code__)
            if new is not None and new.co_freevars == function.__code__.co_freevars:
                self.assignments.append(attribute(function, "__code__", new))
                swept.append(function)
        self.apply()
        return swept

    def inverse(self) -> Patch:
        """The patch that undoes this one as a transaction of its own. Only while this one is in force."""
        return Patch([Assignment(a.read, a.write, a.old, where=a.where) for a in reversed(self.assignments[:self.applied])])
