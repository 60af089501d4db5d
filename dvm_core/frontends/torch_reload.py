"""Hot reload of code inside compiled models. Dynamo notices new code of the function it compiled and of functions that it found in globals,
but not of methods that it inlined: a model would go on with the old ones. And the first call with new code is made again with the old one
if it fails, which only what `torch.compile` returns can do."""
from __future__ import annotations

import functools
import gc
import os
from types import CodeType, FunctionType
from typing import Any

import torch

from . import attempts, capture, reloadable
from . import torch_compat as compat
from .signatures import signature

_roots: list[tuple[CodeType, frozenset[str]]] = []  # code that Dynamo compiled, the files of all code it found in there
_files: set[str] = set()  # all that ever were among them, as real paths


def compiled() -> None:
    """Called while Dynamo hands over a graph: remembers what it was made of."""
    if not compat.tracing:
        return
    translator = compat.tracing.Translator.current_tx()
    root: CodeType = translator.f_code
    files = frozenset(code.co_filename for code in [root, *(compat.tracing.Context.get_traced_code() or ())])
    if not any(known is root and its >= files for known, its in _roots):
        _roots.append((root, files))
        _files.update(map(os.path.realpath, files))


def shows(path: str) -> bool:
    """Whether Dynamo ever found code of that file in what it compiled."""
    return not compat.tracing or os.path.realpath(path) in _files


def outdated(path: str) -> int:
    """Code of that file was exchanged: what was compiled from it is compiled again when it is called next. Returns how many functions.

    A function gets a copy of its own code, for which Dynamo has nothing compiled; calls that run now end with the old one."""
    if not compat.tracing:
        torch.compiler.reset()
        return 1
    real = os.path.realpath(path)
    again = 0
    for at, (root, files) in enumerate(_roots):
        if not any(os.path.realpath(file) == real for file in files):
            continue
        for function in gc.get_referrers(root):
            if isinstance(function, FunctionType) and function.__code__ is root:
                function.__code__ = root.replace()
                _roots[at] = (function.__code__, files)  # also if it is never compiled: its error takes it back, through here
                again += 1
    return again


def tried(backend: Any) -> None:
    """From now on calls of what `torch.compile` makes with this backend are trials of code that was exchanged before them."""
    if not compat.wrapping:
        return
    reloadable.register_front_end(shows)
    context = compat.wrapping.Context
    plain = context.__call__

    @functools.wraps(plain)
    def make(self: Any, function: Any) -> Any:
        made = plain(self, function)
        its = compat.wrapping.innermost(self.callback)
        return _tried(made, function) if getattr(its, "compiler_fn", its) is backend and isinstance(made, FunctionType) else made

    context.__call__ = make


def _tried(compiled: Any, function: Any) -> Any:
    its = getattr(function, "__self__", None)
    module = its if isinstance(its, torch.nn.Module) else None
    name = type(module).__qualname__ if module is not None else getattr(function, "__qualname__", repr(function))

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        if capture.active() is not None:
            return compiled(*args, **kwargs)
        seeds: list[torch.Tensor] = []

        def run() -> Any:
            if seeds:  # it is made again
                torch.set_rng_state(seeds[0])
            elif reloadable.waiting():
                seeds.append(torch.get_rng_state())
            return compiled(*args, **kwargs)

        def kind() -> Any:
            mode = "mode", torch.is_grad_enabled(), module is not None and module.training
            return name, id(call), mode, signature(args, _describe), signature(kwargs, _describe)

        return attempts.attempt(run, shows, kind, lambda result: signature(result, _describe, values=False))

    call._torchdynamo_wrapper_id = id(call)  # type: ignore[attr-defined]
    return call


def _describe(value: Any) -> tuple[str, str, tuple[int, ...]] | None:
    """("tensor", dtype, shape) of a tensor, None for anything else."""
    return ("tensor", str(value.dtype).removeprefix("torch."), tuple(value.shape)) if isinstance(value, torch.Tensor) else None
