"""Ops we lack: MindSpore runs them itself, forward and backward, in the middle of a capture."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mindspore import Tensor, ops

from ..errors import UnsupportedError, where
from . import mindspore_compat as compat
from . import mindspore_select as select
from . import observed
from .emit import FLOATS
from .lowering import LOWER, Unlowerable
from .notices import notice
from .plan import ForeignStep
from .tape import Foreign, Input

# Computed by MindSpore on the host for its own Python code; they have no tensors to wait for.
HOST = frozenset(("typeof", "make_range", "sequence_len", "make_tuple", "tuple_getitem"))

# In-place ops: op -> what the changed tensor (first argument) becomes. Other in-place ops are refused by name.
_IN_PLACE: dict[str, Callable[..., int]] = {
    "InplaceCopy": lambda c, a, b, *_: _filled(c, a, c.operand(b)),
    "Assign": lambda c, a, b: _filled(c, a, c.operand(b)),
    "InplaceZero": lambda c, a: _filled(c, a, 0.0),
    "InplaceFillScalar": lambda c, a, number: _filled(c, a, float(number)),
    "InplaceFillTensor": lambda c, a, b: _filled(c, a, c.operand(b)),
    "InplaceMaskedFillScalar": lambda c, *call: LOWER["MaskedFillScalar"](c, *call),
    "InplaceMaskedFillTensor": lambda c, *call: LOWER["MaskedFill"](c, *call),
    "InplaceClampScalar": lambda c, *call: LOWER["ClampScalar"](c, *call),
    "InplaceClampTensor": lambda c, *call: LOWER["ClampTensor"](c, *call),
    "InplaceScatterSrc": select.scatter,
    "InplaceScatterValue": select.scatter,
    "InplaceScatterAdd": select.scatter_add,
    "InplaceIndexAddExt": select.index_add,
    "InplaceIndexCopy": select.index_copy,
    "InplaceIndexFillScalar": select.index_copy,
    "InplaceIndexFillTensor": select.index_copy,
    "InplaceIndexPut": select.index_put,
    "InnerInplaceIndexPut": select.index_put,
    "InplaceUniform": select.uniform,
    "AssignAdd": lambda c, a, b: c.add(c.value(a), c.cast(c.value(b), c.dtype(c.value(a)))),
    "AssignSub": lambda c, a, b: c.sub(c.value(a), c.cast(c.value(b), c.dtype(c.value(a)))),
}


@dataclass(slots=True)
class Call:
    """A call MindSpore made, kept so that its gradient can be computed."""

    name: str
    args: tuple  # as dispatched; tensors are the call's own
    tensors: list[Tensor]  # its float tensor arguments, in order
    results: list[tuple[tuple[int, ...], Any]]  # shape and MindSpore dtype of every result

    def gradients(self, step: ForeignStep, arriving: Sequence[Tensor | None]) -> list[Tensor]:
        """MindSpore's gradients for the wanted operands, from the gradients of the results (None: zero)."""
        wanted = tuple(self.tensors[i] for i in step.wanted)

        def again(*given: Tensor) -> Any:
            swap = dict(zip(map(id, wanted), given, strict=True))
            return compat.call_again(self.name, _replaced(self.args, swap))

        weights = tuple(ops.zeros(*kind) if given is None else given for given, kind in zip(arriving, self.results, strict=True))
        fresh = tuple(compat.from_numpy(tensor.asnumpy()) for tensor in wanted)  # same memory; none is another's twin or part of a tape
        found = list(compat.vjp(again, fresh, weights if len(weights) > 1 else weights[0]))
        if any(compat.is_complex(gradient) for gradient in found):
            raise UnsupportedError(f"{self.name}: MindSpore gives a complex gradient for a real operand; gradients do not go "
                                   f"through complex numbers in a captured function, take this op out of it", op=self.name)
        return found


def run(c: Any, func: Any, name: str, args: tuple, call: tuple) -> Any:
    """Lets MindSpore execute a dispatched op. args: as dispatched; call: the op's own arguments."""
    tensors = _tensors(call)
    if not tensors:
        return _execute(c, func, args)
    if name in _IN_PLACE:
        return _in_place(c, name, call)
    if name.startswith(("Inplace", "Assign", "Scatter")) and "Ext" not in name:
        c.refuse(f"{name} changes a tensor in place; that is not supported inside a captured function, make a new tensor instead")
    file, line = where(c.place)
    notice(f"{name} is run by MindSpore: no instruction of ours computes it here", path=file, line=line, category="fallback",
           once=("fallback", name, file, line))
    observed.of(c.function).fallbacks[name] += 1
    c.flush()
    c.untraceable = f"MindSpore runs {name}"
    results = observed.of(c.function).elsewhere(name, lambda: _execute(c, func, args, name))
    return _adopt(c, name, args, tensors, results)


def _execute(c: Any, func: Any, args: tuple, name: str = "") -> Any:
    c.paused = True
    try:
        results = func(*args)
        if name:
            compat.synchronize()  # a failing kernel says so now, at this op
        return results
    except RuntimeError as error:
        if "unregistered" not in str(error) and "not supported on this device" not in str(error):
            raise
        file, line = where(c.place)
        raise UnsupportedError(f"{name or func.name}: MindSpore has no kernel for this op on this device, and no instruction here computes "
                               f"it; write it with other ops", op=name, file=file, line=line) from None
    finally:
        c.paused = False


def _in_place(c: Any, name: str, call: tuple) -> Any:
    try:
        value = _IN_PLACE[name](c, *call)
    except Unlowerable:
        c.refuse(f"{name} on a {call[0].dtype} tensor is not supported inside a captured function")
    c.replace(call[0], value, name)
    return call[0]


def _filled(c: Any, target: Tensor, new: Any) -> int:
    value = c.value(target)
    shape, dtype = c.shape(value), c.dtype(value)
    if isinstance(new, float):
        return c.full(new, shape, dtype)
    new = c.cast(new, dtype)
    return c.broadcast(new, shape) if c.shape(new) != shape else c.copy(new)


# ---- results and gradients -----------------------------------------------------------------------------------------------------------

def _adopt(c: Any, name: str, args: tuple, tensors: list[Tensor], results: Any) -> Any:
    """Makes the results inputs of the graph; if a gradient flows through the call, it becomes a foreign call of the tape."""
    found = results if isinstance(results, (tuple, list)) else (results,)
    found = [_own_memory(c, tensor) for tensor in found]
    if c.gradients and not c.detaching:
        tensors = list({id(tensor): tensor for tensor in tensors}.values())  # x * x: one operand, whose gradient is the sum
        operands = [known(c, tensor) for tensor in tensors]
        if any(value >= 0 and _flows(c, value) for value in operands):
            ids = tuple(_register(c, tensor, len(c.foreign), name) for tensor in found)
            record = Foreign(tuple(operands), ids, c.place)
            c.foreign.append(record)
            c.calls.append(Call(name, args, tensors, [(tensor.shape, tensor.dtype) for tensor in found]))
    return type(results)(found) if isinstance(results, (tuple, list)) else found[0]


def _own_memory(c: Any, result: Any) -> Any:
    # A result that shares an address with a known tensor (a view of it) would be taken for it.
    if not isinstance(result, Tensor) or not _is_known(c, result.data_ptr()):
        return result
    return Tensor(np.array(result.asnumpy(), copy=True))


def _is_known(c: Any, address: int) -> bool:
    return address in c.own or any(key[0] == address for key in c.inputs)


def known(c: Any, tensor: Tensor) -> int:
    """The value of a tensor of any dtype the tape can hold, -1 for another."""
    address = tensor.data_ptr()
    if address in c.own:
        return c.own[address]
    return c.input(tensor, address) if tensor.dtype in compat.DTYPE_OF else -1


def _register(c: Any, tensor: Any, call: int, name: str) -> int:
    if not isinstance(tensor, Tensor):
        return -1
    dtype = compat.DTYPE_OF.get(tensor.dtype, 0)
    if not dtype and compat.is_complex(tensor):
        c.refuse(f"{name} gives a {tensor.dtype} tensor; gradients do not go through complex numbers in a captured function")
    return c.input(tensor, tensor.data_ptr(), call, needs=dtype in FLOATS) if dtype else -1


def _flows(c: Any, value: int) -> bool:
    # Whether a gradient may be wanted for a value: some input under it wants one.
    seen, stack = set(), [value]
    while stack:
        v = stack.pop()
        if v in seen or c.dtype(v) not in FLOATS:
            continue
        seen.add(v)
        entry = c.entries[v]
        if isinstance(entry, Input):
            if entry.needs_grad:
                return True
        else:
            stack += [o for o in entry[1] if o >= 0]
    return False


def _replaced(args: Any, given: dict[int, Tensor]) -> Any:
    # Tensors no gradient is wanted for are copied: some ops (BatchNorm's statistics) change theirs, and they have run once already.
    if isinstance(args, (tuple, list)):
        return type(args)([_replaced(item, given) for item in args])
    if not isinstance(args, Tensor):
        return args
    return given[id(args)] if id(args) in given else Tensor(args.asnumpy().copy())


def _tensors(args: Any) -> list[Tensor]:
    if isinstance(args, Tensor):
        return [args]
    return [tensor for item in args for tensor in _tensors(item)] if isinstance(args, (tuple, list)) else []
