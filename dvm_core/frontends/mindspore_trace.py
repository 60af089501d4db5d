"""Graph mode: a captured function is traced once per kind of arguments and then replayed without its Python body.

A trace holds for the shapes, dtypes and plain values of the arguments, for whether gradients are wanted, and for the code: a hot reload
starts anew. Tensors the function finds elsewhere (weights, constants) are read where they are at every call. What a trace cannot hold
(a value read in Python, an op MindSpore runs, a tensor changed in place, random numbers) makes the function run in stream mode, with a
notice that says why.
"""
from __future__ import annotations

import collections
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from mindspore import Tensor

from . import capture as captures
from . import mindspore_compat as compat
from . import mindspore_grad, reloadable
from .mindspore import MsCapture
from .mindspore_grad import Backward
from .notices import notice
from .tape import Input

_TRACES = 64  # kept for one function; the least recently used goes first
_TOLD = 8  # retraces of one function that are told


class _Value(NamedTuple):
    """In the pattern of a result: the tensor of a value."""

    value: int


class _Argument(NamedTuple):
    """In the pattern of a result: an argument handed through."""

    number: int


class Trace:
    """What one recording did, ready to be done again."""

    def __init__(self, capture: MsCapture, arguments: dict[int, int], result: Any, backward: Backward | None) -> None:
        self.backward = backward
        self.template = capture.steps()
        self.imms = capture.imms
        self.calls: list[Any] = []  # by value id: arguments of Graph.op, or (argument number or tensor, Input)
        for value, entry in enumerate(capture.entries):
            if isinstance(entry, Input):
                address, tensor = capture.origins[value]
                self.calls.append((arguments.get(address, tensor), entry))
            else:
                self.calls.append((*entry[:5], capture.imms.get(value, ()), entry[6]))
        self.result = _pattern(result, arguments, capture.own)

    def run(self, name: str, step: int, tensors: list[Tensor]) -> Any:
        """Records and runs the trace on other arguments of the same kind."""
        capture = MsCapture(name, step, self.backward is not None)
        capture.mode = "graph"
        capture.imms = self.imms
        capture.entries = self.template
        captures.push(capture)
        try:
            compat.synchronize()
            record, graph = capture.graph.op, capture.graph
            for value, call in enumerate(self.calls):
                if len(call) == 2:
                    source, entry = call
                    tensor = tensors[source] if source.__class__ is int else source
                    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
                    address = tensor.data_ptr()
                    graph.input(address, entry.shape, entry.dtype, strides, tensor, "parameter" if entry.needs_grad else "")
                    capture.inputs[address, entry.shape, entry.dtype, strides] = value
                    if entry.needs_grad:
                        capture.leaves[value] = tensor
                else:
                    record(*call)
            made: dict[int, Tensor] = {}
            result = _filled(self.result, tensors, capture, made)
            capture.flush(self.backward.plan.saved if self.backward else ())
        finally:
            captures.pop(capture)
        return mindspore_grad.tie(capture, self.backward, result, made)


def _pattern(value: Any, arguments: dict[int, int], own: dict[int, int]) -> Any:
    if isinstance(value, Tensor):
        address = value.data_ptr()
        if address in own:
            return _Value(own[address])
        return _Argument(arguments[address]) if address in arguments else value
    if isinstance(value, (tuple, list)):
        items = [_pattern(item, arguments, own) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _pattern(item, arguments, own) for key, item in value.items()}
    return value


def _values(pattern: Any) -> Iterator[int]:
    if isinstance(pattern, _Value):
        yield pattern.value
    elif isinstance(pattern, (tuple, list)) and not isinstance(pattern, _Argument):
        for item in pattern:
            yield from _values(item)
    elif isinstance(pattern, dict):
        yield from _values(list(pattern.values()))


def _filled(pattern: Any, tensors: list[Tensor], capture: MsCapture, made: dict[int, Tensor]) -> Any:
    if isinstance(pattern, _Value):
        if pattern.value not in made:
            made[pattern.value] = capture.tensor(pattern.value)
        return made[pattern.value]
    if isinstance(pattern, _Argument):
        return tensors[pattern.number]
    if isinstance(pattern, (tuple, list)):
        items = [_filled(item, tensors, capture, made) for item in pattern]
        return type(pattern)(*items) if hasattr(pattern, "_fields") else type(pattern)(items)
    if isinstance(pattern, dict):
        return {key: _filled(item, tensors, capture, made) for key, item in pattern.items()}
    return pattern


class Traces:
    """The traces of one captured function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = reloadable.version
        self.found: collections.OrderedDict[Hashable, Trace | None] = collections.OrderedDict()  # None: stream mode
        self.misses: list[str] = []  # why a new trace was made, newest last

    def call(self, info: Any, step: int, check: reloadable.Check | None, inputs: Hashable, args: tuple, kwargs: dict) -> Any:
        """Calls the function: by its trace, or by tracing it."""
        tensors: list[Tensor] = []
        _flatten((args, kwargs), tensors)
        addresses = [tensor.data_ptr() for tensor in tensors]
        # Which arguments are the same tensor, and which want a gradient, is part of the kind.
        shared = tuple(addresses.index(address) for address in addresses)
        wanted = compat.grad_enabled()
        key = (inputs, shared, wanted and tuple(compat.needs_grad(tensor) for tensor in tensors))
        if self.version != reloadable.version:
            self.version = reloadable.version
            self.found.clear()
            self._miss(info, "the code")
        if key in self.found:
            self.found.move_to_end(key)
            trace = self.found[key]
            if trace is not None:
                return trace.run(self.name, step, tensors)
            return mindspore_grad.run(info.function, self.name, step, check, args, kwargs)
        if self.found:
            self._miss(info, _difference(next(reversed(self.found)), key))
        return self._trace(info, step, check, key, args, kwargs, {address: i for i, address in reversed(list(enumerate(addresses)))})

    def _trace(self, info: Any, step: int, check: reloadable.Check | None, key: Hashable, args: tuple, kwargs: dict,
               arguments: dict[int, int]) -> Any:
        found: list[Trace | None] = [None]

        def recorded(capture: MsCapture, result: Any, backward: Backward | None) -> None:
            outside = {*_values(_pattern(result, arguments, capture.own))}
            if any(value not in outside for value in capture.living()):
                capture.untraceable = capture.untraceable or "it keeps a tensor beyond the call"
            if capture.untraceable:
                notice(f"{self.name} runs in stream mode: {capture.untraceable}", path=info.function.__code__.co_filename,
                       line=info.function.__code__.co_firstlineno, category="trace", once=("trace", self.name, capture.untraceable))
            else:
                found[0] = Trace(capture, arguments, result, backward)

        result = mindspore_grad.run(info.function, self.name, step, check, args, kwargs, recorded)
        self.found[key] = found[0]
        if len(self.found) > _TRACES:
            self.found.popitem(last=False)
        return result

    def _miss(self, info: Any, what: str) -> None:
        self.misses.append(what)
        code = info.function.__code__
        if len(self.misses) <= _TOLD:
            more = "; shapes that keep changing suit mode \"stream\"" if len(self.misses) == _TOLD else ""
            notice(f"{self.name} is traced again: {what} changed{more}", path=code.co_filename, line=code.co_firstlineno, category="trace")


def _flatten(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _flatten(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _flatten(item, found)


def _difference(old: Any, new: Any) -> str:
    # The first guard that differs, in words.
    ((old_args, old_kwargs), *old_rest), ((new_args, new_kwargs), *new_rest) = old, new
    for i, (a, b) in enumerate(zip(old_args[1:], new_args[1:], strict=False)):
        if a != b:
            return f"argument {i} ({reloadable.words(a)} to {reloadable.words(b)})"
    if len(old_args) != len(new_args):
        return f"the number of arguments ({len(old_args) - 1} to {len(new_args) - 1})"
    if old_kwargs != new_kwargs:
        return "a keyword argument"
    return "which arguments are one tensor" if old_rest[0] != new_rest[0] else "whether gradients are wanted"

