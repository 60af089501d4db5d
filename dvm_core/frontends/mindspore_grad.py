"""A captured MindSpore call from start to end: record, run, and hang the backward program on MindSpore's autograd."""
from __future__ import annotations

import collections
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

from mindspore import Tensor

from .. import _core
from ..errors import UnsupportedError, convert, where
from . import capture as captures
from . import grad, mindspore_hooks, observed  # noqa: F401  hooks are installed
from . import mindspore_compat as compat
from .mindspore import MsCapture
from .mindspore_views import Search
from .names import line_of
from .notices import notice
from .plan import ForeignStep, Plan, replay
from .reloadable import Check
from .signatures import signature

_PLANS = 512  # plans kept; the least recently used goes first


class Backward(NamedTuple):
    """What a call's structure says about its gradient."""

    outputs: tuple[int, ...]  # results a gradient can arrive at
    leaves: tuple[int, ...]  # inputs it is wanted for
    plan: Plan
    need: list[bool]  # per value


_lost_before: dict[str, set[tuple[str, int]]] = {}  # by captured function: where its last call lost tensors, under a debugger
_plans: collections.OrderedDict[Hashable, Backward | None] = collections.OrderedDict()


def describe(value: Any) -> Hashable | None:
    """("tensor", dtype, shape) of a MindSpore tensor, None for anything else."""
    return ("tensor", str(value.dtype), value.shape) if isinstance(value, Tensor) else None


def run(function: Callable[..., Any], name: str, step: int, check: Check | None, args: tuple, kwargs: dict,
        recorded: Callable[[MsCapture, Any, Backward | None], None] | None = None, copies: Collection[int] = ()) -> Any:
    """Makes one outermost captured call and returns its result, differentiable by MindSpore where it is differentiable.

    recorded(capture, result, backward): told before the call is executed, in order to trace it. copies: addresses of tensors among the
    arguments that stand for others.
    """
    arguments: dict[int, Tensor] = {}
    _collect((args, kwargs), arguments)
    capture = MsCapture(name, step, compat.gradient_wanted(), arguments, recorded is not None, copies,
                        Search(function, args, kwargs))
    with capture:
        try:
            result = function(*args, **kwargs)
        except RuntimeError as error:
            if not compat.gradient_refused(error):
                raise
            capture.refuse("a gradient is computed inside a captured function; capture the function it is the gradient of instead, "
                           "and keep ms.value_and_grad outside", _frame_of(error, function))
        if check is not None:
            check(signature(result, describe, values=False))
        outputs: dict[int, Tensor] = {}  # address -> a tensor of the result
        _collect(result, outputs)
        made = {**capture.foreign_results, **capture.own}
        returned = {made[address]: tensor for address, tensor in outputs.items() if address in made}
        backward = _backward(capture, returned) if capture.gradients and capture.leaves else None
        if recorded is not None:
            recorded(capture, result, backward)
        capture.flush(backward.plan.saved if backward else ())
        if backward:
            _tell_of_lost(capture, backward, returned)
    seen = observed.of(name)
    seen.recordings += 1
    seen.operations += capture.dispatched
    seen.untraceable = seen.untraceable or capture.untraceable
    seen.changes = seen.changes or bool(capture.changed)
    seen.gradients = seen.gradients or backward is not None
    return tie(capture, backward, result, returned)


def tie(capture: MsCapture, backward: Backward | None, result: Any, returned: dict[int, Tensor]) -> Any:
    """The result with its differentiable tensors as MindSpore's autograd knows them. returned: value id -> its tensor in the result."""
    if backward is None:
        return result
    state = State(capture, backward)
    tied = _Glue.apply(state, tuple(returned[value] for value in backward.outputs), *state.leaves)
    tied = tied if isinstance(tied, tuple) else (tied,)
    return _swap(result, {returned[value].data_ptr(): tensor for value, tensor in zip(backward.outputs, tied, strict=True)})


def _frame_of(error: BaseException, function: Callable[..., Any]) -> tuple[str, int]:
    # File and line of the captured function's own frame in a traceback.
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = ("", 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code is code:
            found = (frame.f_code.co_filename, line)
    return found


def _collect(value: Any, found: dict[int, Tensor]) -> None:
    if isinstance(value, Tensor):
        found[value.data_ptr()] = value
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)


def _swap(value: Any, tied: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return tied.get(value.data_ptr(), value)
    if isinstance(value, tuple):
        items = [_swap(item, tied) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        return [_swap(item, tied) for item in value]
    if isinstance(value, dict):
        return {key: _swap(item, tied) for key, item in value.items()}
    return value


def _backward(capture: MsCapture, returned: dict[int, Tensor]) -> Backward | None:
    """The plan for a call's structure, from the cache or derived now."""
    key = (capture.key(), tuple(returned))
    if key in _plans:
        _plans.move_to_end(key)
        return _plans[key]
    need = grad.needs_of(capture)
    outputs = tuple(value for value in returned if need[value])
    found = None
    if outputs:
        leaves = tuple(capture.leaves)
        try:
            derived = grad.derive(capture, outputs, leaves, returned)
        except _core.Error as error:
            raise convert(error) from None
        found = Backward(outputs, leaves, derived, need)
    _plans[key] = found
    if len(_plans) > _PLANS:
        _plans.popitem(last=False)
    return found


def _tell_of_lost(capture: MsCapture, backward: Backward, returned: dict[int, Tensor]) -> None:
    # A tensor that outlives the call without being a result: MindSpore cannot know where it came from.
    held = {value for call in capture.foreign for value in call.operands}  # by us, for MindSpore's gradient
    lost = {where(capture.graph.place(value)) for value in (() if capture.inspected else capture.living())
            if backward.need[value] and value not in returned and value not in held}
    if "pydevd" in sys.modules:  # which holds frames for a moment: what the program keeps is there after the next call, too
        before, _lost_before[capture.function] = _lost_before.get(capture.function, set()), lost
        lost = lost & before
    for file, line in sorted(lost):
        notice(f"a tensor made here outlives the captured function {capture.function} without being one of its results; no gradient "
               f"flows through it. Return it if it takes part in a loss: {line_of(file, line)}", path=file, line=line,
               once=("lost", file, line))


class State:
    """What a call's backward needs: the graph, the plan, the memory the forward program wrote."""

    def __init__(self, capture: MsCapture, backward: Backward) -> None:
        self.capture = capture
        self.backward = backward
        self.given: dict[int, Tensor] = {}  # by value id: gradients that came from MindSpore
        self.leaves = [capture.leaves[value] for value in backward.leaves]
        self.arrays = [array for _, array in capture.filled.values()]  # saved values may live in results' memory

    def gradients(self, seeds: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the leaves from those of the outputs."""
        capture, backward = self.capture, self.backward
        graph = capture.graph
        compat.synchronize()
        try:
            found = replay(graph, backward.plan, self._seeds(seeds), capture.imms, self._run_foreign, self._add_input)
            results = self._write((), found)
        except _core.Error as error:
            raise convert(error) from None
        return results

    def _seeds(self, seeds: Sequence[Tensor | None]) -> list[Tensor]:
        graph = self.capture.graph
        given = []
        for value, seed in zip(self.backward.outputs, seeds, strict=True):
            if seed is None:
                array = compat.empty(graph.shape(value), graph.dtype(value))
                array.fill(0)
                seed = compat.from_numpy(array)
            given.append(seed)
        return given

    def _add_input(self, tensor: Tensor) -> int:
        strides = None if tensor.is_contiguous() else tuple(tensor.stride())
        value = self.capture.graph.input(tensor.data_ptr(), tensor.shape, compat.DTYPE_OF[tensor.dtype], strides, tensor, "gradient")
        self.given[value] = tensor
        return value

    def _buffer(self, value: int) -> Tensor | None:
        if value < 0 or value in self.given:
            return self.given.get(value)
        graph = self.capture.graph
        return compat.from_numpy(compat.empty(graph.shape(value), graph.dtype(value)))

    def _run_foreign(self, step: ForeignStep) -> None:
        graph = self.capture.graph
        arriving = self._write([value for value in step.keep if value < graph.size() and not graph.in_memory(value)], step.gradients)
        results = self.capture.calls[step.call].gradients(step, arriving)
        compat.synchronize()
        for tensor in results:
            self._add_input(tensor)

    def _write(self, keep: Sequence[int], values: Sequence[int]) -> list[Tensor | None]:
        # Runs what is pending; the values as tensors (None for -1).
        tensors = [self._buffer(value) for value in values]
        self.capture.graph.flush(keep, [(value, tensor.data_ptr()) for value, tensor in zip(values, tensors, strict=True)
                                        if tensor is not None and value not in self.given])
        return tensors


class _Glue(compat.AutogradFunction):
    """MindSpore's autograd sees a captured call as one function of its leaves."""

    @staticmethod
    def forward(ctx: Any, state: State, results: tuple[Tensor, ...], *leaves: Tensor) -> Any:
        ctx.state = state
        return results if len(results) > 1 else results[0]

    @staticmethod
    def backward(ctx: Any, *seeds: Tensor) -> Any:
        state: State = ctx.state
        if compat.recording_gradient():
            raise UnsupportedError(f"a gradient of a gradient of the captured function {state.capture.function} is not supported; "
                                   f"take the outer gradient without @dvm.jit")
        with captures.replaying(state.capture):
            return (None, None, *state.gradients(seeds))
