"""Edits of names: constants of modules and classes, new functions, new imports."""
from __future__ import annotations

import abc
import ast
import dataclasses
import enum
import functools
import importlib
import os
import time
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from . import apply, readers, stacks, threads, turns
from .constants import value_of
from .edits import MISSING, Edit
from .live import Live
from .parse import Definition, Source
from .sources import SourceBook

if TYPE_CHECKING:
    from .plan import Plan


_KEEPS = "what that made keeps the value it read"
IMPORT_WAIT = 5.0  # seconds for all that an edit imports: other saves wait meanwhile, and the other ranks


def plan(old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    """Adds to the plan what the edits of names mean, or why they cannot be made."""
    for edit in result.edits:
        handler = _HANDLERS.get(edit.kind)
        if handler is not None:
            handler(edit, old, new, live, book, result)


def _same(live: Any, written: Any) -> bool:
    # Types first: an array, say, compares element by element.
    return type(live) is type(written) and bool(live == written)


def _set_meanwhile(edit: Edit, value: Any) -> str:
    shown = "gone" if value is MISSING else repr(value) if isinstance(value, (int, float, str, bool)) else f"a {type(value).__name__}"
    return f"line {edit.line}: `{edit.key}` was {edit.old} in the text, but is {shown:.60} in the running program: needs restart"


def _constant(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    before, after = edit.value
    if not _reaches(edit, old, new, live, book, result):
        return
    for module in live.modules:
        for place, name in [(module, edit.key), *readers.importers(module, edit.key, book)]:
            value = vars(place).get(name, MISSING)
            if _same(value, before):
                result.patch.assignments.append(_filled(value, after) or apply.item(vars(place), name, after))
            elif place is module:
                result.refusals.append(_set_meanwhile(edit, value))


def _reaches(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> bool:
    """Whether a new value reaches who reads it: top-level code has run and is not run again."""
    owner, _, name = edit.key.rpartition(".")
    done, ahead = readers.at_top_level(name, old, live, owner)
    if done and not ahead and not readers.in_functions(name, new) and not readers.elsewhere(name, live, book):
        result.refusals.append(f"line {edit.line}: `{edit.key}` is read only by top-level code that has run already "
                               f"(line {done[0]}): needs restart")
        return False
    if done:
        result.notes.append(f"`{edit.key}` was read by top-level code that has run already (line {done[0]}); {_KEEPS}")
    for file, line in sorted({place for module in live.modules for place in readers.stale(module, edit.key, book)}):
        result.notes.append(f"`{edit.key}` was read by top-level code of {file} that has run already (line {line}); {_KEEPS}")
    places = [(place, at) for module in live.modules
              for place, at in [(module, name), *([] if owner else readers.importers(module, name, book))]]
    for function, path, line in stacks.Readers(places, live.classes(owner) if owner else []).found():
        where = f"line {line}" if live.is_own(path) else f"{os.path.basename(path)}:{line}"
        result.notes.append(f"`{edit.key}` was read by `{function}`, which is running ({where}); {_KEEPS}")
    return True


def _filled(value: Any, after: Any) -> apply.Assignment | None:
    """For a container: its contents change, since others may hold it, too."""
    in_place = isinstance(value, (list, dict, set)) and type(value) is type(after)
    return apply.contents(value, after) if in_place else None


def _new_constant(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    for module in live.modules:
        result.patch.assignments.append(apply.item(vars(module), edit.key, edit.value[1]))


def _class_constant(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    owner, _, name = edit.key.rpartition(".")
    if _ambiguous(edit, owner, old, result) or not _reaches(edit, old, new, live, book, result):
        return
    for cls in _plain_classes(edit, live, result):
        name = _stored(name, cls)
        value = vars(cls).get(name, MISSING)
        if not _same(value, edit.value[0]):
            result.refusals.append(_set_meanwhile(edit, value))
        else:
            result.patch.assignments.append(_filled(value, edit.value[1]) or apply.class_attribute(cls, name, edit.value[1]))


def _plain_classes(edit: Edit, live: Live, result: Plan) -> list[type]:
    """The classes whose constant it is. Those that make more of it are a refusal."""
    classes = live.classes(edit.key.rpartition(".")[0])
    special = next(filter(None, map(_special, classes)), "")
    if special:
        result.refusals.append(f"line {edit.line}: `{edit.key}` belongs to {special}; its layout was made from it: needs restart")
    root = edit.key.partition(".")[0]
    if not classes and any(root in vars(module) for module in live.modules):
        result.refusals.append(f"line {edit.line}: `{edit.key}`: of its class a decorator, say, made something else: needs restart")
    return [] if special else classes


def _new_class_constant(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    owner, _, name = edit.key.rpartition(".")
    if _ambiguous(edit, owner, old, result):
        return
    for cls in _plain_classes(edit, live, result):
        if name in getattr(cls, "__abstractmethods__", ()):
            result.refusals.append(f"line {edit.line}: `{edit.key}` is abstract; the class was made without it: needs restart")
        result.patch.assignments.append(apply.class_attribute(cls, _stored(name, cls), edit.value[1]))


def _removed_class_constant(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    name = edit.key.rpartition(".")[2]
    for cls in _plain_classes(edit, live, result):
        if any(_stored(name, cls) in vars(base) for base in cls.__mro__[1:]):
            result.refusals.append(f"line {edit.line}: `{edit.key}` is gone from the text, and a base has one too, which would count: "
                                   "needs restart")


def _ambiguous(edit: Edit, owner: str, old: Source, result: Plan) -> bool:
    """Whether the text has several classes of that name, in branches say: the one that lives cannot be told from its name."""
    parts = owner.split(".")
    several = any("#" in part or ".".join(parts[:i + 1]) + "#2" in old.definitions for i, part in enumerate(parts))
    if several:
        result.refusals.append(f"line {edit.line}: `{edit.key}`: the text defines more than one class of that name: needs restart")
    return several


def _stored(name: str, cls: type) -> str:
    """What a class body makes of a name: `__rate` is private to the class."""
    private = name.startswith("__") and not name.endswith("__") and cls.__name__.strip("_")
    return f"_{cls.__name__.lstrip('_')}{name}" if private else name


def _special(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        return "an enumeration"
    if dataclasses.is_dataclass(cls):
        return "a data class"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "a named tuple"
    if type(cls) not in (type, abc.ABCMeta):
        return f"a class that {type(cls).__qualname__} made"
    return "a class with __slots__" if "__slots__" in vars(cls) else ""


def _new_function(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    definition = new.definitions[edit.key]
    if definition.owner and _ambiguous(edit, definition.owner.key, old, result):
        return
    owners: list[Any] = live.classes(definition.owner.key) if definition.owner else live.modules
    for owner in owners:
        home = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        module = next((m for m in live.modules if m.__name__ == home), live.modules[0])
        function = _function(definition, vars(module), owner)
        if function is None:
            result.refusals.append(f"line {edit.line}: `{edit.key}` is new and uses variables of a scope that is gone: needs restart")
        elif owner is module:
            result.patch.assignments.append(apply.item(vars(module), function.__name__, function))
        elif function.__name__ == "__post_init__" and dataclasses.is_dataclass(owner) and not hasattr(owner, "__post_init__"):
            result.refusals.append(f"line {edit.line}: `{edit.key}` is new; the data class's `__init__` was made without it: needs restart")
        else:
            value = _wrapped(function, definition)
            result.patch.assignments.append(apply.class_attribute(owner, _stored(function.__name__, owner), value))
            _hash(edit, owner, new, result)


def _hash(edit: Edit, owner: type, new: Source, result: Plan) -> None:
    """A class with an `__eq__` of its own and no `__hash__` is made with None for it; so is one that gets its `__eq__` now."""
    cls, _, name = edit.key.rpartition(".")
    if name == "__eq__" and f"{cls}.__hash__" not in new.definitions and "__hash__" not in vars(owner):
        result.patch.assignments.append(apply.class_attribute(owner, "__hash__", None))
        result.notes.append(f"`{cls}` has an `__eq__` and no `__hash__` now: its objects are no longer keys, as after a restart")


def _function(definition: Definition, names: dict[str, Any], owner: Any) -> FunctionType | None:
    """A function object of a definition, as running its `def` would make it."""
    code, arguments = definition.code, definition.node.args  # type: ignore[union-attr]
    if code is None or not set(code.co_freevars) <= {"__class__"} or (code.co_freevars and not isinstance(owner, type)):
        return None
    closure = tuple(CellType(owner) for _ in code.co_freevars)  # what super() looks at
    name = getattr(definition.node, "name", definition.key)
    function = FunctionType(code, names, name, tuple(value_of(d) for d in arguments.defaults) or None, closure or None)
    function.__qualname__ = definition.key.partition("#")[0]
    keywords = {a.arg: value_of(d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    function.__kwdefaults__ = keywords or None  # type: ignore[assignment]
    return function


# What making a class does to methods of these names.
_IMPLICIT: dict[str, Callable[[Any], Any]] = {"__new__": staticmethod, "__init_subclass__": classmethod, "__class_getitem__": classmethod}


def _wrapped(function: FunctionType, definition: Definition) -> Any:
    kinds: dict[str, Callable[[Any], Any]] = {"staticmethod": staticmethod, "classmethod": classmethod, "property": property}
    value: Any = _IMPLICIT.get(function.__name__, lambda plain: plain)(function)
    for decorator in reversed(definition.decorators):
        value = kinds[decorator.id](value)  # type: ignore[attr-defined]
    return value


def _new_import(edit: Edit, old: Source, new: Source, live: Live, book: SourceBook, result: Plan) -> None:
    node, alias = edit.value
    for module in live.modules:
        try:
            with turns.collection():
                left = result.began + IMPORT_WAIT - time.monotonic()
                value = threads.within(max(0.0, left), functools.partial(_imported, node, alias, module), result.make_thread)
        except threads.StillRunning:
            result.refusals.append(f"line {edit.line}: `{edit.new}` is still running after {IMPORT_WAIT:g} s: save again when it has ended")
            return
        except Exception as error:
            result.refusals.append(f"line {edit.line}: `{edit.new}` failed: {type(error).__name__}: {error}")
            return
        name = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
        result.patch.assignments.append(apply.item(vars(module), name, value))


def _imported(node: ast.Import | ast.ImportFrom, alias: ast.alias, module: ModuleType) -> Any:
    if isinstance(node, ast.Import):
        found = importlib.import_module(alias.name)
        return found if alias.asname else importlib.import_module(alias.name.partition(".")[0])
    package = vars(module).get("__package__") or ""
    source = importlib.import_module("." * node.level + (node.module or ""), package or None)
    try:
        return getattr(source, alias.name)
    except AttributeError:
        if hasattr(source, "__path__"):
            return importlib.import_module(f"{source.__name__}.{alias.name}")
        raise ImportError(f"no `{alias.name}` in {os.path.basename(getattr(source, '__file__', None) or source.__name__)}") from None


_HANDLERS: dict[str, Callable[..., None]] = {
    "constant": _constant,
    "new constant": _new_constant,
    "class constant": _class_constant,
    "new class constant": _new_class_constant,
    "removed class constant": _removed_class_constant,
    "new function": _new_function,
    "new import": _new_import,
}
