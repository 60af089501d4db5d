"""Where MindSpore asks us first while a call is captured: reads, `x[...]`, ms.jit functions, cells, autograd functions, gradient hooks."""
from __future__ import annotations

from typing import Any

from mindspore import Tensor

from .. import _core
from ..errors import where
from . import capture as captures
from . import custom, mindspore_index, mindspore_patches
from . import mindspore_compat as compat
from .lowering import Unlowerable
from .mindspore import MsCapture
from .notices import notice


def current() -> MsCapture | None:
    """The calling thread's MindSpore capture, if ops are being recorded."""
    top = captures.active()
    return top if isinstance(top, MsCapture) and not top.paused else None


def _before_read(tensor: Tensor) -> None:
    top: Any = captures.active()
    if top is not None and top.front_end == "mindspore" and (top.waiting or top.tracing):
        top.before_read(tensor)


def _before_exchange(tensor: Tensor) -> None:
    top: Any = captures.active()
    if top is not None and top.front_end == "mindspore":
        top.replaced.append(compat.same_memory(tensor))
        if top.tracing and tensor._data_ptr() not in top.own:
            top.exchanged.append((tensor, tensor._data_ptr()))


def _jit_call(executor: Any, args: tuple, kwargs: dict) -> Any:
    top = current()
    if top is None:
        return NotImplemented
    function = executor.fn
    file, line = where(_core.user_place())
    notice(f"{getattr(function, '__qualname__', function)} is a ms.jit function inside the captured function {top.function}: its body is "
           f"captured too, MindSpore does not compile it", path=file, line=line, once=("ms.jit", file, line))
    return function(*args, **kwargs)


def _cell_call(call: Any, cell: Any, args: tuple, kwargs: dict) -> Any:
    top = current()
    if top is None or not top.gradients:
        return NotImplemented
    if compat.has_backward_hooks(cell):
        top.place = _core.user_place()
        top.refuse(f"the cell {type(cell).__name__} has backward hooks; they do not run inside a captured function, remove them or capture "
                   f"a smaller part")
    return custom.cell(top, call, cell, args, kwargs)


def _function_call(kind: Any, args: tuple, kwargs: dict) -> Any:
    top = current()
    return NotImplemented if top is None or kwargs else custom.function(top, kind, args)


def _tensor_hook(tensor: Tensor) -> None:
    top = current()
    if top is not None:
        top.place = _core.user_place()
        top.refuse("a hook on a tensor's gradient does not run inside a captured function; return the tensor and hook it outside")


def _no_grad(change: int) -> None:
    top = current()
    if top is not None:
        top.detaching = max(0, top.detaching + change)


def _operands(given: list) -> list:
    # MindSpore dispatches a primitive if one of its tensors was made in Python; those that came from ops before the capture were not.
    # In a list it sees none at all.
    top = current()
    if top is None:
        return given
    given = [tuple(x) if x.__class__ is list and any(isinstance(item, Tensor) for item in x) else x for x in given]
    tensors = _tensors_in(given)
    if not tensors or any(tensor.__class__ is not Tensor or tensor._data_ptr() in top.own for tensor in tensors):
        return given
    top.place = _core.user_place()
    try:
        return [_made_here(top, x) for x in given]
    except Unlowerable:
        return given


def _tensors_in(values: Any) -> list[Tensor]:
    return [t for x in values for t in ([x] if isinstance(x, Tensor) else _tensors_in(x) if isinstance(x, (tuple, list)) else ())]


def _made_here(top: MsCapture, x: Any) -> Any:
    # The same value as a tensor made in Python. Its gradient goes to the tensor given: that is the one the value is known by.
    if isinstance(x, (tuple, list)):
        return type(x)([_made_here(top, item) for item in x])
    if not isinstance(x, Tensor):
        return x
    value = top.value(x)
    return Tensor(x) if x.shape and x.is_contiguous() else top.tensor(top.copy(value))


def _scalar(tensor: Tensor) -> None:
    top = current()
    if top is not None and top.tracing:
        top.constants[tensor.data_ptr()] = tensor


def _parameter(parameter: Tensor) -> None:
    top = current()
    if top is not None:
        top.untraceable = top.untraceable or "it makes a parameter"


mindspore_patches.install_hooks(_before_read, _before_exchange, mindspore_index.getitem, mindspore_index.setitem, _jit_call, _cell_call,
                                _function_call, _tensor_hook, _no_grad, _operands, _scalar, _parameter)
