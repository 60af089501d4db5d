"""`@dvm.kernel`: a function that builds a kernel, turned into a callable that runs it.

Two published forms are understood, told apart by the function's parameters. With more than one, `k` is followed by one placeholder per
call argument and loads name their argument: `k.load(x, "float32")`. With `k` alone, the order of declarations is the order of arguments:
`k.load([-1, 64], "float32")`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from dvm_wire import syntax

from .. import _core
from ..errors import ArgumentError
from . import capture, reloadable
from .array import numpy_of
from .builder_kernel import Kernel
from .builder_lower import Lowering
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail, numbers

__all__ = ["IntArrayRef", "Kernel", "KernelFunction", "NDObject", "PyKernel", "ScalarRef", "kernel"]

PyKernel = Kernel


class _Indexed(Kernel):
    """Standalone form: loads, scalars and lists name the argument they come from. A load without a shape takes any rank and shape."""

    def __init__(self, ker_type: str, name: str, arguments: int) -> None:
        self.arguments = arguments
        self.bindings: list[tuple[int, Any]] = []  # (argument, what it is bound to)
        super().__init__(ker_type, name=name)

    def load(self, index: int, dtype: Any, shape: Any = ()) -> NDObject:  # type: ignore[override]
        """Argument `index` as a tensor."""
        return self._bound(index, super()._load("Load", numbers(shape), dtype))

    def view_load(self, index: int, shape: Any, stride: Any, *rest: Any) -> NDObject:  # type: ignore[override]
        """Argument `index` read with strides."""
        return self._bound(index, super().view_load(shape, stride, *rest))

    def scalar(self, index: int, dtype: Any = None) -> ScalarRef:  # type: ignore[override]
        """Argument `index` as a number."""
        return self._bound(index, ScalarRef(dtype=dtype))

    def int_array(self, index: int) -> IntArrayRef:  # type: ignore[override]
        """Argument `index` as a list of dimensions."""
        return self._bound(index, IntArrayRef())

    dims = int_array

    def _bound(self, index: Any, target: Any) -> Any:
        if not isinstance(index, int) or not 0 <= index < self.arguments:
            raise fail(
                ArgumentError,
                f"argument {index!r} of {self.arguments}: pass the builder's own parameter, as in k.load(x, ...)",
                _core.user_place(),
            )
        self.bindings.append((index, target))
        if isinstance(target, NDObject) and self._any_shape(target.attrs["shape"]):
            target.dims = None
        return target

    def _any_shape(self, declared: Any) -> bool:
        return list(declared) in ([], [-1])


class _Declared(Kernel):
    """The form with `k` alone: the n-th load, scalar or list declared is the n-th argument."""

    def __init__(self, ker_type: str, name: str, arguments: int) -> None:
        self.bindings: list[tuple[int, Any]] = []
        super().__init__(ker_type, name=name)

    @property
    def arguments(self) -> int:
        return len(self.bindings)

    def _load(self, op: str, shape: Any, dtype: Any, **attrs: Any) -> NDObject:
        return self._bound(super()._load(op, shape, dtype, **attrs))

    def scalar(self, dtype: Any = None) -> ScalarRef:
        return self._bound(super().scalar(dtype))

    def int_array(self) -> IntArrayRef:
        return self._bound(super().int_array())

    def set_load_bind(self, load: NDObject, store: NDObject) -> None:
        super().set_load_bind(load, store)
        self.bindings = list(enumerate(target for _, target in self.bindings if target is not load))  # no argument any more

    def _bound(self, target: Any) -> Any:
        self.bindings.append((len(self.bindings), target))
        return target


class KernelFunction:
    """A built kernel. Call it with arrays (and numbers, lists) to get its outputs: one array, or a list of them."""

    def __init__(self, function: Callable[..., Any], ktype: str, dynamic: bool) -> None:
        functools.update_wrapper(self, function)
        self.ktype, self.dynamic = ktype, dynamic
        self.lock = threading.RLock()  # a kernel object holds its arguments and results: one call at a time
        self._build()

    def _build(self) -> None:
        function = self.__wrapped__  # type: ignore[attr-defined]
        parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not parameters:
            raise ArgumentError(
                f"{function.__qualname__} must take the kernel as its first parameter: def {function.__name__}(k, ...)",
                file=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
            )
        form = _Indexed if len(parameters) > 1 else _Declared
        kobj = form(self.ktype, function.__qualname__, len(parameters) - 1)
        returned = function(kobj, *range(len(parameters) - 1)) if form is _Indexed else function(kobj)
        stores = [item for item in (returned if isinstance(returned, (tuple, list)) else [returned]) if item is not None]
        if not all(isinstance(item, NDObject) and item in kobj.stores for item in stores):
            raise ArgumentError(
                f"{function.__qualname__} must return what k.store(...) gives, got {returned!r}",
                file=function.__code__.co_filename,
                line=function.__code__.co_firstlineno,
            )
        self.returned = stores or kobj.stores
        self.built = (function.__code__, reloadable.version)
        self.kobj = kobj
        _name_values(function, kobj.nodes)
        self.fixed = all(isinstance(target, NDObject) and target.op == "Load" and target.dims is not None for _, target in kobj.bindings)
        if self.fixed:
            _check_static(kobj)

    def __repr__(self) -> str:
        return f"<kernel {self.kobj.name}: {self.kobj.arguments} arguments, {len(self.returned)} results>"

    def __call__(self, *args: Any) -> Any:
        with self.lock:
            self._call(args, ())
            results = [self.kobj.output(store) for store in self.returned]
        return results[0] if len(results) == 1 else results

    def run(self, *args: Any) -> None:
        """Inputs, then arrays for the outputs, which are written in place."""
        inputs = len(args) - len(self.returned)
        if inputs != self.kobj.arguments:
            raise ArgumentError(
                f"{self.kobj.name}.run expects {self.kobj.arguments} inputs and {len(self.returned)} outputs, got {len(args)} arguments"
            )
        with self.lock:
            self._call(args[:inputs], args[inputs:])

    def dump(self) -> str:
        """The graph as text, see `Kernel.dump`."""
        return self.kobj.dump()

    def das(self) -> str:
        """The tile code of the last call, see `Kernel.das`."""
        return self.kobj.das()

    def program(self) -> Any:
        """The core program of the last call, None before the first."""
        return self.kobj.program()

    def _call(self, args: tuple[Any, ...], targets: tuple[np.ndarray, ...]) -> None:
        if capture.active() is not None:  # part of a captured call: that one counts
            self._run(args, targets, None)
            return
        key = tuple(("tensor", str(a.dtype), tuple(a.shape)) if hasattr(a, "shape") else (type(a).__name__,) for a in args)
        reloadable.call(self.kobj.name, key, lambda step, check: self._run(args, targets, check))

    def _run(self, args: tuple[Any, ...], targets: tuple[np.ndarray, ...], check: reloadable.Check | None) -> None:
        if self.built != (self.__wrapped__.__code__, reloadable.version):  # type: ignore[attr-defined]
            self._build()  # hot reload has put new code in force: here, or in something the body uses
        kobj = self.kobj
        if len(args) != kobj.arguments:
            raise ArgumentError(f"{kobj.name}: DVM kernel call expects {kobj.arguments} arguments, got {len(args)}")
        arrays: dict[int, np.ndarray] = {}
        for index, target in kobj.bindings:
            if isinstance(target, NDObject):
                arrays.setdefault(index, numpy_of(args[index]))
                kobj.input(target, arrays[index])
            else:
                target.update(args[index])
        kobj._targets = {store.id: array for store, array in zip(self.returned, targets, strict=False)}
        kobj.run(None if check is None else lambda: check(tuple(("tensor", item.dtype_.name, item.dims) for item in self.returned)))


def kernel(function: Callable[..., Any] | None = None, *, ktype: str = "split", dynamic: bool = True, dyn_shape: bool | None = None) -> Any:
    """Builds the kernel a function describes, at once; calls run it, with any rank and shape its loads allow.

    ktype, dynamic, dyn_shape are accepted as in DVM: code is made for the real shapes at each call, so they change nothing. Raises
    DtypeError, ArgumentError or UnsupportedError, naming the line, for what the body does wrong.
    """
    if function is not None:
        return KernelFunction(function, ktype, dynamic)
    return lambda inner: KernelFunction(inner, ktype, dynamic if dyn_shape is None else dyn_shape)


def _check_static(kobj: Kernel) -> None:
    # All shapes are known: record once, so that a shape error shows where the kernel is written and not when it is called.
    nodes = kobj._reached()
    loads = [node for node in nodes if node.op == "Load"]
    arrays = {node.id: np.broadcast_to(np.zeros((), node.dtype_.numpy), node.dims or ()) for node in loads}
    Lowering(kobj.name, arrays, dry=True).run(nodes)


def _name_values(function: Callable[..., Any], nodes: Iterable[NDObject]) -> None:
    """Gives the last node of every assignment the name it is assigned to, so that the debugger can speak of `h`."""
    try:
        source, first = inspect.getsourcelines(function)
        tree = syntax.parse(textwrap.dedent("".join(source)))
    except (OSError, SyntaxError):
        return
    names = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            lines = range(statement.lineno + first - 1, (statement.end_lineno or statement.lineno) + first)
            names.update(dict.fromkeys(lines, (statement.lineno, statement.targets[0].id)))
    last: dict[tuple[int, str], NDObject] = {}
    for node in nodes:
        found = names.get(_core.place_info(node.place)[1]) if node.place else None
        if found:
            last[found] = node
    for (_, name), node in last.items():
        node.name = name
