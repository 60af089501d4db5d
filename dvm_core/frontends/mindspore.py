"""Capture of MindSpore code: every op MindSpore would dispatch is recorded on our graph instead, and runs when its values are wanted.

Results are MindSpore tensors over memory that is filled at the flush. A tensor is known by the address of that memory: MindSpore makes
a new Python object of the same tensor whenever one crosses its C++ side. Each result has memory of its own, so no two share an address.
"""
from __future__ import annotations

import collections
import contextlib
import sys
from collections.abc import Collection, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
from mindspore import Tensor

from .. import _core
from ..errors import ArgumentError, Error, UnsupportedError, convert, where
from . import capture as captures
from . import (  # noqa: F401  (some only fill the table)
    custom,
    fallback,
    grad,
    mindspore_activations,
    mindspore_formulas,
    mindspore_index,
    mindspore_nn,
    mindspore_norm,
    mindspore_ops,
    mindspore_optimizers,
    mindspore_recurrent,
    mindspore_select,
    mindspore_shapes,
    mindspore_windows,
)
from . import mindspore_compat as compat
from .emit import BOOL, F32, FLOATS, is_view
from .lowering import LOWER, Typed, Unlowerable, Whole
from .mindspore_views import Search
from .names import line_of
from .tape import DETACHED, Input, Tape

_INTO_A_VIEW = "{} writes into a view of another tensor; write to that tensor itself, or copy the view first"
_EXACT = 2.0 ** 53  # integers up to here survive as an immediate


class MsCapture(captures.Capture, compat.DispatchMode, Tape):
    """One call of a captured MindSpore function while it records."""

    front_end = "mindspore"

    def __init__(self, function: str, step: int, gradients: bool, arguments: dict[int, Tensor] | None = None,
                 tracing: bool = False, copies: Collection[int] = (), search: Search | None = None) -> None:
        graph = _core.Graph(function)
        graph.step = step
        captures.Capture.__init__(self, graph, function, step)
        Tape.__init__(self, graph)
        self.gradients = gradients  # a backward program is wanted
        self.arguments = arguments or {}  # address -> argument of the call: inputs that are no parameters
        self.copies = copies  # addresses of arguments that stand for others
        self.search = search if gradients else None  # for views that are read elsewhere
        self.tracing = tracing  # to be replayed: tensors never become immediates
        self.untraceable = ""  # why it cannot be replayed
        self.origins: dict[int, tuple[int, Tensor]] = {}  # when tracing: value id -> address and tensor of an input
        self.calls: list[fallback.Call | custom.CustomCall] = []  # foreign calls, by their number on the tape
        self.held: list[Any] = []  # memory of results that became inputs
        self.foreign_results: dict[int, int] = {}  # address -> value id of a tensor MindSpore made in a foreign call
        self.inputs: dict[tuple, int] = {}  # (address, shape, dtype, strides, wants a gradient) -> value id
        self.recent: dict[int, tuple] = {}  # address -> (value id, shape, MindSpore dtype, wants a gradient) of a contiguous input
        self.leaves: dict[int, Tensor] = {}  # value id -> input tensor that wants a gradient
        self.own: dict[int, int] = {}  # address -> value id of a result
        self.waiting: dict[int, tuple[int, Any]] = {}  # address -> (value id, array): handed out, not filled yet
        self.filled: dict[int, tuple[int, Any]] = {}
        self.replaced: list[Any] = []  # old memory of tensors changed in place: what is pending, or a gradient, still reads it
        self.changed: dict[int, tuple[Tensor, str]] = {}  # by its address now: a tensor from outside that was changed in place, its class
        self.exchanged: list[tuple[Tensor, int]] = []  # when tracing: tensors that were given other memory, and the address they had
        self.constants: dict[int, Tensor] = {}  # when tracing, by address: tensors that MindSpore made of a Python number in this call
        self.detaching = 0  # under how many no_grad the code that runs is
        self.aliases: set[int] = set()  # copies made for no_grad, which stand for what they are copies of
        self.draws = 0  # random sequences used so far
        self.place = 0
        self.at = 0  # the place of what a compiled graph does; 0: the line that the program is at
        self.primitive: Any = None  # of the legacy op being lowered; it holds attributes
        self.paused = False  # MindSpore runs what is dispatched
        self.dispatched = 0  # ops so far
        self.failed = False  # a flush raised: nothing recorded since can be computed
        self.flushed = 0  # length of the tape at the last flush
        self._record = graph.op

    # ---- dispatch --------------------------------------------------------------------------------------------------------------------

    def __ms_dispatch__(self, func: Any, args: tuple, kwargs: dict | None = None) -> Any:
        if self.paused:
            return func(*args, **(kwargs or {}))
        name = func.name
        call = args
        if len(args) == 3 and args[2].__class__ is tuple and compat.is_primitive(args[0]):
            self.primitive = args[0]
            call = args[2]
        lower = LOWER.get(name)
        if lower is None and name in fallback.HOST:
            return func(*args)
        self.place = self.at or _core.user_place()
        self.dispatched += 1
        if lower is None:
            return fallback.run(self, func, name, args, call)
        try:
            result = lower(self, *call)
        except Unlowerable:
            return fallback.run(self, func, name, args, call)
        except _core.Error as error:
            raise convert(error, op=name, place=self.place) from None
        if result.__class__ is int:
            return self.tensor(result)
        if result.__class__ is tuple:
            return tuple([self.tensor(value) for value in result])
        return result

    # ---- tensors to values and back --------------------------------------------------------------------------------------------------

    def floating(self, value: int) -> int:
        """The value as floats: integers and bools become float32."""
        return value if self.dtype(value) in FLOATS else self.cast(value, F32)

    def value(self, tensor: Tensor) -> int:
        """The value of a tensor; one that was made elsewhere becomes an input."""
        try:
            address = tensor._data_ptr()
        except AttributeError:
            raise Unlowerable(f"{type(tensor).__name__} where a tensor is expected") from None
        found = self.own.get(address)
        if found is not None:
            return found
        known = self.recent.get(address)
        if (known is not None and tensor.dtype is known[2] and tensor.shape == known[1] and tensor.is_contiguous()
                and self.wants(tensor) is known[3]):
            return known[0]
        return self.input(tensor, address)

    def operand(self, x: Any) -> Any:
        """As `value`, but Python numbers and constant scalars become immediates (floats). Unlowerable: an integer no float holds."""
        if x.__class__ is not Tensor and not isinstance(x, Tensor):
            if x.__class__ is float:
                return x
            if x.__class__ is bool:
                return Typed(x, BOOL)
            if isinstance(x, int) and not -_EXACT <= x <= _EXACT:
                raise Unlowerable(str(x))
            return Whole(x)
        address = x._data_ptr()
        found = self.own.get(address)
        if found is not None:
            return found
        constant = address in self.constants if self.tracing else address not in self.foreign_results and not self.wants(x)
        if constant and x.shape == ():
            before, self.paused = self.paused, True  # it is not the program that reads it
            try:
                number, dtype = x._item(), compat.DTYPE_OF.get(x.dtype, 0)
            finally:
                self.paused = before
            if dtype and (number.__class__ is float or -_EXACT <= number <= _EXACT):
                return Typed(number, dtype)
        return self.value(x)

    def input(self, tensor: Tensor, address: int, foreign: int = -1, needs: bool | None = None) -> int:
        """The value of a tensor that was not made by this capture."""
        if not address:
            tensor.asnumpy()  # a parameter whose initializer has not run
            address = tensor.data_ptr()
        key = _, shape, dtype, strides, wanted = self._key(tensor, address)
        if not dtype:
            raise Unlowerable(str(tensor.dtype))
        known = self.inputs.get(key)
        if known is not None:
            return known
        leaf = tensor
        if needs is None:
            needs = wanted and dtype in FLOATS
            if self.search is not None and not wanted and dtype in FLOATS and address not in self.arguments and not self.detaching:
                leaf = self.search.original(self, tensor, address)
                needs = leaf is not tensor
        cls = "parameter" if needs and address not in self.arguments and foreign < 0 else ""
        value = self.add_input(address, shape, dtype, strides, tensor, cls, needs, foreign)
        self.inputs[key] = value
        if self.tracing:
            self.origins[value] = (address, tensor)
        if strides is None:
            self.recent[address] = (value, shape, tensor.dtype, wanted)
        if foreign >= 0:
            self.foreign_results[address] = value
        elif needs:
            self.leaves[value] = leaf
        told = captures.on_input  # which another thread may take away
        if told is not None:
            told()
        return value

    def wants(self, tensor: Tensor) -> bool:
        """Whether a gradient is wanted for a tensor as it is given: one that is detached may share its memory with one that is not."""
        return self.gradients and compat.needs_grad(tensor)

    def _key(self, tensor: Tensor, address: int) -> tuple:
        strides = None if tensor.is_contiguous() else tuple(tensor.stride())
        return address, tensor.shape, compat.DTYPE_OF.get(tensor.dtype, 0), strides, self.wants(tensor)

    def check_range(self, tensor: Tensor, value: int, extent: int, what: str, negative: bool = False) -> None:
        """Raises Error at the user's line if indices that are in memory already do not fit."""
        if not isinstance(self.entries[value], Input) or not tensor.size:
            return
        compat.synchronize()
        array = tensor.asnumpy()
        low, high = int(array.min()), int(array.max())
        if high >= extent or low < (-extent if negative else 0):
            file, line = where(self.place)
            wrong = high if high >= extent else low
            raise ArgumentError(f"{what} of {wrong} does not fit an extent of {extent}; {low} to {high} are given", file=file, line=line)

    def draw(self, shape: tuple[int, ...]) -> int:
        """Uniform random numbers. They depend on MindSpore's seed, the step and how often this call has drawn: a step that is run again
        draws the same ones, and its gradient sees the mask of its forward."""
        self.untraceable = "it draws random numbers"
        self.draws += 1
        return self.random(shape, compat.seed(), self.step << 32 | self.draws)

    def host_input(self, array: Any) -> int:
        """An operand made by the front end itself (the positions where a mask is true)."""
        self.untraceable = "it looks up a mask"
        tensor = compat.from_numpy(array)
        return self.input(tensor, tensor.data_ptr())

    def tensor(self, value: int) -> Any:
        """A MindSpore tensor for a value, filled at the next flush."""
        if value.__class__ is not int:
            return value
        graph = self.graph
        if self.detaching and self.gradients and graph.dtype(value) in FLOATS:
            self.aliases.add(copied := self.copy(value))
            value = self.group(DETACHED, copied, (value,))
        array = compat.empty(graph.shape(value), graph.dtype(value))
        result = compat.from_numpy(array)
        address = result._data_ptr()
        self.own[address] = value
        self.waiting[address] = (value, array)
        return result

    def detach(self, tensor: Tensor, call: int, needs: bool) -> int:
        """Makes a computed result an input of its own: the result of a foreign call."""
        address = tensor.data_ptr()
        del self.own[address]
        self.held.append(self.filled.pop(address)[1])
        return self.input(tensor, address, call, needs)

    def find(self, tensor: Any) -> int | None:
        if not isinstance(tensor, Tensor):
            return None
        address = tensor.data_ptr()
        found = self.own.get(address)
        if found is not None:
            return found
        return self.inputs.get(self._key(tensor, address))

    def peek(self, tensor: Any) -> tuple[np.ndarray, str] | None:
        if not isinstance(tensor, Tensor) or not tensor.data_ptr():
            return None
        compat.synchronize()
        name = compat.dtype_name(tensor)
        return (compat.bits(tensor) if name in compat.NOT_NUMPY else tensor.asnumpy(), name)

    def name_of(self, value: int) -> str:
        name = getattr(self.leaves.get(value), "name", "")
        return name if isinstance(name, str) else ""

    # ---- running ---------------------------------------------------------------------------------------------------------------------

    def flush(self, keep: Sequence[int] | None = None) -> None:
        """Runs what is pending. Tensors somebody still holds are filled; of the rest, `keep` (default: what a gradient may read)."""
        graph = self.graph
        outputs, gone = [], []
        for address, (value, array) in self.waiting.items():
            if sys.getrefcount(array) > 3:  # the pair, this loop and the call hold it; one more is a tensor
                outputs.append((value, address))
            else:
                gone.append(address)
        if keep is None:
            keep = ()
            if self.gradients and graph.pending():
                keep = grad.candidates(self, self.flushed)
        stored = {value for value, _ in outputs}
        compat.synchronize()  # inputs may still be on their way
        try:
            graph.flush([value for value in keep if value not in stored and not graph.in_memory(value)], outputs)
        except _core.Error as error:
            self.failed = True
            raise convert(error) from None
        self.flushed = len(self.entries)
        for address in gone:
            del self.own[address], self.waiting[address]
        self.filled.update(self.waiting)
        self.waiting.clear()
        if not self.gradients:
            self._forget()

    def flush_all(self) -> None:
        graph = self.graph
        self.flush([value for value, entry in enumerate(self.entries) if entry.__class__ is tuple and not graph.in_memory(value)])

    def _forget(self) -> None:
        # Filled results nobody holds any more; only gradients could still want them.
        for address in [address for address, (_, array) in self.filled.items() if sys.getrefcount(array) <= 3]:
            self.graph.release([self.filled.pop(address)[0]])
            del self.own[address]

    def before_read(self, tensor: Tensor) -> None:
        """A tensor's elements are about to be read. No trace stands for that, whosever tensor it is: the next call may bring another."""
        address = tensor.data_ptr()
        pending = address in self.waiting
        if pending or (self.tracing and address and not self.paused):
            self.untraceable = self.untraceable or "it reads a value in Python"
        if pending:
            self.flush()

    # ---- changing a tensor in place --------------------------------------------------------------------------------------------------

    def replace(self, tensor: Tensor, value: int, what: str, cls: str = "") -> None:
        """The tensor object stands for another value from now on. Raises UnsupportedError where MindSpore's result would differ.
        cls: what its buffer is to the memory log, default by the tensor."""
        address = tensor.data_ptr()
        if address in self.copies or (address in self.arguments and compat.is_view(tensor)) or tensor.storage_offset():
            self.refuse(_INTO_A_VIEW.format(what))
        old = self.find(tensor)
        if old is not None:
            entry = self.entries[old]
            if isinstance(entry, Input) and entry.needs_grad:
                self.refuse(f"{what} changes a tensor that wants a gradient; make a new tensor instead, for example with ops.where")
            living = self.living()
            if any(isinstance(self.entries[base], Input) or base in living for base in self._bases(old)):
                self.refuse(_INTO_A_VIEW.format(what))
            if any(old in self._bases(other) for other in living):
                self.refuse(f"{what} changes a tensor another one is a view of; copy it first (h = h.copy())")
        cls = cls or ("parameter" if compat.is_parameter(tensor) else "activation")
        inside = old is not None and address in self.own and address not in self.changed
        self.changed.pop(address, None)
        new = self.put(tensor, self.tensor(value), cls)
        if not inside:
            self.changed[new] = tensor, cls

    def put(self, tensor: Tensor, new: Tensor, cls: str) -> int:
        """The tensor object has the memory of `new` from now on; its address. cls: what the buffer is to the memory log."""
        self.replaced.append(compat.same_memory(tensor))
        address = new._data_ptr()
        _core.log_replaced(tensor._data_ptr(), address, cls)
        compat.replace_data(tensor, new)
        return address

    def living(self) -> list[int]:
        """Values some tensor outside still stands for."""
        ours = collections.Counter(tensor._data_ptr() for tensor in self.replaced)
        pairs = [*self.waiting.items(), *self.filled.items()]
        return [value for address, (value, array) in pairs if sys.getrefcount(array) > 3 + ours[address]]

    def _bases(self, value: int) -> list[int]:
        # What a value is a view of, and what that is a view of.
        found = []
        entry = self.entries[value]
        while not isinstance(entry, Input) and (is_view(entry[0]) or value in self.aliases):
            value = entry[1][0]
            entry = self.entries[value]
            found.append(value)
        return found

    def refuse(self, text: str, at: tuple[str, int] | None = None) -> NoReturn:
        """Raises UnsupportedError at the user's line (or at a given file and line)."""
        file, line = at or where(self.place)
        raise UnsupportedError(f"{text} (in the captured function {self.function}: {line_of(file, line)})", file=file, line=line)

    # ---- the call --------------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> MsCapture:
        self._depth = compat.mode_depth()
        compat.synchronize()
        self._before = compat.stop_recording()
        captures.push(self, sys._getframe(1))
        super().__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Literal[False]:
        compat.leave_modes(self._depth)
        captures.pop(self)
        compat.record_again(self._before)
        if error is not None and self.waiting and not self.failed:
            # What was recorded before the failure is good: tensors the user still holds get their values.
            with contextlib.suppress(Error):
                self.flush()
        return False
