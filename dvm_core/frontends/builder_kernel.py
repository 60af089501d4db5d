"""`dvm.Kernel`: a graph under construction, and its runs. Built once; every run may bring other ranks and shapes."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import find
from ..errors import ArgumentError, DtypeError, Error, ShapeError, UnknownNameError, convert, native
from . import builder_text, capture, reloadable
from .builder_io import Ends
from .builder_lower import Lowering
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail, now
from .builder_ops import Elementwise

KINDS = ("", "vector", "cube", "mix", "parallel", "seq", "split", "eager", "spec")
FLAGS = ("dyn", "unify_ws", "spec", "opt_fractal", "priv1", "priv2")
RUN_TYPES = ("dev", "dry", "das")
_STORES = ("Store", "ViewStore")


class KernelCapture(capture.Capture):
    """One run of a kernel, as the debugger sees it: the body is not executed again, so lines in it are stops of the program."""

    front_end = "builder"
    mode = "graph"

    def flush_all(self) -> None:
        with native():
            self.graph.flush(keep=range(self.graph.size()))

    def find(self, tensor: Any) -> int | None:
        return None  # a body's NDObjects belong to the build, not to a run


class Kernel(Elementwise, Ends):
    """A kernel builder. kind: vector, cube, mix, split, eager ... with flags after a colon: all are fused the same way here.

    Loads and stores are declared, ops build the graph, `input` binds arrays, `run` computes, `output` gives results.
    """

    def __init__(self, ker_type: str = "", run_type: str = "dev", dev_id: int = 0, *, name: str = "kernel") -> None:
        kind, _, flags = ker_type.partition(":")
        if kind not in KINDS:
            raise ArgumentError(f"kernel type error: {ker_type!r}; there are {', '.join(KINDS[1:])}")
        unknown = [flag for flag in flags.split(",") if flag and flag not in FLAGS]
        if unknown:
            raise ArgumentError(f"kernel flag error: {', '.join(unknown)}; there are {', '.join(FLAGS)}")
        if run_type not in RUN_TYPES:
            raise ArgumentError(f"run type {run_type!r}; there are {', '.join(RUN_TYPES)}")
        self.kind, self.run_type, self.name = kind or "vector", run_type, name
        self.launch: Any = None
        self.reset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [known for known in dir(type(self)) if not known.startswith("_")], 2)
        raise fail(UnknownNameError, f"a kernel has no operation {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""),
                   _core.user_place())

    def reset(self) -> None:
        """Forgets the graph."""
        self.nodes: list[NDObject] = []
        self.stores: list[NDObject] = []
        self._arrays: dict[int, np.ndarray] = {}
        self._targets: dict[int, np.ndarray] = {}
        self._results: dict[int, np.ndarray] = {}
        self.launch = None

    # ---- runs --------------------------------------------------------------------------------

    def input(self, op: NDObject | ScalarRef | IntArrayRef, value: Any, offset: int = 0) -> None:
        """Binds an array to a load (a number to a scalar, a list to an int_array) for later runs."""
        if not isinstance(op, NDObject):
            op.update(value)
            return
        op.attrs["offset"] = offset
        self._arrays[op.id] = self._checked(op, value)

    def set_output(self, store: NDObject, array: np.ndarray) -> None:
        """Results of a store go into this array."""
        self._targets[store.id] = array

    def output(self, store: NDObject) -> np.ndarray:
        """The result of a store in the last run."""
        if store.id not in self._results:
            raise fail(ArgumentError, "no result yet: call run() first", store.place, op="output")
        return self._results[store.id]

    def codegen(self, passes: Sequence[str] | None = None) -> None:
        """Accepted: code is made for the real shapes when the kernel runs."""

    def run(self, before: Callable[[], None] | None = None) -> None:
        """Computes all stores from the arrays bound by `input`. Raises ShapeError or DtypeError with the line of the op.

        before: called when all shapes are known and nothing has run yet.
        """
        if not self.stores:
            raise ArgumentError(f"{self.name} has no store, so it computes nothing: end it with k.store(...)")
        unbound = [node for node in self._reached() if node.op in ("Load", "ViewLoad") and node.id not in self._arrays]
        if unbound:
            raise fail(ArgumentError, f"{len(unbound)} loads have no array: bind them with input(...)", unbound[0].place, op="run")
        lowering = Lowering(self.name, self._arrays)
        lowering.graph.step = reloadable.step()
        recording = KernelCapture(lowering.graph, self.name, lowering.graph.step)
        capture.push(recording)
        try:
            lowering.run(self._reached())
            if before is not None:
                before()
            outputs, kept = self._allocate(lowering)
            try:
                self.launch = lowering.graph.flush(outputs=[(value, array.ctypes.data) for value, array in outputs]) or self.launch
            except _core.Error as error:
                raise self._explained(error) from None
        finally:
            capture.pop(recording)
        for finish in kept:
            finish()

    def perf(self, repeats: int = 10) -> tuple[float, float, float]:
        """(min, max, mean) microseconds over runs with the arrays bound now, after one to warm up."""
        self.run()
        times = []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            self.run()
            times.append((time.perf_counter_ns() - start) / 1e3)
        return min(times), max(times), sum(times) / len(times)

    def dump(self) -> str:
        """The graph as text: before a run as built, after it as it was fused, dimensions then lowest axis first."""
        return builder_text.dump(self)

    def das(self) -> str:
        """The tile code of the last run, disassembled. A kernel with fixed shapes that has not run is run on zeros for it."""
        if self.launch is None:
            self._dry()
        return builder_text.das(self)

    def dry_run(self, core_idx: int = 0, cube_core: bool = False) -> None:
        """Prints the tile code."""
        print(self.das(), end="")

    def program(self) -> Any:
        """The core program of the last run, None before the first."""
        return self.launch.program if self.launch is not None else None

    # ---- inside --------------------------------------------------------------------------------

    def _reached(self) -> list[NDObject]:
        # What the stores need, in the order it was built; the rest is dead.
        seen: set[int] = set()
        todo = list(self.stores)
        while todo:
            node = todo.pop()
            if node.id not in seen:
                seen.add(node.id)
                todo += [item for item in node.operands if isinstance(item, NDObject)]
        return [node for node in self.nodes if node.id in seen]

    def _checked(self, load: NDObject, value: Any) -> np.ndarray:
        array = as_array(value)
        dtype = find(array.dtype)
        if dtype is not load.dtype_:
            raise fail(
                DtypeError,
                f"declared {load.dtype_}, called with {array.dtype}{list(array.shape)}; convert the argument with "
                f".astype({load.dtype_.name!r})",
                load.place,
                load,
                op=load.op,
            )
        declared = now(load.attrs["shape"])
        if load.op == "Load" and not self._any_shape(declared):
            fits = len(declared) == array.ndim and all(want in (-1, dim) for want, dim in zip(declared, array.shape, strict=True))
            if not fits:
                raise fail(ShapeError, f"declared {list(declared)}, called with {list(array.shape)}", load.place, load, op=load.op)
        if load.op == "ViewLoad" or not array.dtype.isnative or any(step % array.itemsize for step in array.strides):
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        return array

    def _any_shape(self, declared: Sequence[int]) -> bool:
        return False

    def _allocate(self, lowering: Lowering) -> tuple[list[tuple[int, np.ndarray]], list[Any]]:
        # (value, contiguous memory it is written to), and what is left to do once it is written
        outputs: list[tuple[int, np.ndarray]] = []
        finish: list[Any] = []
        for store in self.stores:
            value, shape = lowering.value(store), lowering.shape(store)
            target = self._targets.get(store.id)
            wanted = store.dtype_.numpy
            if store.op == "ViewStore":
                target = strided(target, shape, now(store.attrs["stride"]), store)
            if target is not None and (target.shape != shape or target.dtype != wanted):
                raise fail(
                    ShapeError,
                    f"the output is {store.dtype_}{list(shape)}, the array given for it {target.dtype}{list(target.shape)}",
                    store.place,
                    store,
                    op=store.op,
                )
            array = _core.empty(shape, store.dtype_.code)
            if target is None:
                target = array
            elif target.flags.c_contiguous and target.dtype.isnative:
                array = target
            else:
                finish.append(lambda to=target, source=array: np.copyto(to, source))
            self._results[store.id] = target
            if array.size:
                outputs.append((value, array))
        return outputs, finish

    def _explained(self, error: Exception) -> Error:
        found = convert(error)
        return type(found)(
            f"{found.message}\nin kernel {self.name}:\n{builder_text.graph(self)}", op=found.op, file=found.file, line=found.line
        )

    def _dry(self) -> None:
        loads = [node for node in self._reached() if node.op in ("Load", "ViewLoad")]
        if any(node.dims is None for node in loads):
            raise ArgumentError(
                f"{self.name} has loads of any shape, so its code is made when it is called: call it once, then das() shows that code"
            )
        bound = dict(self._arrays)
        for node in loads:
            if node.id not in bound:
                reach = sum(step * (dim - 1) for step, dim in zip(node.attrs.get("stride", ()), node.dims or (), strict=False)) + 1
                self._arrays[node.id] = np.zeros((node.dims or ()) if node.op == "Load" else reach, node.dtype_.numpy)
        try:
            self.run()
        finally:
            self._arrays = bound
            self._results.clear()


def as_array(value: Any) -> np.ndarray:
    """An argument as a NumPy array, without a copy where it is one: NumPy, ours, MindSpore's, PyTorch's."""
    if isinstance(value, np.ndarray):
        return value
    for method in ("asnumpy", "numpy"):
        if hasattr(value, method):
            return np.asarray(getattr(value, method)())
    return np.asarray(value)


def strided(base: np.ndarray | None, shape: tuple[int, ...], stride: tuple[int, ...], store: NDObject) -> np.ndarray:
    """The elements of `base` a view store writes."""
    if base is None or not base.flags.c_contiguous:
        raise fail(
            ArgumentError, "a view store needs a contiguous array to write into: give it with set_output", store.place, store, op=store.op
        )
    last = sum(step * (dim - 1) for step, dim in zip(stride, shape, strict=False) if dim > 1)
    if len(stride) != len(shape) or min(stride, default=0) < 0 or last >= base.size and 0 not in shape:
        raise fail(
            ShapeError,
            f"strides {list(stride)} for {list(shape)} reach element {last}, the array has {base.size}",
            store.place,
            store,
            op=store.op,
        )
    return np.lib.stride_tricks.as_strided(base, shape, [step * base.itemsize for step in stride])
