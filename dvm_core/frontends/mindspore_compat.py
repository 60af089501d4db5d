"""Every MindSpore internal this package relies on, and what happens if a version lacks it. Made for 2.10; nothing else imports internals.

What must be there (the capture cannot work without it) raises UnsupportedError with the version; what only makes something nicer
is left out with one notice.
"""
from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from .. import _core
from ..errors import UnsupportedError
from .emit import BF16
from .notices import notice

TESTED = "2.10"


def _required(what: str, get: Callable[[], Any]) -> Any:
    try:
        return get()
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(f"MindSpore {ms.__version__} has no {what} ({error}); this version works with MindSpore {TESTED}. "
                               f"Without @dvm.jit the program runs as usual") from None


def _optional(what: str, get: Callable[[], Any]) -> Any:
    try:
        return get()
    except (ImportError, AttributeError) as error:
        notice(f"MindSpore {ms.__version__} has no {what} ({error}); {TESTED} has it", category="compatibility", once=("compat", what))
        return None


# ---- dispatch, autograd, execution ---------------------------------------------------------------------------------------------------

def _dispatch_mode() -> type:
    from mindspore.utils import MsDispatchMode

    return MsDispatchMode


def _executor() -> Any:
    from mindspore.common.api import _pynative_executor

    return _pynative_executor


def _function() -> type:
    from mindspore.common._grad_function import _Function

    return _Function


DispatchMode: Any = _required("MsDispatchMode (capture of ops)", _dispatch_mode)
AutogradFunction: Any = _required("_Function (custom gradients)", _function)
_pynative = _required("PyNative executor", _executor)
_native = _pynative._executor  # the C++ object: its methods cost half of the Python wrappers'

grad_enabled: Callable[[], bool] = _required("PyNativeExecutor.requires_grad", lambda: _native.requires_grad)
enable_grad: Callable[[], bool] = _required("PyNativeExecutor.enable_grad", lambda: _native.enable_grad)
set_enable_grad: Callable[[bool], None] = _required("PyNativeExecutor.set_enable_grad", lambda: _native.set_enable_grad)
synchronize: Callable[[], None] = _required("PyNativeExecutor.sync", lambda: _native.sync)  # waits for ops still running


def seed() -> int:
    """What the user gave ms.set_seed; 0 if nothing."""
    return int(ms.get_seed() or 0)


from_numpy: Callable[[Any], Tensor] = _required("TensorPy.from_numpy (shares memory)", lambda: Tensor.__mro__[1].from_numpy)


def clear_gradient_state() -> None:
    """Makes MindSpore forget a gradient that was being recorded when an exception came; between training steps only."""
    _pynative.clear_res()


def leave_modes(depth: int) -> None:
    """Takes dispatch modes off MindSpore's stack until `depth` are left: an op that failed may have left one behind."""
    stack = _guard_stack()
    while stack is not None and stack.depth() > depth:
        stack.pop()


def mode_depth() -> int:
    """Number of dispatch modes in force."""
    stack = _guard_stack()
    return stack.depth() if stack is not None else 0


@functools.cache
def _guard_stack() -> Any:
    def get() -> Any:
        from mindspore._c_expression import _DispatchGuardStack

        return _DispatchGuardStack

    return _optional("_DispatchGuardStack (cleaning up after a failed op)", get)


def gradient_refused(error: Exception) -> bool:
    """Whether the error is MindSpore's for a gradient asked for inside a capture (which runs under no_grad)."""
    return isinstance(error, RuntimeError) and "no_grad context" in str(error)


def recording_gradient() -> bool:
    """Whether a backward that runs now is itself part of a function under grad. (After an exception under value_and_grad MindSpore's own
    flag stays set, so it alone says nothing.)"""
    if not grad_enabled():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_pynative_func_grad_forward":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def call_again(name: str, args: tuple) -> Any:
    """Runs an op outside of a dispatch from its dispatched arguments, so that MindSpore's autograd sees it. (The `func` a dispatch hands
    over must not be used for that: it takes no new tensors, or crashes.)"""
    if len(args) == 3 and args[2].__class__ is tuple and is_primitive(args[0]):
        return _native.run_op_async(*args)
    import mindspore._c_expression as c_expression

    primitive = getattr(c_expression, f"{name}Prim_", None)
    if primitive is None:
        raise UnsupportedError(f"MindSpore {ms.__version__} has no {name}Prim_: the gradient of {name} cannot be computed, nor has this "
                               f"package a lowering for it; write it with other ops", op=name)
    return primitive()(list(args))


def vjp(function: Callable[..., Any], inputs: tuple[Tensor, ...], gradients: Any) -> tuple[Tensor, ...]:
    """MindSpore's own gradients of function(*inputs), weighted by `gradients` (a tensor, or a tuple for several results)."""
    before = enable_grad()
    set_enable_grad(True)
    try:
        found = ops.GradOperation(get_all=True, sens_param=True)(function)(*inputs, gradients)
    finally:
        set_enable_grad(before)
    return found if isinstance(found, tuple) else (found,)


# ---- tensors and dtypes --------------------------------------------------------------------------------------------------------------

DTYPE_OF: dict[Any, int] = {ms.float32: 1, ms.float16: 2, ms.bfloat16: 3, ms.float64: 4, ms.bool_: 5, ms.int8: 6, ms.uint8: 7, ms.int32: 8,
                            ms.int64: 9}


def _bfloat16() -> Any:
    from mindspore.common.np_dtype import bfloat16

    return np.dtype(bfloat16)


BFLOAT16: Any = _optional("np_dtype.bfloat16 (bfloat16 tensors)", _bfloat16)  # MindSpore's own NumPy dtype
if BFLOAT16 is None:
    del DTYPE_OF[ms.bfloat16]


def _type_ids() -> dict[int, int]:
    from mindspore._c_expression import typing

    return {int(typing.type_to_type_id(dtype)): code for dtype, code in DTYPE_OF.items()}


TYPE_ID: dict[int, int] = _required("typing.type_to_type_id", _type_ids)  # MindSpore's number of a dtype in op arguments -> our code


def empty(shape: tuple[int, ...], dtype: int) -> np.ndarray:
    """Memory for a tensor of a dtype of ours, contents undefined."""
    array = _core.empty(shape, dtype)
    return array.view(BFLOAT16) if dtype == BF16 else array


def needs_grad(tensor: Tensor) -> bool:
    """Whether the tensor is one gradients are wanted for (a parameter, an input of a function under grad, a result of such)."""
    return tensor._requires_grad


# Ops of MindSpore whose result is a view of their operand, by the name of the node that brings its gradient back.
_VIEWS = re.compile(r"View|Reshape|Transpose|Split|Chunk|Squeeze|ExpandDims|Expand|Slice|Narrow|Broadcast|Select|Strided|Diagonal|Flatten"
                    r"|Unstack|Unbind|Permute|Swap|Move|Unfold|Meshgrid|Real|Imag")


def is_differentiable_view(tensor: Tensor) -> bool:
    """Whether a gradient is wanted for a tensor that is a view of another: MindSpore hands ops a copy of such a tensor, made before they
    are dispatched, which no gradient leads back from."""
    if not needs_grad(tensor):
        return False
    node = getattr(tensor, "_grad_node", None)
    node = node() if callable(node) else node
    name = getattr(node, "name", "")
    return not tensor.is_contiguous() or bool(_VIEWS.search(name() if callable(name) else name))


def is_complex(tensor: Tensor) -> bool:
    return tensor.dtype in (ms.complex64, ms.complex128)


def replace_data(tensor: Tensor, value: Tensor) -> None:
    """The tensor object has value's memory from now on."""
    tensor.assign_value_cpp(value)


def same_memory(tensor: Tensor) -> Any:
    """Another object over the tensor's memory, which keeps it when the tensor itself gets other memory."""
    return Tensor.__mro__[1](tensor)


def is_primitive(value: Any) -> bool:
    return isinstance(value, ops.Primitive)


# ---- methods that read or change a tensor without an op ------------------------------------------------------------------------------

# Before these, values that are recorded and not yet computed must be. `_item` serves bool(), int(), float(), item() and indices.
_READERS = ("asnumpy", "_item", "tolist", "get_bytes", "__str__", "__repr__", "__getstate__", "__deepcopy__")


def install_hooks(before_read: Callable[[Tensor], None], getitem: Callable[..., Any], setitem: Callable[..., bool],
                  jit_call: Callable[[Any, tuple, dict], Any], cell_call: Callable[[Any, Any, tuple, dict], Any],
                  function_call: Callable[[Any, tuple, dict], Any], tensor_hook: Callable[[Tensor], None],
                  no_grad: Callable[[int], None], operands: Callable[[list], list]) -> None:
    """Puts the front end in the way of what MindSpore does not dispatch. Outside a capture each hook costs a call.

    before_read(tensor): before its values are read. getitem(tensor, index, original), setitem(tensor, index, value) -> handled.
    jit_call(executor, args, kwargs): instead of a ms.jit function. cell_call(original, cell, args, kwargs): instead of a cell with a
    gradient or backward hooks of its own. function_call(class, args, kwargs): instead of an autograd function. Each gives NotImplemented
    for MindSpore's own way. tensor_hook(tensor): before a hook is put on a tensor's gradient. no_grad(1 or -1): one is entered or left.
    operands(list) -> the operands a primitive is called with.
    """
    for name in _READERS:
        _hook_reader(name, before_read)
    _hook_index(getitem, setitem)
    _hook_print(before_read)
    _hook_jit(jit_call)
    _hook_cells(cell_call)
    _hook_functions(function_call)
    _hook_reader("register_hook", tensor_hook)
    _hook_no_grad(no_grad)
    _hook_primitives(operands)


def _hook_reader(name: str, before_read: Callable[[Tensor], None]) -> None:
    original = getattr(Tensor, name, None)
    if original is None:
        notice(f"MindSpore {ms.__version__} has no Tensor.{name}; {TESTED} has it", category="compatibility", once=("compat", name))
        return

    @functools.wraps(original)
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        before_read(self)
        return original(self, *args, **kwargs)

    setattr(Tensor, name, read)


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


def has_backward_hooks(cell: Any) -> bool:
    """Whether hooks wait for a cell's gradients."""
    return bool(getattr(cell, "_backward_hook", None) or getattr(cell, "_backward_pre_hook", None))


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


def _changes_operands(name: str) -> bool:
    return "inplace" in name.lower() or "assign" in name.lower()
