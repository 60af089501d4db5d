"""Where the MindSpore front end puts itself in the way of what MindSpore does not dispatch: methods that read or change a tensor without
an op, ms.jit functions, cells, autograd functions, primitives, and the functions that record a gradient."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn, ops

from .mindspore_compat import TESTED, AutogradFunction, _optional, _required, leaves_no_gradient
from .notices import notice

# Before these, values that are recorded and not yet computed must be. `_item` serves bool(), int(), float(), item() and indices.
_READERS = ("asnumpy", "_item", "tolist", "get_bytes", "__str__", "__repr__", "__getstate__", "__deepcopy__")
# What gives a tensor other memory (`set_data`, `assign_value`): what is recorded may still read the memory it had.
_EXCHANGERS = ("assign_value_cpp", "_update_data", "set_")


def install_hooks(before_read: Callable[[Tensor], None], before_exchange: Callable[[Tensor], None], getitem: Callable[..., Any],
                  setitem: Callable[..., bool], jit_call: Callable[[Any, tuple, dict], Any],
                  cell_call: Callable[[Any, Any, tuple, dict], Any], function_call: Callable[[Any, tuple, dict], Any],
                  tensor_hook: Callable[[Tensor], None], no_grad: Callable[[int], None], operands: Callable[[list], list],
                  scalar: Callable[[Tensor], None], parameter: Callable[[Tensor], None]) -> None:
    """Puts the front end in the way of what MindSpore does not dispatch. Outside a capture each hook costs a call.

    before_read(tensor): before its values are read. before_exchange(tensor): before it gets other memory.
    getitem(tensor, index, original), setitem(tensor, index, value) -> handled.
    jit_call(executor, args, kwargs): instead of a ms.jit function. cell_call(original, cell, args, kwargs): instead of a cell with a
    gradient or backward hooks of its own. function_call(class, args, kwargs): instead of an autograd function. Each gives NotImplemented
    for MindSpore's own way. tensor_hook(tensor): before a hook is put on a tensor's gradient. no_grad(1 or -1): one is entered or left.
    operands(list) -> the operands a primitive is called with. scalar(tensor): one that MindSpore has made of a Python number.
    parameter(parameter): before one is made.
    """
    for name in _READERS:
        _hook_method(name, before_read)
    for name in _EXCHANGERS:
        _hook_method(name, before_exchange)
    _hook_index(getitem, setitem)
    _hook_print(before_read)
    _hook_jit(jit_call)
    _hook_cells(cell_call)
    _hook_functions(function_call)
    _hook_method("register_hook", tensor_hook)
    _hook_method("__init__", parameter, ms.Parameter)
    _hook_no_grad(no_grad)
    _hook_primitives(operands)
    _hook_scalars(scalar)
    _hook_gradients()
    _hook_types()


def _hook_method(name: str, before: Callable[[Tensor], None], kind: Any = Tensor) -> None:
    original = getattr(kind, name, None)
    if original is None:
        notice(f"MindSpore {ms.__version__} has no {kind.__name__}.{name}, there in {TESTED}", category="compatibility",
               once=("compat", name))
        return

    @functools.wraps(original)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        before(self)
        return original(self, *args, **kwargs)

    setattr(kind, name, call)


def _hook_index(getitem: Callable[..., Any], setitem: Callable[..., bool]) -> None:
    original_get, original_set = Tensor.__getitem__, Tensor.__setitem__

    def get(self: Tensor, index: Any) -> Any:
        return getitem(self, index, original_get)

    def put(self: Tensor, index: Any, value: Any) -> Any:
        return None if setitem(self, index, value) else original_set(self, index, value)

    Tensor.__getitem__, Tensor.__setitem__ = get, put


def _hook_print(before_read: Callable[[Tensor], None]) -> None:
    # ops.Print and ops.print_ read in C++ and are not dispatched.
    original = _optional("ops.Print.__call__", lambda: ops.Print.__call__)
    if original is None:
        return

    @functools.wraps(original)
    def call(self: Any, *args: Any) -> Any:
        for arg in args:
            if isinstance(arg, Tensor):
                before_read(arg)
        return original(self, *args)

    ops.Print.__call__ = call


def _hook_jit(jit_call: Callable[[Any, tuple, dict], Any]) -> None:
    def get() -> Any:
        from mindspore.graph.api import _JitExecutor

        return _JitExecutor, _JitExecutor.__call__

    found = _optional("_JitExecutor (ms.jit inside a captured function)", get)
    if found is None:
        return
    executor, original = found

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = jit_call(self, args, kwargs)
        return original(self, *args, **kwargs) if result is NotImplemented else result

    executor.__call__ = call


def _hook_cells(cell_call: Callable[[Any, Any, tuple, dict], Any]) -> None:
    original = _required("nn.Cell.__call__", lambda: nn.Cell.__call__)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.has_bprop or self._backward_hook or self._backward_pre_hook:
            result = cell_call(original, self, args, kwargs)
            if result is not NotImplemented:
                return result
        return original(self, *args, **kwargs)

    nn.Cell.__call__ = call


def _hook_functions(function_call: Callable[[Any, tuple, dict], Any]) -> None:
    original = AutogradFunction.apply.__func__

    @functools.wraps(original)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = function_call(cls, args, kwargs)
        return original(cls, *args, **kwargs) if result is NotImplemented else result

    AutogradFunction.apply = classmethod(apply)


def _hook_no_grad(no_grad: Callable[[int], None]) -> None:
    # A capture runs without MindSpore's gradients, so the flag alone does not say that the user switched them off.
    def get() -> Any:
        from mindspore.graph.api import _no_grad

        return _no_grad, _no_grad.__enter__, _no_grad.__exit__

    found = _optional("_no_grad (gradients switched off inside a captured function)", get)
    if found is None:
        return
    context, original_enter, original_exit = found

    def enter(self: Any) -> Any:
        no_grad(1)
        return original_enter(self)

    def leave(self: Any, *error: Any) -> Any:
        no_grad(-1)
        return original_exit(self, *error)

    context.__enter__, context.__exit__ = enter, leave


def _hook_primitives(operands: Callable[[list], list]) -> None:
    # A primitive whose tensors were all made by MindSpore's C++ (as results of its ops are) is not dispatched.
    def get() -> Any:
        from mindspore.ops.auto_generate import gen_ops_prim, pyboost_inner_prim

        return gen_ops_prim, pyboost_inner_prim

    modules = _optional("gen_ops_prim, pyboost_inner_prim (primitives on results of MindSpore's own ops)", get)
    if modules is None:
        return

    def hooked_function(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(primitive: Any, given: list, *rest: Any) -> Any:
            return original(primitive, operands(given), *rest)

        return call

    def hooked_method(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *given: Any) -> Any:
            return original(self, *operands(list(given)))

        return call

    functions, classes = modules
    for name, original in list(vars(functions).items()):
        if name.startswith("pyboost_") and not _changes_operands(name):
            setattr(functions, name, hooked_function(original))
    for name, kind in vars(classes).items():
        if name.startswith("_Pyboost") and not _changes_operands(name):
            kind.__call__ = hooked_method(kind.__call__)


def _hook_scalars(made: Callable[[Tensor], None]) -> None:
    # What a Python number becomes a tensor by: the bounds of a range are such.
    kind = _optional("ScalarToTensor (ranges in graph mode)", lambda: ops.ScalarToTensor)
    if kind is None:
        return
    original = kind.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tensor = original(self, *args, **kwargs)
        made(tensor)
        return tensor

    kind.__call__ = call


def _changes_operands(name: str) -> bool:
    return "inplace" in name.lower() or "assign" in name.lower()


def _hook_gradients() -> None:
    def get() -> Any:
        from mindspore.ops.composite import base
        from mindspore.ops.function.grad import grad_func

        forward, backward = "_pynative_func_grad_forward", "_pynative_func_grad_backward"
        return ([(module, forward, getattr(module, forward), lambda function: True) for module in (base, grad_func)]
                + [(module, backward, getattr(module, backward), lambda function: False) for module in (base, grad_func)]
                + [(nn.Cell, "_complex_call", nn.Cell._complex_call, lambda cell: bool(cell.requires_grad))])

    for owner, name, original, records in _optional("_pynative_func_grad_forward (cleaning up after a failed gradient)", get) or ():
        setattr(owner, name, leaves_no_gradient(original, records))


def _hook_types() -> None:
    # What picks a function by its arguments' types (an optimizer's update, say) asks for them through a name that MindSpore itself calls
    # deprecated, with a warning for each. Run as Python, as a capture runs it, that is many a step; `ms.pytype_to_dtype` goes on warning.
    def get() -> Any:
        from mindspore.common import dtype

        return dtype, dtype._pytype_to_dtype, dtype.pytype_to_dtype

    found = _optional("_pytype_to_dtype (choice of a function by types)", get)
    if found is not None:
        module, quiet, _ = found
        module.pytype_to_dtype = quiet
