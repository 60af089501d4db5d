"""Every MindSpore internal this package relies on, and what happens if a version lacks it. Made for 2.10, tested with 2.9 too; older ones
do not dispatch ops to Python. Nothing but this and mindspore_patches, which exchanges some of them, imports internals.

What must be there (the capture cannot work without it) raises UnsupportedError with the version; what only makes something nicer
is left out with one notice.
"""
from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from .. import _core
from ..errors import UnsupportedError
from .emit import BF16
from .internals import Internals

TESTED = "2.9 and 2.10"


_inner = Internals("MindSpore", ms.__version__, TESTED, "Without @dvm.jit the program runs as usual")
_required, _optional = _inner.required, _inner.optional


# ---- dispatch, autograd, execution ---------------------------------------------------------------------------------------------------

def _dispatch_mode() -> type:
    from mindspore.utils import MsDispatchMode

    return MsDispatchMode


def _executor() -> Any:
    try:  # where it is since 2.9, which warns of the old place
        from mindspore.graph.api import _pynative_executor
    except ImportError:
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


class _Captures:
    """How many captures run, where `enable_grad` is one for all threads."""

    lock = threading.Lock()
    running = 0
    before = True


@functools.cache
def _one_for_all_threads() -> bool:
    # In 2.9 `enable_grad` is the process's, in 2.10 each thread's.
    before = enable_grad()
    thread = threading.Thread(target=set_enable_grad, args=(not before,))
    thread.start()
    thread.join()
    shared = enable_grad() != before
    set_enable_grad(before)
    return shared


def stop_recording() -> bool:
    """A capture begins: MindSpore records no gradient meanwhile. What `record_again` takes."""
    if not _one_for_all_threads():
        before = enable_grad()
        set_enable_grad(False)
        return before
    with _Captures.lock:
        if not _Captures.running:
            _Captures.before = enable_grad()
        _Captures.running += 1
        set_enable_grad(False)
        return _Captures.before


def record_again(before: bool) -> None:
    """A capture ends."""
    if not _one_for_all_threads():
        set_enable_grad(before)
        return
    with _Captures.lock:
        _Captures.running -= 1
        if not _Captures.running:
            set_enable_grad(before)


def seed() -> int:
    """What the user gave ms.set_seed; 0 if nothing."""
    return int(ms.get_seed() or 0)


from_numpy: Callable[[Any], Tensor] = _required("TensorPy.from_numpy (shares memory)", lambda: Tensor.__mro__[1].from_numpy)


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


class _Recording(threading.local):
    depth = 0  # functions under grad that run on this thread
    unwatched = True  # one may have begun before leaves_no_gradient was in its way


_recording = _Recording()
_RECORDERS = ("_pynative_func_grad_forward", "_pynative_func_grad_backward", "_complex_call")  # of MindSpore, by the name of their code


def recording_gradient() -> bool:
    """Whether a backward that runs now is itself part of a function under grad."""
    return grad_enabled() and (_recording.depth > 0 or (_recording.unwatched and _on_the_stack(_RECORDERS[:1])))


def gradient_wanted() -> bool:
    """Whether what is called now is recorded for a gradient. Ends a recording that failed before leaves_no_gradient could see it."""
    wanted = grad_enabled()
    if _recording.unwatched and not _recording.depth:
        _recording.unwatched = wanted and _on_the_stack(_RECORDERS)
        if wanted and not _recording.unwatched:
            _end_recording()
            return False
    return wanted


def _on_the_stack(names: Sequence[str]) -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in names:
        frame = frame.f_back
    return frame is not None


def _end_recording() -> None:
    _native.set_grad_flag(False)
    _native.clear_res()


def leaves_no_gradient(function: Callable[..., Any], records: Callable[[Any], bool]) -> Callable[..., Any]:
    """A function of MindSpore's that records a gradient (if records(first argument)) or computes one, made to leave nothing behind when
    it fails: MindSpore would go on believing that gradients are wanted, and record everything later for one that never comes."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        cell: Any = args[0] if args and isinstance(args[0], nn.Cell) else None
        before = (cell.requires_grad, cell.is_top_cell) if cell is not None else None
        recording = records(args[0]) if args else False
        _recording.depth += recording
        try:
            return function(*args, **kwargs)
        except BaseException:
            if before is not None:
                cell.requires_grad, cell.is_top_cell = before
            if _recording.depth == recording:  # nothing around it records
                _end_recording()
            raise
        finally:
            _recording.depth -= recording

    return call


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
    with recording(True):
        found = ops.GradOperation(get_all=True, sens_param=True)(function)(*inputs, gradients)
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


class _Probe(DispatchMode):
    """Learns from an op, which it does not run, where its operand lies."""

    address = 0

    def __ms_dispatch__(self, func: Any, args: tuple, kwargs: dict | None = None) -> Any:
        self.address = args[0]._data_ptr()
        return args[0]


def is_view(tensor: Tensor) -> bool:
    """Whether a tensor is a view of another: MindSpore hands ops a copy of such a tensor, made before they are dispatched."""
    if not tensor.is_contiguous() or tensor.storage_offset():
        return True
    probe = _Probe()
    if not _probed(tensor, probe):  # in the middle of a dispatch; that is a thread's own
        thread = threading.Thread(target=_probed, args=(tensor, probe))
        thread.start()
        thread.join()
    return probe.address != tensor._data_ptr()


def _probed(tensor: Tensor, probe: _Probe) -> bool:
    with recording(False), probe:
        tensor.logical_not()
    return probe.address != 0


@contextlib.contextmanager
def recording(wanted: bool) -> Iterator[None]:
    """Whether what MindSpore runs here is recorded for a gradient, if one is asked for around it."""
    before = enable_grad()
    set_enable_grad(wanted)
    try:
        yield
    finally:
        set_enable_grad(before)


def own(tensor: Tensor) -> Tensor:
    """A tensor of the same values with memory of its own, which a gradient flows through."""
    return tensor * 1 if needs_grad(tensor) else from_numpy(np.array(tensor.asnumpy(), copy=True))


# Dtypes that NumPy has not, of a byte each, by the name that MindSpore prints: its asnumpy has no numbers of them.
_BYTES = {"Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2", "HiFloat8": "hifloat8", "Int4": "int4x2"}
NOT_NUMPY = frozenset(_BYTES.values())


def dtype_name(tensor: Tensor) -> str:
    """`float32`, `complex64`, `float8_e4m3fn`."""
    name = str(tensor.dtype)
    return _BYTES.get(name, name.lower())


class _Memory:
    """A tensor's bytes for NumPy, which holds this, and this the tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.__array_interface__ = {"shape": tuple(tensor.shape), "strides": tuple(tensor.stride()), "typestr": "|u1", "version": 3,
                                    "data": (tensor.data_ptr(), True)}


def bits(tensor: Tensor) -> np.ndarray:
    """The bytes of a tensor whose elements have one each: a view."""
    return np.asarray(_Memory(tensor))


def is_complex(tensor: Tensor) -> bool:
    return tensor.dtype in (ms.complex64, ms.complex128)


def is_parameter(tensor: Tensor) -> bool:
    return isinstance(tensor, ms.Parameter)


def has_backward_hooks(cell: Any) -> bool:
    """Whether hooks wait for a cell's gradients."""
    return bool(getattr(cell, "_backward_hook", None) or getattr(cell, "_backward_pre_hook", None))


# (tensor, value): the tensor object has value's memory from now on.
replace_data: Callable[[Tensor, Tensor], None] = _required("TensorPy.assign_value_cpp", lambda: Tensor.__mro__[1].assign_value_cpp)


def same_memory(tensor: Tensor) -> Any:
    """Another object over the tensor's memory, which keeps it when the tensor itself gets other memory."""
    return Tensor.__mro__[1](tensor)


def is_primitive(value: Any) -> bool:
    return isinstance(value, ops.Primitive)
