"""What a captured function reads from outside its arguments, so that a trace is not replayed after one of those things changed.

The code is read, not run: its bytecode names the globals and closure cells it loads and the attributes it takes. Every attribute so
named is looked at in every object that can be reached (arguments, globals, `self` and what hangs on it), which may be more than is
read; docs/mindspore.md says what is not seen. Guarded are numbers, strings and None by value, tensors by identity, shape and dtype,
containers by their items, functions by their code and defaults, the rest by identity. Functions of the standard library and of
frameworks are not looked into, only the `construct` of their cells. Properties and __getattr__ of the user's objects are not run.
"""
from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core

_LIBRARIES = frozenset(("mindspore", "numpy", "dvm_core", "dvm", "builtins", *sys.stdlib_module_names)) - {"__main__", "test"}
_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_ITEMS = 1024  # of a longer container only identity and length are guarded
_CELL_TABLES = ("_params", "_cells", "_buffers", "_params_list", "_primitives")  # where a Cell keeps attributes of these kinds
_COLLECTS = ("append", "extend", "add")  # a container that is only added to is not read
_GONE: Any = type("Gone", (), {"__repr__": lambda self: "not there"})()

# MindSpore's, once its front end is there (know_mindspore); until then nothing is one.
Tensor: Any = type("Tensor", (), {})
Cell: Any = type("Cell", (), {})


def know_mindspore(tensor: type, cell: type) -> None:
    """From now on MindSpore's tensors and cells are seen as such."""
    global Tensor, Cell
    Tensor, Cell = tensor, cell


class Guard:
    """One value, where it is read and what it was."""

    __slots__ = ("label", "read", "value", "detail")

    def __init__(self, label: str, read: Callable[[], Any], value: Any, detail: Any) -> None:
        self.label, self.read, self.value, self.detail = label, read, value, detail

    def holds(self) -> bool:
        now, was = self.read(), self.value
        if now is was and self.detail is None:
            return True
        if isinstance(was, Tensor):
            # The values may change, and with set_data their memory. MindSpore may make another Python object of the same tensor.
            same = now is was or (isinstance(now, Tensor) and now.data_ptr() == was.data_ptr())
            return same and _kind(now) == self.detail
        if now is was:
            return len(now) == self.detail
        return now.__class__ is was.__class__ and isinstance(was, _SCALARS) and (now == was or (now != now and was != was))

    def words(self) -> str:
        now, was = self.read(), self.value
        if all(isinstance(value, _SCALARS) or value is _GONE for value in (now, was)):
            return f"{self.label} ({was!r} to {now!r})"
        if isinstance(now, Tensor) and isinstance(was, Tensor):
            return f"{self.label} ({'another tensor' if _kind(now) == self.detail else 'another shape or dtype'})"
        return f"{self.label} ({'other items' if now is was else 'another ' + type(now).__name__})"


class Code(Guard):
    """A function that may be called: its code and defaults can be exchanged in place, as autoreload does."""

    __slots__ = ("function",)

    def __init__(self, function: types.FunctionType) -> None:
        super().__init__(f"{function.__qualname__}.__code__", functools.partial(getattr, function, "__code__"), function.__code__,
                         (function.__defaults__, function.__kwdefaults__))
        self.function = function

    def holds(self) -> bool:
        function, (defaults, named) = self.function, self.detail
        return function.__code__ is self.value and function.__defaults__ is defaults and function.__kwdefaults__ is named

    def words(self) -> str:
        return f"{self.function.__qualname__} ({'other code' if self.function.__code__ is not self.value else 'other defaults'})"

    def state(self) -> tuple[Any, ...]:
        """What the core compares (Replays.add)."""
        return (self.function, self.value, *self.detail)


def _kind(tensor: Tensor) -> tuple:
    return tensor.shape, tensor.dtype


def missed(guards: list[Guard]) -> Guard | None:
    """The first guard that does not hold."""
    for guard in guards:
        if not guard.holds():
            return guard
    return None


def of_call(function: types.FunctionType, args: tuple, kwargs: dict) -> list[Guard]:
    """The guards of one call: what `function`, and the user's functions and cells it can reach, read from outside."""
    search = _Search()
    search.code(function)
    for label, value in inspect.signature(function).bind_partial(*args, **kwargs).arguments.items():
        search.argument(label, value)
    return search.run()


class _Search:
    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self.seen: set[tuple[int, Any]] = set()  # what was looked at: (id of an object, a name or a purpose)
        self.names: set[str] = set()  # attributes some code takes
        self.objects: list[tuple[str, Any]] = []
        self.kept: list[Any] = []  # ids in `seen` are of living objects

    def run(self) -> list[Guard]:
        size = -1
        while size != (size := len(self.seen)):  # new code has new names, new objects have new code
            for label, found in list(self.objects):
                for name in sorted(self.names):
                    self.attribute(label, found, name)
        return self.guards

    def fresh(self, value: Any, purpose: Any) -> bool:
        key = id(value), purpose
        if key in self.seen:
            return False
        self.seen.add(key)
        self.kept.append(value)
        return True

    def argument(self, label: str, value: Any) -> None:
        # Tensors and plain values of the arguments are part of the kind of call; objects are looked into.
        if isinstance(value, (tuple, list, dict)):
            if self.fresh(value, "argument"):
                for key, item in _items(value):
                    self.argument(f"{label}[{key!r}]", item)
        elif not isinstance(value, (Tensor, _core.Tensor, *_SCALARS)):
            self.reach(label, value)

    def code(self, function: Any) -> None:
        function = inspect.unwrap(function, stop=self.exchangeable)
        if not isinstance(function, types.FunctionType) or not self.fresh(function, "code"):
            return
        self.exchangeable(function)
        loaded, attributes = _reads(function.__code__)
        self.names |= attributes
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name in loaded:
                self.guard(name, functools.partial(_contents, cell), cell, "cell")
        for name in sorted(loaded):
            value = function.__globals__.get(name, _GONE)
            if not (isinstance(value, types.ModuleType) or _of_library(function)) or not _of_library(value):
                self.guard(name, functools.partial(function.__globals__.get, name, _GONE), function.__globals__, name)

    def exchangeable(self, function: Any) -> bool:
        # A function, or a wrapper around one, whose code and defaults may become others in place.
        user = isinstance(function, types.FunctionType) and function.__globals__.get("__name__", "").partition(".")[0] not in _LIBRARIES
        if user and self.fresh(function, "exchanged"):
            self.guards.append(Code(function))
            for key, value in enumerate(function.__defaults__ or ()):
                if isinstance(value, (list, dict, Tensor)):
                    self.guard(f"{function.__qualname__}.__defaults__[{key}]", functools.partial(_item, function.__defaults__, key),
                               function.__defaults__, ("item", key))
                else:
                    self.reach(f"{function.__qualname__}.__defaults__[{key}]", value)
            for name in function.__kwdefaults__ or ():
                self.guard(f"{function.__qualname__}.__kwdefaults__[{name!r}]", functools.partial(_item, function.__kwdefaults__, name),
                           function.__kwdefaults__, ("item", name))
        return False

    def guard(self, label: str, read: Callable[[], Any], owner: Any, purpose: Any) -> None:
        if not self.fresh(owner, purpose):
            return
        value = read()
        if value is _GONE:
            return
        detail = _kind(value) if isinstance(value, Tensor) else len(value) if isinstance(value, (list, dict)) else None
        self.guards.append(Guard(label, read, value, detail))
        if not _of_library(value):
            self.reach(label, value)

    def reach(self, label: str, value: Any) -> None:
        if isinstance(value, (Tensor, _core.Tensor, *_SCALARS)) or not self.fresh(value, "reached"):
            return
        if isinstance(value, (tuple, list, dict)):
            if len(value) <= _ITEMS:
                for key, _ in _items(value):
                    self.guard(f"{label}[{key!r}]", functools.partial(_item, value, key), value, ("item", key))
        elif isinstance(value, types.MethodType):
            self.reach(label, value.__self__)
            self.code_of_user(value.__func__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.reach(label, part)
        elif isinstance(value, types.FunctionType):
            self.code_of_user(value)
        elif isinstance(value, Cell) or not _of_library(value):
            self.objects.append((label, value))
            if isinstance(value, type):
                self.code_of_user(inspect.getattr_static(value, "__init__"))
            elif not isinstance(value, types.ModuleType):
                self.code_of_user(inspect.getattr_static(value, "__call__", None))
            if isinstance(value, Cell):
                construct = inspect.getattr_static(value, "construct", None)
                self.code(construct.__func__ if isinstance(construct, types.MethodType) else construct)
                for table in ("_cells", "_params_list"):  # containers of cells go through them without naming them
                    self.table(label, value.__dict__.get(table) or {})

    def table(self, label: str, table: dict[str, Any]) -> None:
        if self.fresh(table, "length"):
            self.guards.append(Guard(f"len({label})", functools.partial(len, table), len(table), None))
        for name in table:
            self.guard(f"{label}.{name}", functools.partial(table.get, name, _GONE), table, name)

    def code_of_user(self, function: Any) -> None:
        inner = inspect.unwrap(function)
        if isinstance(inner, types.FunctionType) and not _of_library(inner):
            self.code(function)

    def attribute(self, label: str, found: Any, name: str) -> None:
        if not self.fresh(found, ("attribute", name)):
            return
        label = f"{label}.{name}"
        own = getattr(found, "__dict__", {}) if not isinstance(found, type) else {}
        tables = [own, *(own[table] for table in _CELL_TABLES if isinstance(own.get(table), dict))] if isinstance(found, Cell) else [own]
        for table in tables:
            if name in table:
                self.guard(label, functools.partial(_from_tables, tables, name), found, ("own", name))
                return
        mro = (found if isinstance(found, type) else type(found)).__mro__
        classes = [vars(kind) for kind in mro]
        for kind in mro:
            if name not in vars(kind) or (_module(kind) in _LIBRARIES):
                continue
            value = vars(kind)[name]
            if isinstance(value, types.MemberDescriptorType):
                self.guard(label, functools.partial(getattr, found, name, _GONE), found, ("own", name))
            elif isinstance(value, (property, staticmethod, classmethod, types.FunctionType)):
                self.guard(label, functools.partial(_from_tables, [*tables, *classes], name), found, ("own", name))
                self.code_of_user(value.fget if isinstance(value, property) else getattr(value, "__func__", value))
                continue  # super() can reach those of the classes further up
            else:  # a constant of the class, which one of the object can come to hide
                self.guard(label, functools.partial(_from_tables, [*tables, *classes], name), found, ("own", name))
            return


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else iter(enumerate(value))


def _item(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (IndexError, KeyError):
        return _GONE


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _GONE


def _from_tables(tables: list[Any], name: str) -> Any:
    for table in tables:
        if name in table:
            return table[name]
    return _GONE


def _module(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or "").partition(".")[0]


def _of_library(value: Any) -> bool:
    # Parts of frameworks and of the standard library, which do not change. Values and containers are no parts.
    if isinstance(value, (Tensor, _core.Tensor, Cell, tuple, list, dict, types.MethodType, functools.partial, *_SCALARS)):
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _LIBRARIES
    if isinstance(value, (types.FunctionType, type)):
        return _module(inspect.unwrap(value) if isinstance(value, types.FunctionType) else value) in _LIBRARIES
    return isinstance(value, (types.BuiltinFunctionType, property))


@functools.lru_cache(maxsize=4096)
def _reads(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    # The globals and closure cells a code object and the functions written inside it load, and the attributes they take.
    loaded, attributes = set[str](), set[str]()
    steps = list(dis.get_instructions(code))
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD") and following.argval in _COLLECTS:
            continue
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            loaded.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(step.argval)
        elif step.opname in ("IMPORT_FROM", "IMPORT_NAME"):
            loaded.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, taken = _reads(inner)
            loaded |= more
            attributes |= taken
    return frozenset(loaded), frozenset(attributes)
