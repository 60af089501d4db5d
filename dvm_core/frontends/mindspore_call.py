"""An outermost captured call of a MindSpore function: hot reload's boundary around it, then stream or graph mode."""
from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from . import mindspore_compat as compat
from . import mindspore_grad, reloadable
from .mindspore_trace import Traces


def call(info: Any, args: tuple, kwargs: dict) -> Any:
    """Calls a captured function (jit.CapturedFunction) with MindSpore tensors."""
    if info.donate:
        raise ArgumentError(f"donate is for functions of dvm.tensor arguments, and {info.name} was called with MindSpore tensors")
    if compat.gradient_wanted():
        args, kwargs = _owned(args), {name: _owned(value) for name, value in kwargs.items()}
    inputs = (reloadable.signature(args, mindspore_grad.describe), reloadable.signature(kwargs, mindspore_grad.describe))

    def attempt(step: int, check: reloadable.Check | None) -> Any:
        if info.mode == "graph":
            if info.traces is None:
                info.traces = Traces(info.name)
            return info.traces.call(info, step, check, inputs, args, kwargs)
        return mindspore_grad.run(info.function, info.name, step, check, args, kwargs)

    return reloadable.call(info.name, inputs, attempt)


def _owned(value: Any) -> Any:
    # A view that a gradient is wanted for, as a tensor of its own: MindSpore multiplies by one and takes the gradient through the view.
    if isinstance(value, compat.Tensor):
        return value * 1 if compat.is_differentiable_view(value) else value
    if value.__class__ in (tuple, list):
        return value.__class__(_owned(item) for item in value)
    return value
