"""Loads and stores of a kernel body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, where
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail, now, numbers
from .builder_rules import tensor_of
from .builder_shapes import Shaped


class Ends(Shaped):
    """Mixed into Kernel: where tensors come from and where they go."""

    stores: list[NDObject]
    flags: frozenset[str]
    _symbolic: list[NDObject]

    def load(self, shape: Any, dtype: Any) -> NDObject:
        """A contiguous input. -1 is a dimension that may differ from run to run."""
        return self._load("Load", numbers(shape), dtype)

    def view_load(self, shape: Any, stride: Any, *rest: Any) -> NDObject:
        """An input read with strides (in elements): 0 repeats, swapped strides transpose. rest: dtype, or offset and dtype."""
        if len(rest) not in (1, 2):
            given = f"{2 + len(rest)} arguments"
            raise fail(ArgumentError, f"takes shape, stride, [offset,] dtype, got {given}", _core.user_place(), op="ViewLoad")
        declared = rest[0] if len(rest) == 2 else 0
        return self._load("ViewLoad", numbers(shape), rest[-1], stride=numbers(stride), offset=0, declared=declared)

    def global_access(self, shape: Any, dtype: Any) -> NDObject:
        """An input that another load takes as its index."""
        return self.load(shape, dtype)

    def slice_load(self, shape: Any, start: Any, size: Any, dtype: Any) -> NDObject:
        """A box of an input: `size` elements from `start` along every axis."""
        return self._shaped("SliceViewLoad", self.load(shape, dtype), start=numbers(start), size=numbers(size))

    def stridedslice_load(self, shape: Any, start: Any, end: Any, step: Any, dtype: Any) -> NDObject:
        """x[start:end] along every axis; negative bounds count from the end. The step is 1."""
        if any(item != 1 for item in now(numbers(step))):
            raise fail(
                ArgumentError, f"step must be 1 along every axis, got {list(now(numbers(step)))}", _core.user_place(), op="StridedSliceLoad"
            )
        return self._shaped("StridedSliceLoad", self.load(shape, dtype), start=numbers(start), end=numbers(end))

    def gather_load(self, shape: Any, index: NDObject, dtype: Any, axis: int = 0, gather_mode: int = 0) -> NDObject:
        """Parts of an input chosen by an index along an axis: elements (mode 0; the index has the input's rank) or whole slices (1)."""
        if gather_mode not in (0, 1):
            text = f"gather_mode is 0 (elements) or 1 (slices), got {gather_mode!r}"
            raise fail(ArgumentError, text, _core.user_place(), op="GatherLoad")
        operands = (self.load(shape, dtype), tensor_of(index, "GatherLoad"))
        return self._node("GatherLoad", operands, operands[0].dtype_, _core.user_place(), axis=axis, gather_mode=gather_mode)

    def multi_load(self, shape: Any, dtype: Any) -> NDObject:
        """An input of which every rank has its own, for reducescatter."""
        return self.load(shape, dtype)

    def scalar(self, dtype: Any = None) -> ScalarRef:
        """A number given at each run."""
        return ScalarRef(dtype=dtype)

    def make_int(self, value: int = 0) -> ScalarRef:
        """A scalar with a value of its own, which `update` changes (a spelling of 2024)."""
        return ScalarRef(value)

    def make_float(self, value: float = 0.0) -> ScalarRef:
        """As `make_int`, of a float."""
        return ScalarRef(value)

    def int_array(self) -> IntArrayRef:
        """A list of dimensions given at each run."""
        return IntArrayRef()

    def _load(self, op: str, shape: Any, dtype: Any, **attrs: Any) -> NDObject:
        place = _core.user_place()
        file, line = where(place)
        node = self._node(op, (), dtype_of(dtype, file=file, line=line), place, shape=shape, **attrs)
        if not isinstance(shape, IntArrayRef) and all(dim >= 0 for dim in shape):
            node.dims = shape
        elif not isinstance(shape, IntArrayRef) and (min(shape) < -1 or "priv1" in self.flags):
            self._symbolic.append(node)
        return node

    # ---- stores --------------------------------------------------------------------------------

    def store(self, x: NDObject, dtype: Any = None) -> NDObject:
        """An output; cast if a dtype is given that differs."""
        if dtype is not None:
            x = self.cast(x, dtype)
        return self._store("Store", x)

    def view_store(self, x: NDObject, stride: Any, dtype: Any = None) -> NDObject:
        """An output written with strides (in elements) into an array given by `set_output`; what lies between keeps its content."""
        if dtype is not None:
            x = self.cast(x, dtype)
        return self._store("ViewStore", x, stride=numbers(stride))

    def pad_store(self, x: NDObject, pad: Any) -> NDObject:
        """An output whose last axis is `pad` zeros longer (or each axis by a list)."""
        return self._store("Store", self.stage_pad_store(x, pad))

    def stage_pad_store(self, x: NDObject, pad: Any) -> NDObject:
        """x with zeros behind, for a later stage (a spelling of 2024)."""
        return self._shaped("Pad", x, pad=pad if isinstance(pad, int) else numbers(pad))

    def concat_store(self, inputs: Sequence[NDObject], dim: int) -> NDObject:
        """Several tensors side by side as one output."""
        return self._store("Store", self.concat(inputs, dim))

    def _store(self, op: str, x: NDObject, **attrs: Any) -> NDObject:
        place = _core.user_place()
        node = self._node(op, (tensor_of(x, op, place),), x.dtype_, place, earlier=[store.id for store in self.stores], **attrs)
        self.stores.append(node)
        return node
