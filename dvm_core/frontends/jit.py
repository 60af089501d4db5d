"""@dvm.jit: a function whose tensor ops are captured, and nothing else about it changes."""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..errors import ArgumentError, UnsupportedError, convert
from . import capture, observed, reloadable, sampling

# "PIK" (Python inline kernel) is MindSpore's word for what "stream" is here.
MODES = {"stream": "stream", "PIK": "stream", "graph": "graph"}


class CapturedFunction:
    """What is known about a function decorated with @dvm.jit."""

    def __init__(self, function: Callable[..., Any], mode: str, donate: tuple[int, ...] = ()) -> None:
        self.function = function  # the user's own function: hot reload exchanges its code
        self.mode = mode
        self.name = function.__qualname__
        self.key = f"{function.__module__}:{function.__qualname__}"  # what a reload knows it by
        self.at: tuple[str, int] | None = None  # file and line, where that is not those of the function
        self.traces: Any = None  # of graph mode with MindSpore, made when first needed
        self.donate = donate  # numbers of the arguments that are given away
        self.replays = _core.Replays(donate, self.key)  # of graph mode with arrays,
        self.replayed_version = 0  # made with the code of this version (reloadable.version)

    @property
    def place(self) -> tuple[str, int]:
        """File and line that something is said of it at."""
        return self.at or (self.function.__code__.co_filename, self.function.__code__.co_firstlineno)


def jit(function: Any = None, *, mode: str = "stream", donate: Sequence[int] = ()) -> Any:
    """Captures a function, a MindSpore cell or a cell class: its tensor ops run on this package's virtual machine.

    mode "stream" (also called "PIK"): the Python body runs on every call and decides what happens. "graph": it runs once per kind of
    arguments (shapes, dtypes, plain values) and is replayed without Python, until something changes that its code reads from globals,
    closures and attributes (numbers, strings, which tensors; not what is read through getattr, special methods, items of NumPy arrays
    or files: see docs/mindspore.md). Use it on the loss function, or on the part of a model whose shapes change; everything else stays
    as it is. donate, in graph mode: numbers of `dvm.tensor` arguments that are given away. They cannot be read after the call, and results
    may be written over their memory, as in p, m, v = adam(p, m, v, g). Raises ArgumentError for another mode or something that is no
    function.
    """
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r}: there are {', '.join(map(repr, MODES))}")
    if function is None:
        return lambda decorated: jit(decorated, mode=mode, donate=donate)
    if inspect.isclass(function) or (not inspect.isroutine(function) and hasattr(function, "construct")):
        if donate:
            raise ArgumentError("donate is for functions of dvm.tensor arguments, and this is a cell")
        return _jit_cell(function, mode)
    if inspect.ismethod(function):
        return jit(function.__func__, mode=mode, donate=donate).__get__(function.__self__)
    if not inspect.isfunction(function):
        raise ArgumentError(f"@dvm.jit takes a function, a method or a cell, not {type(function).__name__}")
    if not isinstance(donate, Sequence) or any(type(n) is not int or n < 0 for n in donate) or len(set(donate)) < len(donate):
        raise ArgumentError(f"donate={donate!r}: it takes the numbers of arguments, from 0, each once")
    positional = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    count = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in positional)
    if inspect.Parameter.VAR_POSITIONAL not in positional and any(number >= count for number in donate):
        raise ArgumentError(f"donate={tuple(donate)!r}: {function.__qualname__} takes {count} arguments, numbered from 0")
    if donate and MODES[mode] != "graph":
        raise ArgumentError('donate is for mode "graph": in the others Python may read the arguments after the call')
    return _wrap(function, MODES[mode], tuple(donate))


def _jit_cell(cell: Any, mode: str) -> Any:
    # A cell class, or one cell: its construct is captured.
    kind: Any = cell if inspect.isclass(cell) else type(cell)
    if not hasattr(kind, "construct"):
        raise ArgumentError(f"@dvm.jit takes a function, a method or a cell; {kind.__name__} has no construct")
    construct = jit(kind.construct, mode=mode)
    cell.construct = construct if cell is kind else construct.__get__(cell)
    return cell


def _wrap(function: Callable[..., Any], mode: str, donate: tuple[int, ...]) -> Callable[..., Any]:
    info = CapturedFunction(function, mode, donate)
    reloadable.register(info)
    observed.of(info.name)
    active, going_on = capture.active, capture.going_on
    replay = info.replays.run if mode == "graph" else None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if replay is not None and not kwargs:
            try:
                result = replay(args)
            except _core.Error as error:
                raise convert(error) from None
            if result is not None:
                return result
        if active() is not None and going_on(sys._getframe()):  # part of that capture
            return function(*args, **kwargs)
        return _front_end(args, kwargs)(info, args, kwargs)

    made: Any = call if replay is None else functools.update_wrapper(_core.ReplayedFunction(info.replays, call), function)
    made.__dvm__ = info
    return sampling.watch(info, made) if sampling.on else made


Call = Callable[[CapturedFunction, tuple, dict], Any]


def _front_end(args: tuple, kwargs: dict) -> Call:
    """Which front end a call belongs to, by its arguments; without tensor arguments, by what the program has imported."""
    kinds = _kinds(args, kwargs)
    if "array" in kinds and len(kinds) > 1:
        raise ArgumentError(f"the arguments of a captured function mix dvm.tensor and {', '.join(sorted(kinds - {'array'}))} tensors")
    if "torch" in kinds:
        raise UnsupportedError("@dvm.jit takes MindSpore tensors and dvm.tensor arrays, no PyTorch tensors: pass dvm.tensor(x)")
    if "array" in kinds or ("mindspore" not in kinds and "mindspore" not in sys.modules):
        return _array
    return _mindspore


def _kinds(args: tuple, kwargs: dict) -> set[str]:
    found: set[str] = set()
    stack = [*args, *kwargs.values()]
    seen: set[int] = set()  # containers; one may hold itself
    for value in stack:
        if isinstance(value, (tuple, list, dict)):
            if id(value) not in seen:
                seen.add(id(value))
                stack.extend(value.values() if isinstance(value, dict) else value)
        else:
            kind = _kind(type(value))  # type: ignore[arg-type]
            if kind:
                found.add(kind)
    return found


@functools.lru_cache(maxsize=4096)
def _kind(kind: type) -> str:
    # By the module of a tensor's or cell's class, so that no framework is imported to ask.
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        if package in ("mindspore", "torch"):
            return package
        if base.__module__ == "dvm_core.frontends.array":
            return "array"
    return ""


def _mindspore(info: CapturedFunction, args: tuple, kwargs: dict) -> Any:
    from . import mindspore_call

    globals()["_mindspore"] = mindspore_call.call
    return mindspore_call.call(info, args, kwargs)


def _array(info: CapturedFunction, args: tuple, kwargs: dict) -> Any:
    from . import array_call

    globals()["_array"] = array_call.call
    return array_call.call(info, args, kwargs)
