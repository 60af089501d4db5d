"""Gradients the user wrote (`bprop` of a cell, `backward` of an autograd function): kept, not derived from what the forward did."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindspore import Tensor, ops

from .. import _core
from . import mindspore_compat as compat
from .emit import FLOATS
from .fallback import known
from .plan import ForeignStep
from .tape import Foreign


class CustomCall:
    """A call with a gradient of its own."""

    def __init__(self, backward: Callable[[list[Tensor]], Any], arguments: list[Tensor], positions: list[int],
                 results: list[Tensor]) -> None:
        self.backward = backward  # gradients of the results -> one gradient per argument of the call
        self.arguments = arguments  # the tensors among the call's arguments
        self.positions = positions  # and their places among them
        self.results = [(tensor.shape, tensor.dtype) for tensor in results]

    def gradients(self, step: ForeignStep, arriving: Sequence[Tensor | None]) -> list[Tensor]:
        """Gradients of the wanted arguments (None from the user's code: zero)."""
        given = [ops.zeros(*kind) if tensor is None else tensor for tensor, kind in zip(arriving, self.results, strict=True)]
        found = self.backward(given)
        found = found if isinstance(found, (tuple, list)) else (found,)
        wanted = []
        for i in step.wanted:
            argument, at = self.arguments[i], self.positions[i]
            gradient = found[at] if at < len(found) else None
            wanted.append(ops.zeros(argument.shape, argument.dtype) if gradient is None else gradient.astype(argument.dtype))
        return wanted


def run(c: Any, forward: Callable[[], Any], args: tuple, backward: Callable[[list[Tensor]], Any], name: str) -> Any:
    """Records the forward of such a call and makes its results ones whose gradient is the user's."""
    place = _core.user_place()
    result = forward()
    if not c.gradients:
        return result
    positions = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    operands = tuple(known(c, args[i]) for i in positions)
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    seen: set[int] = set()
    for i, tensor in enumerate(found):
        if not isinstance(tensor, Tensor):
            continue
        if tensor.data_ptr() not in c.own or tensor.data_ptr() in seen:  # an argument handed through, or given out twice
            found[i] = tensor = c.tensor(c.copy(c.value(tensor)))
        seen.add(tensor.data_ptr())
    c.flush()
    tensors = [tensor for tensor in found if isinstance(tensor, Tensor)]
    number = len(c.calls)
    results = tuple(c.detach(tensor, number, compat.DTYPE_OF[tensor.dtype] in FLOATS) for tensor in tensors)
    c.foreign.append(Foreign(operands, results, place))
    c.calls.append(CustomCall(backward, [args[i] for i in positions], positions, tensors))
    c.untraceable = f"{name} has a gradient of its own"
    return type(result)(found) if isinstance(result, (tuple, list)) else found[0]


def cell(c: Any, call: Callable[..., Any], instance: Any, args: tuple, kwargs: dict) -> Any:
    """A cell with bprop: bprop(*inputs, out, dout) gives the gradients of the inputs."""
    outputs: list[Any] = []

    def forward() -> Any:
        outputs.append(call(instance, *args, **kwargs))
        return outputs[0]

    def backward(given: list[Tensor]) -> Any:
        (out,) = outputs
        return instance.bprop(*args, *kwargs.values(), out, tuple(given) if isinstance(out, tuple) else given[0])

    return run(c, forward, (*args, *kwargs.values()), backward, type(instance).__name__)


class _Context:
    """Stands for the `ctx` of an autograd function."""

    def __init__(self, args: tuple) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad = tuple(isinstance(x, Tensor) for x in args)

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        self.dirty_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def function(c: Any, kind: Any, args: tuple) -> Any:
    """An autograd function: backward(ctx, *gradients) gives the gradients of the arguments."""
    context = _Context(args)
    return run(c, lambda: kind.forward(context, *args), args, lambda given: kind.backward(context, *given), kind.__name__)
