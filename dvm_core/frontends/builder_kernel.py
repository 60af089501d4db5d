"""`dvm.Kernel`: a graph under construction, and its runs. Built once; every run may bring other ranks and shapes."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..devices import Device, simulated
from ..errors import ArgumentError, Error, UnknownNameError, convert, native
from . import builder_chip, builder_text, capture, reloadable
from .builder_arrays import Arrays, reach
from .builder_comm import Collectives
from .builder_custom import Custom
from .builder_grouped import Grouped
from .builder_hints import Hints
from .builder_kinds import RUN_TYPES, kind_of, passes_of
from .builder_lower import Lowering
from .builder_objects import IntArrayRef, NDObject, ScalarRef, fail
from .builder_ops import Elementwise

_LOADS = ("Load", "ViewLoad")
_PARTS = ("SliceViewLoad", "StridedSliceLoad", "GatherLoad")  # loads that are a load and what is taken of it


class KernelCapture(capture.Capture):
    """One run of a kernel, as the debugger sees it: the body is not executed again, so lines in it are stops of the program."""

    front_end = "builder"
    mode = "graph"

    def flush_all(self) -> None:
        with native():
            self.graph.flush(keep=range(self.graph.size()))

    def find(self, tensor: Any) -> int | None:
        return None  # a body's NDObjects belong to the build, not to a run


class Kernel(Elementwise, Arrays, Hints, Custom, Grouped, Collectives):
    """A kernel builder. kind: vector, cube, mix, split, eager ... with flags after a colon: all are fused the same way here.

    Loads and stores are declared, ops build the graph, `input` binds arrays, `run` computes, `output` gives results. run_type "das" and
    "dry" make code and compute nothing that could be read: arrays may be missing where shapes are declared.
    """

    def __init__(self, ker_type: str | int = "", run_type: str = "dev", dev_id: int = 0, *, name: str = "kernel") -> None:
        self.kind, self.flags = kind_of(ker_type)
        self.run_type, self.name = run_type, name
        if run_type not in RUN_TYPES:
            raise fail(ArgumentError, f"run type {run_type!r}; there are {', '.join(RUN_TYPES)}", _core.user_place())
        self.passes: tuple[str, ...] = ()
        self.reset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [known for known in dir(type(self)) if not known.startswith("_")], 2)
        raise fail(UnknownNameError, f"a kernel has no operation {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""),
                   _core.user_place())

    def reset(self) -> None:
        """Forgets the graph, as an eager kernel does after each launch."""
        self.nodes: list[NDObject] = []
        self.stores: list[NDObject] = []
        self._arrays: dict[int, np.ndarray] = {}
        self._targets: dict[int, np.ndarray] = {}
        self._symbolic: list[NDObject] = []  # loads with open extents that have a number
        self._results: dict[int, np.ndarray] = {}
        self.launch: Any = None
        self._launched: list[tuple[Any, int]] = []  # programs of the last run, and how many launches each had had after it
        self._coded = self._drying = False

    # ---- runs --------------------------------------------------------------------------------

    def input(self, op: NDObject | ScalarRef | IntArrayRef, value: Any, offset: int = 0) -> None:
        """Binds an array to a load (a number to a scalar, a list to an int_array) for later runs."""
        if not isinstance(op, NDObject):
            op.update(value)
            return
        load = op.operands[0] if op.op in _PARTS else op
        if load.op not in _LOADS:
            raise fail(ArgumentError, f"takes what a load gives, got {op!r} of {op.op}", _core.user_place(), op="input")
        if offset and load.op == "Load":
            raise fail(ArgumentError, f"offset {offset} is for a view_load, whose strides it comes before", load.place, load, op="input")
        if load.op == "ViewLoad":
            load.attrs["offset"] = offset
        self._arrays[load.id] = self._checked(load, value)

    def set_output(self, store: NDObject, array: np.ndarray) -> None:
        """Results of a store go into this array."""
        self._targets[store.id] = array

    def output(self, store: NDObject) -> np.ndarray:
        """The result of a store in the last run."""
        if self.run_type != "dev":
            raise fail(ArgumentError, f"run type {self.run_type!r} makes code and computes nothing; \"dev\" does", store.place, op="output")
        if store.id not in self._results:
            raise fail(ArgumentError, "no result yet: call run() first", store.place, op="output")
        return self._results[store.id]

    def codegen(self, passes: Sequence[str] | None = None) -> None:
        """Code for the shapes bound now, which `dump` and `das` show; `run` makes it if it is not there. Raises for an unknown pass.

        passes: names from DVM. What they do is done at every launch where it applies; "PrintPeakLive" prints each area's bytes of UB.
        """
        self.passes = passes_of(passes)
        self.launch, self._coded = None, True
        if "PrintPeakLive" in self.passes:
            print(builder_text.peaks(self._code()), end="")

    def run(self, before: Callable[[], None] | None = None) -> None:
        """Computes all stores from the arrays bound by `input`. Raises ShapeError or DtypeError with the line of the op.

        before: called when all shapes are known and nothing has run yet.
        """
        if self.run_type != "dev":
            self._dry()
            return
        self._run(before)

    def _run(self, before: Callable[[], None] | None) -> None:
        if not self.stores:
            raise ArgumentError(f"{self.name} has no store, so it computes nothing: end it with k.store(...)")
        unbound = [node for node in self._reached() if node.op in _LOADS and node.id not in self._arrays]
        if unbound:
            raise fail(ArgumentError, f"{len(unbound)} loads have no array: bind them with input(...)", unbound[0].place, op="run")
        self._check_symbols()
        lowering = Lowering(self.name, self._arrays, self._drying)
        lowering.graph.step = reloadable.step()
        recording = KernelCapture(lowering.graph, self.name, lowering.graph.step)
        try:
            capture.push(recording)
            reached, on_chip = self._reached(), simulated()
            if on_chip:
                builder_chip.check(self.kind, reached)
            lowering.run(reached)
            if on_chip:
                builder_chip.check_shapes(reached)
            if before is not None:
                before()
            outputs, kept = self._allocate(lowering)
            try:
                last = lowering.graph.flush(outputs=[(value, array.ctypes.data) for value, array in outputs])
                launches = [launch for launch in (*lowering.launches, last) if launch is not None]
                self.launch = launches[-1] if launches else self.launch
                self._launched = [(launch.program, launch.program.launches) for launch in launches]
            except _core.Error as error:
                raise self._explained(error) from None
        finally:
            capture.pop(recording)
        for finish in kept:
            finish()

    def perf(self, repeats: int = 10) -> tuple[float, float, float]:
        """(min, max, mean) microseconds over runs with the arrays bound now, after one to warm up."""
        if repeats < 1:
            raise ArgumentError(f"perf needs at least one run, got {repeats}")
        self.run()
        times = []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            self.run()
            times.append((time.perf_counter_ns() - start) / 1e3)
        return min(times), max(times), sum(times) / len(times)

    def dump(self) -> str:
        """The graph as text: before codegen or a run as built, after it as it was fused, dimensions then lowest axis first."""
        return builder_text.fused(self._code()) if self.launch is not None or self._coded else builder_text.graph(self)

    def das(self) -> str:
        """The tile code of the last run or codegen, disassembled. Loads of known shape without an array count as zeros for it."""
        return builder_text.das(self._code())

    def dry_run(self, core_idx: int = 0, cube_core: bool = False) -> None:
        """Prints the tile code: all cores run the same, each on its tiles."""
        if not 0 <= core_idx < Device.core_num():
            raise ArgumentError(f"core {core_idx} of {Device.core_num()}")
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

    def _explained(self, error: Exception) -> Error:
        found = convert(error)
        return type(found)(
            f"{found.message}\nin kernel {self.name}:\n{builder_text.graph(self)}", op=found.op, file=found.file, line=found.line
        )

    def _code(self) -> list[Any]:
        # The programs, with our code in them: kernels that were built by the same lines share one, and the last launch's shapes. None if
        # all results are empty.
        if self.launch is None or any(program.launches != count for program, count in self._launched):
            self._dry()
        return [program for program, _ in self._launched]

    def _dry(self) -> None:
        loads = [node for node in self._reached() if node.op in _LOADS and node.id not in self._arrays]
        if any(node.dims is None for node in loads):
            raise ArgumentError(
                f"{self.name} has loads of any shape, so its code is made when it is called: call it once, then das() shows that code"
            )
        bound, targets, results = dict(self._arrays), self._targets, dict(self._results)
        for node in loads:
            shape = (node.dims or ()) if node.op == "Load" else (reach(node.dims or (), node.attrs["stride"]) + node.attrs["declared"],)
            self._arrays[node.id] = np.zeros(shape, node.dtype_.numpy)
        self._targets, self._drying = {}, True
        try:
            self._run(None)
        finally:
            self._arrays, self._targets, self._results, self._drying = bound, targets, results, False
