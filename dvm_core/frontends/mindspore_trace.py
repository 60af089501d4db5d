"""Graph mode: a captured function is traced once per kind of arguments and then replayed without its Python body.

A trace holds for the shapes, dtypes and plain values of the arguments, for whether gradients are wanted, for what the code reads from
globals, closures and attributes (see guards), and for the code: a hot reload starts anew. The values of tensors the function finds
elsewhere (weights, constants) are read where they are at every call. What a trace cannot hold
(a value read in Python, an op MindSpore runs, random numbers) makes the function run in stream mode, with a notice that says why.
"""
from __future__ import annotations

import collections
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mindspore import Tensor, nn

from . import capture as captures
from . import guards, mindspore_grad, observed, reloadable
from . import mindspore_compat as compat
from .draws import Draws
from .mindspore import MsCapture
from .mindspore_grad import Backward
from .mindspore_views import exchange
from .notices import notice
from .signatures import words
from .tape import Input

guards.know_mindspore(Tensor, nn.Cell)

_TRACES = 64  # kept for one function; the least recently used goes first
_VARIANTS = 8  # kept for one kind of arguments: what is read elsewhere differs
_PLAIN = (slice, range, bytes, complex, np.generic)  # arguments that are known by their value
_TOLD = 8  # retraces of one function that are told


class _Value(NamedTuple):
    """In the pattern of a result: the tensor of a value."""

    value: int


class _Argument(NamedTuple):
    """In the pattern of a result: an argument handed through."""

    number: int


# Where a tensor from outside is found: the number of an argument, a guard that reads it, or (a parameter that none reads) the tensor.
_Source: TypeAlias = "int | guards.Guard | Tensor"


def _at(source: _Source, tensors: list[Tensor]) -> Tensor:
    if source.__class__ is int:
        return tensors[source]  # type: ignore[index]
    return source.read() if isinstance(source, guards.Guard) else source


class _Elsewhere(NamedTuple):
    """In the pattern of a result: a tensor that is found outside the arguments, handed through."""

    source: _Source


class _Untraceable(Exception):
    """Why a call cannot be done again without its body."""


class _Change(NamedTuple):
    """A tensor from outside that stands for another value after the call."""

    source: _Source
    address: int  # when traced
    value: int
    cls: str  # what its buffer is to the memory log
    shares: bool  # its memory is that of the value's tensor in the result, not its own


class Trace:
    """What one recording did, ready to be done again."""

    def __init__(self, capture: MsCapture, sources: dict[int, _Source], changes: list[_Change], result: Any,
                 backward: Backward | None) -> None:
        self.backward = backward
        self.noted = capture.noted
        self.template = capture.steps()
        self.imms = capture.imms
        self.calls: list[Any] = []  # by value id: arguments of Graph.op, or (source, Input)
        for value, entry in enumerate(capture.entries):
            if isinstance(entry, Input):
                address, tensor = capture.origins[value]
                self.calls.append((sources.get(address, tensor), entry))
            else:
                self.calls.append((*entry[:5], capture.imms.get(value, ()), entry[6]))
        self.changes = changes
        self.result = _pattern(result, sources, capture, changes)

    def run(self, name: str, step: int, tensors: list[Tensor]) -> Any:
        """Records and runs the trace on other arguments of the same kind."""
        told = captures.on_replay
        if told is not None:
            told(name)
        capture = MsCapture(name, step, self.backward is not None)
        capture.mode = "graph"
        capture.noted, capture.replays = self.noted, True
        capture.imms = self.imms
        capture.entries = self.template
        try:
            captures.push(capture)
            compat.synchronize()
            record, graph = capture.graph.op, capture.graph
            for value, call in enumerate(self.calls):
                if len(call) == 2:
                    source, entry = call
                    tensor = _at(source, tensors)
                    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
                    address = tensor.data_ptr()
                    cls = "parameter" if entry.needs_grad and source.__class__ is not int else ""
                    graph.input(address, entry.shape, entry.dtype, strides, tensor, cls)
                    capture.inputs[address, entry.shape, entry.dtype, strides] = value
                    if entry.needs_grad:
                        capture.leaves[value] = tensor
                else:
                    record(*call)
            made: dict[int, Tensor] = {}
            result = _filled(self.result, tensors, capture, made)
            for source, _, value, cls, shares in self.changes:
                new = made.get(value) if shares else None
                capture.put(_at(source, tensors), capture.tensor(value) if new is None else new, cls)
            capture.flush(self.backward.plan.saved if self.backward else ())
        finally:
            captures.pop(capture)
        return mindspore_grad.tie(capture, self.backward, result, made)


def _pattern(result: Any, sources: dict[int, _Source], capture: MsCapture, changes: list[_Change]) -> Any:
    """The result with what to put there for its tensors. sources: of tensors from outside, by address. Raises _Untraceable."""
    own = capture.own
    sources = {**sources, **{change.address: change.source for change in changes if not change.shares}}

    def pattern(value: Any) -> Any:
        if isinstance(value, Tensor):
            address = value.data_ptr()
            if address in own and address not in sources:
                return _Value(own[address])
            source = sources.get(address, value)
            if source is value and not compat.is_parameter(value):
                raise _Untraceable("it returns a tensor that no op of it has made")
            return _Argument(source) if isinstance(source, int) else _Elsewhere(source)
        if isinstance(value, (tuple, list)):
            items = [pattern(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: pattern(item) for key, item in value.items()}
        return value

    return pattern(result)


def _changes(capture: MsCapture, before: list[tuple[_Source, Tensor, int]]) -> list[_Change]:
    """What the call has changed of tensors from outside. before: a source, its tensor, and the address that this had at the begin, or when
    it was read (0: it had no memory yet). Raises _Untraceable where that cannot be done again."""
    found: dict[int, _Change] = {}  # by the tensor's id
    seen: set[tuple[int, int]] = set()  # MindSpore may make several objects of one tensor
    for source, tensor, was in before:
        now = tensor.data_ptr()
        if now == was or not was or (source.__class__ is not int and (was, now) in seen):
            continue
        seen.add((was, now))
        found.setdefault(id(tensor), _change(capture, source, tensor, now))
    known = {now for _, now in seen}
    for tensor, _ in capture.changed.values():
        if (now := tensor.data_ptr()) not in known:
            found.setdefault(id(tensor), _change(capture, tensor, tensor, now))
    return list(found.values())


def _change(capture: MsCapture, source: _Source, tensor: Tensor, now: int) -> _Change:
    if now not in capture.own:
        raise _Untraceable("it gives a tensor other memory")
    if source is tensor and not compat.is_parameter(tensor):  # it may be new at every call
        raise _Untraceable("it changes a tensor that is neither an argument nor seen to be read")
    cls = capture.changed[now][1] if now in capture.changed else "parameter" if compat.is_parameter(tensor) else "activation"
    return _Change(source, now, capture.own[now], cls, now not in capture.changed)


def _values(pattern: Any) -> Iterator[int]:
    if isinstance(pattern, _Value):
        yield pattern.value
    elif isinstance(pattern, (tuple, list)) and not isinstance(pattern, (_Argument, _Elsewhere)):
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
    if isinstance(pattern, _Elsewhere):
        return _at(pattern.source, tensors)
    if isinstance(pattern, (tuple, list)):
        items = [_filled(item, tensors, capture, made) for item in pattern]
        return type(pattern)(*items) if hasattr(pattern, "_fields") else type(pattern)(items)
    if isinstance(pattern, dict):
        return {key: _filled(item, tensors, capture, made) for key, item in pattern.items()}
    return pattern


class _Variant(NamedTuple):
    """What to do while the guards hold."""

    guards: list[guards.Guard]
    trace: Trace | None  # None: stream mode
    objects: list[Any]  # of the arguments; their ids are part of the kind of arguments
    elsewhere: list[Tensor]  # read by guards
    aliases: tuple[int, ...]  # of each argument: the number of one of these that has its memory, -1 for none


def _aliases(addresses: list[int], elsewhere: list[Tensor]) -> tuple[int, ...]:
    if not addresses:
        return ()
    known = {tensor._data_ptr(): number for number, tensor in enumerate(elsewhere)}
    return tuple([known.get(address, -1) if address else -1 for address in addresses])


class Traces:
    """The traces of one captured function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = reloadable.version
        self.named_for = 0  # who wanted names of inputs (captures.names_for) when they were made
        self.found: collections.OrderedDict[Hashable, list[_Variant]] = collections.OrderedDict()
        self.misses: list[str] = []  # why a new trace was made, newest last

    def call(self, info: Any, step: int, check: reloadable.Check | None, inputs: Hashable, args: tuple, kwargs: dict,
             copies: frozenset[int]) -> Any:
        """Calls the function: by its trace, or by tracing it. copies: addresses of arguments that stand for others."""
        objects: list[Any] = []
        tensors = _flatten((args, kwargs), [], objects)
        addresses = [tensor.data_ptr() for tensor in tensors]
        # Which arguments are the same tensor, and which want a gradient, is part of the kind.
        shared = tuple(addresses.index(address) for address in addresses)
        wanted = compat.gradient_wanted()
        key = (inputs, shared, wanted and tuple(compat.needs_grad(tensor) for tensor in tensors), (*map(_identity, objects),))
        if self.version != reloadable.version:
            self.version = reloadable.version
            self.found.clear()
            self._miss(info, "the code")
        if captures.names_for not in (0, self.named_for):
            self.found.clear()
        if key in self.found:
            self.found.move_to_end(key)
            first: guards.Guard | None = None
            other = False
            for variant in reversed(self.found[key]):
                missed = guards.missed(variant.guards)
                if missed is None:
                    if _aliases(addresses, variant.elsewhere) != variant.aliases:
                        other = True
                        continue
                    if variant.trace is not None:
                        return variant.trace.run(self.name, step, tensors)
                    return mindspore_grad.run(info.function, self.name, step, check, args, kwargs, copies=copies)
                first = first or missed
            if first is not None or other:
                self._miss(info, first.words() if first is not None else "which arguments are tensors that it reads elsewhere")
        elif self.found:
            self._miss(info, _difference(next(reversed(self.found)), key))
        self.named_for = captures.names_for
        return self._trace(info, step, check, key, args, kwargs, objects, addresses, copies)

    def _trace(self, info: Any, step: int, check: reloadable.Check | None, key: Hashable, args: tuple, kwargs: dict,
               objects: list[Any], addresses: list[int], copies: frozenset[int]) -> Any:
        read = guards.of_call(info.function, args, kwargs)  # before the call, which may change what it reads
        view = next((guard.label for guard in read if isinstance(guard.value, Tensor) and compat.is_view(guard.value)), None)
        draws = Draws(read)
        args, kwargs, more = exchange(args, kwargs, _Unrecognizable())
        copies |= more
        reading = [guard for guard in read if isinstance(guard.value, Tensor)]
        aliases = _aliases(addresses, [guard.value for guard in reading])
        before: list[tuple[_Source, Tensor, int]] = [(i, tensor, tensor.data_ptr())
                                                     for i, tensor in enumerate(_flatten((args, kwargs), [], []))]
        before += [(guard, guard.value, guard.value.data_ptr())
                   for guard in sorted(reading, key=lambda guard: compat.is_parameter(guard.value), reverse=True)]
        sources = {address: source for source, _, address in reversed(before) if address}
        found: list[Trace | None] = [None]
        done = False

        def recorded(capture: MsCapture, result: Any, backward: Backward | None) -> None:
            nonlocal done
            if capture.inspected:  # what a debugger holds of it says nothing: the next call is traced
                return
            done = True
            changes: list[_Change] = []
            try:
                read_or_given = [*((tensor, was) for was, tensor in capture.origins.values()), *capture.exchanged]
                changes = _changes(capture, before + [(tensor, tensor, was) for tensor, was in read_or_given])
                outside = {*_values(_pattern(result, sources, capture, changes)), *(change.value for change in changes)}
                if any(value not in outside for value in capture.living()):
                    raise _Untraceable("it keeps a tensor beyond the call")
            except _Untraceable as why:
                capture.untraceable = capture.untraceable or str(why)
            capture.untraceable = capture.untraceable or draws.why()
            if view is not None:
                capture.untraceable = capture.untraceable or f"it reads {view}, a view of another tensor"
            if capture.untraceable:
                notice(f"{self.name} runs in stream mode: {capture.untraceable}", path=info.place[0], line=info.place[1],
                       category="trace", once=("trace", self.name, capture.untraceable))
            else:
                found[0] = Trace(capture, sources, changes, result, backward)
                observed.of(self.name).traces += 1

        result = mindspore_grad.run(info.function, self.name, step, check, args, kwargs, recorded, copies)
        if not done:
            return result
        variants = self.found.setdefault(key, [])
        variants.append(_Variant(read, found[0], objects, [guard.value for guard in reading], aliases))
        del variants[:-_VARIANTS]
        if len(self.found) > _TRACES:
            self.found.popitem(last=False)
        return result

    def _miss(self, info: Any, what: str) -> None:
        self.misses.append(what)
        if len(self.misses) <= _TOLD:
            more = "; shapes that keep changing suit mode \"stream\"" if len(self.misses) == _TOLD else ""
            notice(f"{self.name} is traced again: {what} changed{more}", path=info.place[0], line=info.place[1], category="trace")


class _Unrecognizable:
    """Whether an argument is not known again by its address when ops bring it: a view, or detached over the memory of another."""

    def __init__(self) -> None:
        self.wants: dict[int, bool] = {}

    def __call__(self, tensor: Tensor) -> bool:
        wanted = compat.needs_grad(tensor)
        return compat.is_view(tensor) or self.wants.setdefault(tensor.data_ptr(), wanted) != wanted


def _flatten(value: Any, found: list[Tensor], objects: list[Any]) -> list[Tensor]:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _flatten(item, found, objects)
    elif isinstance(value, dict):
        for item in value.values():
            _flatten(item, found, objects)
    elif not isinstance(value, (bool, int, float, str, type(None))):
        objects.append(value)
    return found


def _identity(value: Any) -> Hashable:
    return repr(value) if isinstance(value, _PLAIN) else id(value)


def _difference(old: Any, new: Any) -> str:
    # The first guard that differs, in words.
    ((old_args, old_kwargs), *old_rest), ((new_args, new_kwargs), *new_rest) = old, new
    for i, (a, b) in enumerate(zip(old_args[1:], new_args[1:], strict=False)):
        if a != b:
            return f"argument {i} ({words(a)} to {words(b)})"
    if len(old_args) != len(new_args):
        return f"the number of arguments ({len(old_args) - 1} to {len(new_args) - 1})"
    if old_kwargs != new_kwargs:
        return "a keyword argument"
    named = ("which arguments are one tensor", "whether gradients are wanted", "an object among the arguments")
    return next(name for name, a, b in zip(named, old_rest, new_rest, strict=True) if a != b)

