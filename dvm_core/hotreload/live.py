"""What a file's text has become in the running process: its modules, function objects, classes, and the calls that are running."""
from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from .. import _core
from .sources import modules_of, same_file

_LOOK_INSIDE = 2000  # objects a module walk visits at most; beyond that the garbage collector's list is the quicker way


def qualname(code: CodeType) -> str:
    """As places name functions; Python 3.10 knows only the plain name."""
    return getattr(code, "co_qualname", code.co_name)


class Live:
    """The functions and classes of one file, as they are now. Made on the asking thread; the training thread goes on, but
    while the core lists the heap (`_core.functions_alive`, some 60 ms per million objects), where the walk from names is not enough."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.modules: list[ModuleType] = modules_of(path)
        files = {path, os.path.realpath(path), *(str(vars(module)["__file__"]) for module in self.modules)}
        self._files = dict.fromkeys(files, True)  # file name of a code object -> whether it is ours
        self._names = {os.path.basename(file) for file in files}
        self.caches: list[Any] = []  # `functools.cache` and its like around functions
        self.functions: list[FunctionType] = self._walk()

    def belongs(self, code: CodeType) -> bool:
        """Whether a code object was compiled from this file."""
        name = code.co_filename
        if name not in self._files:
            self._files[name] = os.path.basename(name) in self._names and same_file(name, self.path)
        return self._files[name]

    def is_own(self, path: str) -> bool:
        """Whether it is this file's."""
        return same_file(path, self.path)

    # ---- function objects ------------------------------------------------------------------------------------------------------------
    def _walk(self) -> list[FunctionType]:
        """Functions reachable from the modules' names, through classes, decorators' `__wrapped__` and closures, partials and objects."""
        todo: list[Any] = [value for module in self.modules for value in list(vars(module).values())]
        names = {vars(module).get("__name__") for module in self.modules}
        seen: set[int] = set()
        found: list[FunctionType] = []
        while todo and len(seen) < _LOOK_INSIDE:
            thing = todo.pop()
            if id(thing) in seen or isinstance(thing, (ModuleType, str, int, float, tuple, list, dict, type(None))):
                continue
            seen.add(id(thing))
            if isinstance(thing, FunctionType) and self.belongs(thing.__code__):
                found.append(thing)
            elif type(thing) is functools._lru_cache_wrapper:
                self.caches.append(thing)
            todo += _inside(thing, names)
        return found

    def search(self, since: tuple[int, ...] = ()) -> None:
        """Adds the functions the walk did not reach: closures, and what only native code or a container holds. One look at the whole
        heap, which no other thread can observe: see native/bind_heap.cc.

        since: what `collections` gave before. Only functions made after that are of interest; if nothing was moved to the collector's
        oldest generation in between, they are among the few objects of the younger ones."""
        young = since and since == collections()
        known, files = {id(function) for function in self.functions}, self._files
        caches = {id(cache) for cache in self.caches}
        for function in _core.functions_alive(2 if young else 0, functools._lru_cache_wrapper):
            if type(function) is functools._lru_cache_wrapper:
                if id(function) not in caches:
                    self.caches.append(function)
            elif files.get(function.__code__.co_filename, True) and id(function) not in known and self.belongs(function.__code__):
                self.functions.append(function)

    # ---- the rest --------------------------------------------------------------------------------------------------------------------
    def classes(self, key: str) -> list[type]:
        """The classes of that qualified name, one per module that has it."""
        found = []
        for module in self.modules:
            thing: Any = module
            for name in key.split("."):
                thing = vars(thing).get(name) if isinstance(thing, (ModuleType, type)) else None
            if isinstance(thing, type):
                found.append(thing)
        return found

    def running(self) -> set[str]:
        """The names, as `qualname` has them, of code with a call on some thread's stack; code that a reload has replaced is among it."""
        return {qualname(frame.f_code) for frame in frames() if self.belongs(frame.f_code)}

    def module_line(self) -> int | None:
        """The line the module's own code is at, None when it has run to its end."""
        return next((frame.f_lineno for frame in frames() if frame.f_code.co_name == "<module>" and self.belongs(frame.f_code)), None)


def frames() -> Iterator[FrameType]:
    """Of all threads' stacks, each innermost first."""
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            yield frame
            frame = frame.f_back


def collections() -> tuple[int, ...]:
    """How often the collector has moved objects on to its oldest generation."""
    return tuple(generation["collections"] for generation in gc.get_stats()[1:])


def _inside(thing: Any, modules: set[Any]) -> list[Any]:
    """What may hold functions in an object, read without running any of its code."""
    if isinstance(thing, FunctionType):
        cells = [cell for cell in thing.__closure__ or ()]
        return [*vars(thing).values(), *(c.cell_contents for c in cells if _filled(c))]
    if isinstance(thing, type):
        return list(vars(thing).values()) if vars(thing).get("__module__") in modules else []
    if isinstance(thing, (staticmethod, classmethod, MethodType)):
        return [thing.__func__]
    if isinstance(thing, property):
        return [thing.fget, thing.fset, thing.fdel]
    if isinstance(thing, functools.partial):
        return [thing.func]
    try:
        attributes = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return []
    if type(attributes) is not dict:
        return []
    # A decorator's object holds its function directly; models and data sets are not searched through.
    return [value for value in list(attributes.values()) if isinstance(value, (FunctionType, MethodType))]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
