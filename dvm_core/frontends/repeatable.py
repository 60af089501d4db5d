"""Whether a function can be called once more without anybody noticing, by its code. When in doubt: no."""
from __future__ import annotations

import builtins
import dis
import functools
import inspect
import re
import types
from collections.abc import Iterable
from typing import Any

_PURE = frozenset("abs all any bool dict divmod enumerate float frozenset getattr hasattr int isinstance issubclass len list max min pow "
                  "range repr reversed round set slice sorted str sum super tuple type zip ValueError TypeError NotImplementedError "
                  "RuntimeError".split())
_CHANGES = frozenset("append extend insert pop popitem remove clear update setdefault write writelines send put next set_data assign_value "
                     "set_train acquire release seed manual_seed".split())
# By name, since whether they run may depend on the call: what draws random numbers, writes tensors or keeps statistics.
_LEAVES = re.compile(r"dropout|rand|bernoulli|multinomial|uniform|(^|_)normal$|poisson|shuffle|^assign|^scatter|^inplace|batchnorm|"
                     r"instancenorm", re.I)
_KNOWN = ("mindspore", "numpy", "math", "dvm_core", "dvm", "operator", "functools", "itertools", "typing")
# Of the framework's and Python's own classes.
_DESCRIPTORS = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
                types.MemberDescriptorType, types.MethodWrapperType)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), slice, range)
_HOLD = (tuple, list, dict, frozenset)


def why_not(function: types.FunctionType, args: tuple, kwargs: dict) -> str:
    """What in the function, or in the user's code it can reach, may leave a trace; "" if nothing does."""
    search = _Search()
    for value in (*args, *kwargs.values()):
        search.value(value, "an argument")
    search.fresh(function)
    search.function(function)
    return search.run()


class _Search:
    def __init__(self) -> None:
        self.why = ""
        self.seen: set[int] = set()
        self.kept: list[Any] = []
        self.names: set[str] = set()  # attributes that some code takes
        self.objects: list[Any] = []  # of the user's own classes

    def run(self) -> str:
        size = -1
        while size != (size := len(self.seen)) and not self.why:
            for found in list(self.objects):
                for name in sorted(self.names | {"construct", "__call__"}):
                    self.value(inspect.getattr_static(type(found), name, None), name)
                    self.value(getattr(found, "__dict__", {}).get(name), name)
                self.each(getattr(found, "_cells", {}).values(), "a cell")
                if any(held for name, held in getattr(found, "__dict__", {}).items() if "hook" in name and isinstance(held, dict)):
                    self.stop(f"it uses a {type(found).__name__} with hooks")
        return self.why

    def stop(self, why: str) -> None:
        self.why = self.why or why

    def fresh(self, value: Any) -> bool:
        if id(value) in self.seen:
            return False
        self.seen.add(id(value))
        self.kept.append(value)
        return True

    def value(self, value: Any, label: str) -> None:
        if isinstance(value, (*_PLAIN, *_DESCRIPTORS)) or not self.fresh(value):
            return
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, _HOLD):
            self.each((*value, *value.values()) if isinstance(value, dict) else value, label)
        elif isinstance(value, functools.partial):
            self.each((value.func, value.args, value.keywords), label)
        elif isinstance(value, types.ModuleType):
            if not _known(value.__name__):
                self.stop(f"it uses the module {value.__name__}")
        elif isinstance(value, types.FunctionType):
            if not _known(value.__globals__.get("__name__", "")):  # of a wrapper, __module__ is that of the wrapped
                self.function(value)
            elif hasattr(value, "__wrapped__"):
                self.value(value.__wrapped__, label)
        elif isinstance(value, types.MethodType):
            self.value(value.__func__, label)
            self.value(value.__self__, label)
        elif isinstance(value, property):
            self.value(value.fget, label)
        elif isinstance(value, type):
            if not _known(value.__module__):
                self.stop(f"it makes a {value.__name__}")
        elif any(_known(kind.__module__) for kind in type(value).__mro__ if kind.__module__ != "builtins"):
            self.objects.append(value)  # a tensor or a cell, perhaps of a class of the user's
            if _LEAVES.search(type(value).__name__):
                self.stop(f"it uses a {type(value).__name__}")
        elif not isinstance(value, types.BuiltinFunctionType) or not _known(value.__module__ or ""):
            self.stop(f"it uses {label}, a {type(value).__name__}, which may remember something")

    def each(self, values: Iterable[Any], label: str) -> None:
        for value in values:
            self.value(value, label)

    def function(self, function: types.FunctionType) -> None:
        self.each((function.__defaults__, function.__kwdefaults__), "a default")
        for label, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.value(cell.cell_contents, label)
            except ValueError:  # not set yet
                self.stop(f"it reads {label} before it is set")
        self.code(function.__code__, function.__globals__)

    def code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR) and code.co_name != "<genexpr>":
            return self.stop("it is a generator")
        for step in dis.get_instructions(code):
            name = step.argval if isinstance(step.argval, str) else ""
            if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
                self.stop(f"it sets the attribute {name}")
            elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (step.opname.endswith("E_DEREF") and name in code.co_freevars):
                self.stop(f"it sets {name}, which is not its own")
            elif step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"):
                self.stop("it writes items")
            elif step.opname in ("IMPORT_NAME", "IMPORT_FROM"):
                self.stop("it imports")
            elif step.opname.startswith("INPLACE_") or (step.opname == "BINARY_OP" and step.argrepr.endswith("=")):
                self.stop(f"it changes something with {step.argrepr or 'an operator'}")
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if name in _CHANGES or _LEAVES.search(name) or (name.endswith("_") and not name.endswith("__")):
                    self.stop(f"it takes .{name}")
                self.names.add(name)
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.named(name, namespace)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant, namespace)
        return None

    def named(self, name: str, namespace: dict[str, Any]) -> None:
        if name in namespace:
            if _LEAVES.search(name):
                self.stop(f"it uses {name}")
            self.value(namespace[name], name)
        elif name in vars(builtins) and name not in _PURE:
            self.stop(f"it calls {name}()")


def _known(module: str) -> bool:
    return (module or "").partition(".")[0] in _KNOWN and "random" not in (module or "").split(".")
