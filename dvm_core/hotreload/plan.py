"""From edits to a patch: finds what each edit means in the running process, or why it cannot be made there."""
from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType

from . import apply, names, stacks, threads
from .edits import APPLY, NOTE, REFUSE, Edit
from .live import Live, collections, qualname
from .parse import Definition, Source, all_codes, inner_codes
from .sources import SourceBook

_STAR_FLAGS = 0x04 | 0x08  # *args, **kwargs
_KIND_FLAGS = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


@dataclass
class Plan:
    """What a reload will do. With refusals in it, nothing of it may be done."""
    edits: list[Edit]
    patch: apply.Patch = field(default_factory=apply.Patch)
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    searched: tuple[int, ...] = ()  # live.collections() when the heap was searched
    inner: dict[CodeType, CodeType] = field(default_factory=dict)  # old code of closures -> new, for the sweep after the swap
    began: float = field(default_factory=time.monotonic)
    make_thread: threads.MakeThread = threads.plain


def make(old: Source, new: Source, edits: list[Edit], live: Live, book: SourceBook,
         make_thread: threads.MakeThread = threads.plain) -> Plan:
    """The patch that turns the running `old` into `new`. make_thread: of a thread in which modules are imported."""
    plan = Plan(edits, make_thread=make_thread)
    plan.refusals += [edit.text for edit in edits if edit.verdict == REFUSE]
    plan.notes += [edit.text for edit in edits if edit.verdict == NOTE]
    if not plan.refusals:
        by_key = _codes(old, new, live, plan)
        _defaults(new, by_key, plan)
        names.plan(old, new, live, book, plan)
        _caches(by_key, live, plan)
        _running(old, live, plan)
    return plan


def pair_codes(old: Source, new: Source) -> dict[CodeType, CodeType]:
    """Old code object -> new, for every function both versions have. Keys compare by value: a live function's code finds its pair."""
    pairs: dict[CodeType, CodeType] = {}
    parents = [(old.inner, new.inner)]
    for key, definition in new.definitions.items():
        before = old.definitions.get(key)
        if before is not None and before.code is not None and definition.code is not None:
            parents.append((inner_codes(before.code), inner_codes(definition.code)))
            if not definition.is_class:
                pairs[before.code] = definition.code
    for before_codes, after_codes in parents:  # lambdas have no names: the k-th goes with the k-th, if there are as many
        left, right = ([c for c in codes if c.co_name == "<lambda>"] for codes in (before_codes, after_codes))
        if len(left) == len(right):
            for before_lambda, after_lambda in zip(left, right, strict=True):
                pairs.setdefault(before_lambda, after_lambda)
    return pairs


def unknown(old: Source, live: Live, leftover: set[CodeType]) -> list[FunctionType]:
    """Functions of the file whose code is not what its text says: it was edited before it was first read, or an import hook rewrites it.
    leftover: code of what the text no longer has."""
    known = {code for top in old.inner for code in all_codes(top)} | leftover
    return [function for function in live.functions if function.__code__ not in known]


def _codes(old: Source, new: Source, live: Live, plan: Plan) -> dict[str, list[FunctionType]]:
    """Plans new code for every function whose code differs, be it only in its lines. Gives the live functions by definition."""
    pairs = pair_codes(old, new)
    definitions = {d.code: d for d in old.functions if d.code is not None}
    plan.inner = {code: pair for code, pair in pairs.items() if code != pair and (code not in definitions or definitions[code].in_function)}
    reached = {function.__code__ for function in live.functions}
    if plan.inner or any(code not in reached and code != pair for code, pair in pairs.items()):
        plan.searched = collections()
        live.search()  # closures that have to change, or a function that no name leads to
    by_key: dict[str, list[FunctionType]] = {}
    for function in live.functions:
        definition, code = definitions.get(function.__code__), pairs.get(function.__code__)
        if definition is not None:
            by_key.setdefault(definition.key, []).append(function)
        if code is None or code == function.__code__:
            continue
        problem = _unfit(function.__code__, code)
        if problem:
            name = definition.key if definition else code.co_name
            plan.refusals.append(f"line {code.co_firstlineno}: `{name}` {problem}: needs restart")
            continue
        plan.patch.assignments.append(apply.attribute(function, "__code__", code))
        if definition is not None:
            _documentation(function, definition, new, plan)
    return by_key


def _unfit(old: CodeType, new: CodeType) -> str:
    """Why a function object that runs `old` cannot run `new`, "" if it can."""
    if old.co_freevars != new.co_freevars:
        before, after = (", ".join(code.co_freevars) or "none" for code in (old, new))
        return f"uses other variables of the function around it (now {after}; its closure was made with {before})"
    if (old.co_flags ^ new.co_flags) & _KIND_FLAGS:
        return "became a generator or coroutine, or is none any more; its callers do not expect that"
    if _parameters(old) != _parameters(new):
        return "has other parameters than the function objects that were made of it"
    return ""


def _parameters(code: CodeType) -> tuple[object, ...]:
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    count = code.co_argcount + code.co_kwonlyargcount + stars
    return code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount, code.co_flags & _STAR_FLAGS, code.co_varnames[:count]


def _documentation(function: FunctionType, before: Definition, new: Source, plan: Plan) -> None:
    after = new.definitions.get(before.key)
    if after is None:
        return
    old_text, new_text = _docstring(before), _docstring(after)
    if old_text != new_text and function.__doc__ == old_text:
        plan.patch.assignments.append(apply.attribute(function, "__doc__", new_text))


def _docstring(definition: Definition) -> str | None:
    if isinstance(definition.node, ast.Lambda):
        return None
    return ast.get_docstring(definition.node, clean=False)


def _defaults(new: Source, by_key: dict[str, list[FunctionType]], plan: Plan) -> None:
    changed: dict[str, dict[str, object]] = {}
    for edit in plan.edits:
        if edit.kind == "default":
            changed.setdefault(edit.key, {}).update(edit.value)
    for key, values in changed.items():
        arguments = new.definitions[key].node.args  # type: ignore[union-attr]
        positional = [a.arg for a in arguments.posonlyargs + arguments.args]
        for function in by_key.get(key, []):
            defaults = function.__defaults__ or ()
            # Only what the edit names: the others keep the very objects they have.
            current = dict(zip(positional[len(positional) - len(defaults):], defaults, strict=True))
            current |= {**(function.__kwdefaults__ or {}), **values}
            tail = tuple(current[name] for name in positional if name in current)
            keywords = {a.arg: current[a.arg] for a in arguments.kwonlyargs if a.arg in current}
            plan.patch.assignments.append(apply.attribute(function, "__defaults__", tail or None))
            plan.patch.assignments.append(apply.attribute(function, "__kwdefaults__", keywords or None))


def _caches(by_key: dict[str, list[FunctionType]], live: Live, plan: Plan) -> None:
    """Results that a changed function has cached are dropped; those of a function that only uses what changed may be all its caller has."""
    changed = {edit.key for edit in plan.edits if edit.verdict == APPLY}
    keys = {id(function): key for key, functions in by_key.items() for function in functions}
    for cache in live.caches:
        function = cache.__wrapped__
        if keys.get(id(function)) in changed:
            plan.patch.assignments.append(apply.emptied(cache))
            plan.notes.append(f"what `{function.__qualname__}` had cached is dropped")
        elif isinstance(function, FunctionType) and id(function) in keys:
            used = sorted({key for key in changed if key.rpartition(".")[2] in function.__code__.co_names})
            if used:
                plan.notes.append(f"`{function.__qualname__}` uses `{used[0]}`; what it has cached stays (`cache_clear()` drops it)")


_YIELDS = 0x20 | 0x200  # generator, asynchronous generator


def _in_flight(key: str, definition: Definition, live: Live) -> Iterator[str]:
    """Notes on generators that running calls may have made of it. Nothing lists those, but who has called it by its name is seen."""
    if definition.code is None or not definition.code.co_flags & _YIELDS:
        return
    owner, _, name = key.rpartition(".")
    readers = stacks.Readers([(module, name) for module in live.modules], live.classes(owner) if owner else [])
    for function, path, line in readers.found(ever=True):
        where = f"line {line}" if live.is_own(path) else f"{os.path.basename(path)}:{line}"
        yield f"a generator that `{function}` has made of `{key}` ({where}) goes on with the code it began with"


def _running(old: Source, live: Live, plan: Plan) -> None:
    """Says which changed functions have a call on a stack: that call ends with the code it began with."""
    changed = {edit.key for edit in plan.edits if edit.verdict == APPLY}
    keys = {definition.code: definition.key for definition in old.functions if definition.code is not None}
    for key in sorted(changed):
        if key.rpartition(".")[2] in ("__init__", "__post_init__", "__new__"):
            plan.notes.append(f"`{key}` has run for the objects that exist: they keep what it made")
    running = live.running()
    for key in sorted(changed & old.definitions.keys()):
        plan.notes += _in_flight(key, old.definitions[key], live)
    for function in live.functions:
        name = keys.get(function.__code__)
        if name in changed and qualname(function.__code__) in running:
            changed.discard(name)
            plan.notes.append(f"`{name}` is running: that call goes on with the code it began with, the new code runs from its next call")
