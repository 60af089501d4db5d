"""The arrays at a kernel's ends: what is bound to its loads is checked, what its stores are written into is found or made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import bfloat16, holds
from ..errors import ArgumentError, DtypeError, ShapeError, where
from .array import numpy_of
from .builder_io import Ends
from .builder_lower import Lowering
from .builder_objects import NDObject, fail, now
from .builder_rules import misuse, reproduced


class Arrays(Ends):
    """Mixed into Kernel: arrays by node, and the rules for them."""

    flags: frozenset[str]
    _arrays: dict[int, np.ndarray]  # of loads
    _targets: dict[int, np.ndarray]  # of stores, given by set_output
    _results: dict[int, np.ndarray]  # of stores, of the last run
    _drying: bool  # code is made on arrays that nobody sees

    def _checked(self, load: NDObject, value: Any) -> np.ndarray:
        array = numpy_of(value)
        if not holds(array, load.dtype_):
            raise fail(
                DtypeError,
                f"declared {load.dtype_}, called with {array.dtype}{list(array.shape)}; convert the argument with "
                + (f".astype({load.dtype_.name!r})" if load.dtype_ is not bfloat16 else "dvm.convert_to_bf16(...)"),
                load.place,
                load,
                op=load.op,
            )
        declared = now(load.attrs["shape"])
        if load.op == "Load" and not self._any_shape(declared):
            fits = len(declared) == array.ndim and all(want < 0 or want == dim for want, dim in zip(declared, array.shape, strict=True))
            if not fits:
                raise fail(ShapeError, f"declared {list(declared)}, called with {list(array.shape)}", load.place, load, op=load.op)
        plain = array.dtype.isnative and array.flags.aligned and not any(step % array.itemsize for step in array.strides)
        if load.op == "ViewLoad" or not plain:
            array = np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
        return array

    def _check_symbols(self) -> None:
        # Open extents of one number (-2, -3 ...; in a symbolic kernel -1 too) are one extent.
        known: dict[int, tuple[int, NDObject]] = {}
        for node in self._symbolic:
            array = self._arrays.get(node.id)
            for want, dim in zip(now(node.attrs["shape"]), () if array is None else array.shape, strict=False):
                if want < -1 or want == -1 and "priv1" in self.flags:
                    other, first = known.setdefault(want, (dim, node))
                    if other != dim:
                        raise fail(ShapeError, f"extent {want} is {other} in {first!r} and {dim}", node.place, node, op=node.op)

    def _any_shape(self, declared: Sequence[int]) -> bool:
        return False

    def _allocate(self, lowering: Lowering) -> tuple[list[tuple[int, np.ndarray]], list[Callable[[], None]]]:
        # (value, contiguous memory it is written to), and what is left to do once it is written
        outputs: list[tuple[int, np.ndarray]] = []
        finish: list[Callable[[], None]] = []
        for store in self.stores:
            value, shape = lowering.value(store), lowering.shape(store)
            target, result = self._target(store, shape)
            apart = target is None or self._apart(store, target)
            array = _core.empty(shape, store.dtype_.code)
            if target is None:
                result = array
            elif apart and target.flags.c_contiguous and target.dtype.isnative and target.flags.aligned:
                array = target
            else:
                finish.append(lambda to=target, source=array: np.copyto(to, source))  # type: ignore[misc]
            self._results[store.id] = array if result is None else result
            if array.size:
                outputs.append((value, array))
        return outputs, finish

    def _apart(self, store: NDObject, target: np.ndarray) -> bool:
        # Whether what is written meets nothing that is read. An input may be written over as a whole: from memory of its own.
        met = [number for number, array in self._arrays.items() if _meet(array, target)]
        for number in met:
            array = self._arrays[number]
            if _whereabouts(array) != _whereabouts(target) and not reproduced("alias"):
                start = array.ctypes.data - target.ctypes.data
                first, last = max(start, 0), min(start + _span(array), _span(target)) - 1
                read = self.nodes[number]
                file, line = where(read.place)
                what = f"{read!r} of {file}:{line}"
                raise misuse("alias", store.place, store, read, op=store.op, kind=ArgumentError, first=first, last=last, load=what)
        return not met

    def _target(self, store: NDObject, shape: tuple[int, ...]) -> tuple[np.ndarray | None, np.ndarray | None]:
        # (the part of the array given for a store that it writes, the array)
        base = self._targets.get(store.id)
        if base is not None and not base.flags.writeable:
            raise fail(
                ArgumentError,
                f"the array given for the output, {base.dtype}{list(base.shape)}, is read only; pass one that may be written, "
                "x.copy() for example",
                store.place,
                store,
                op=store.op,
            )
        if base is not None and base.dtype.name == "bfloat16":
            base = base.view(np.uint16)
        target = base
        if store.op == "ViewStore":
            stride = now(store.attrs["stride"])
            if self._drying:
                base = np.zeros(reach(shape, stride), store.dtype_.numpy)
            target = strided(base, shape, stride, store)
            if base is not None and store.attrs.get("clear"):
                base[...] = 0
        if target is not None and (target.shape != shape or target.dtype != store.dtype_.numpy):
            raise fail(
                ShapeError,
                f"the output is {store.dtype_}{list(shape)}, the array given for it {target.dtype}{list(target.shape)}",
                store.place,
                store,
                op=store.op,
            )
        return target, base


def _span(array: np.ndarray) -> int:
    return array.itemsize + sum(abs(step) * (dim - 1) for step, dim in zip(array.strides, array.shape, strict=True))


def _whereabouts(array: np.ndarray) -> tuple[Any, ...]:
    return array.ctypes.data, array.strides, array.shape


def _meet(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.may_share_memory(a, b) and bool(np.shares_memory(a, b, max_work=10_000))
    except np.exceptions.TooHardError:
        return True


def strided(base: np.ndarray | None, shape: tuple[int, ...], stride: tuple[int, ...], store: NDObject) -> np.ndarray:
    """The elements of `base` a view store writes."""
    if base is None or not base.flags.c_contiguous:
        raise misuse("view-store-base", store.place, store, op=store.op, kind=ArgumentError)
    if any(step == 0 and dim > 1 for step, dim in zip(stride, shape, strict=False)):
        text = f"strides {list(stride)} for {list(shape)} put several elements in one place"
        raise fail(ShapeError, text, store.place, store, op=store.op)
    last = reach(shape, stride) - 1
    if len(stride) != len(shape) or min(stride, default=0) < 0 or last >= base.size and 0 not in shape:
        raise fail(
            ShapeError,
            f"strides {list(stride)} for {list(shape)} reach element {last}, the array has {base.size}",
            store.place,
            store,
            op=store.op,
        )
    return np.lib.stride_tricks.as_strided(base, shape, [step * base.itemsize for step in stride])


def reach(shape: Sequence[int], stride: Any) -> int:
    """Elements from the first to the last of a strided view, both included."""
    return 1 + sum(step * (dim - 1) for step, dim in zip(now(stride), shape, strict=False) if dim > 1)
