"""An outermost captured call of a MindSpore function: hot reload's boundary around it, then stream or graph mode."""
from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import ArgumentError
from . import mindspore_compat as compat
from . import mindspore_grad, reloadable
from .mindspore_trace import Traces
from .mindspore_views import exchange, loses_gradient
from .signatures import owner, signature


def call(info: Any, args: tuple, kwargs: dict, step: bool = True) -> Any:
    """Calls a captured function (jit.CapturedFunction) with MindSpore tensors. step: whether that begins a step."""
    if info.donate:
        raise ArgumentError(f"donate is for functions of dvm.tensor arguments, and {info.name} was called with MindSpore tensors")
    copies: frozenset[int] = frozenset()
    if compat.gradient_wanted():
        args, kwargs, copies = exchange(args, kwargs, loses_gradient)
    inputs = (signature(args, mindspore_grad.describe), signature(kwargs, mindspore_grad.describe))

    def attempt(step: int, check: reloadable.Check | None) -> Any:
        if info.mode == "graph":
            if info.traces is None:
                info.traces = Traces(info.name)
            return info.traces.call(info, step, check, inputs, args, kwargs, copies)
        return mindspore_grad.run(info.function, info.name, step, check, args, kwargs, copies=copies)

    return reloadable.call(info.key, (id(info), owner(args, inputs), inputs), attempt) if step else attempt(_core.step(), None)
