"""An outermost captured call of a function over dvm.tensor arrays."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from .. import _core
from ..errors import ArgumentError, convert, native, where
from . import array_record, array_trace, capture, reloadable
from .array import Array
from .signatures import owner, signature


class ArrayCapture(capture.Capture):
    """One call of a captured function over dvm.tensor arrays while it records."""

    front_end = "array"
    flushes = 0  # so far

    def flush_all(self) -> None:
        graph = self.graph
        self._flush([value for value in range(graph.size()) if not graph.in_memory(value)])

    def flush_wanted(self) -> None:
        """Runs what is pending and keeps what live arrays stand for."""
        self._flush(array_record.wanted(self))

    def _flush(self, keep: list[int]) -> None:
        self.flushes += 1
        try:
            self.graph.flush(keep=keep)
        except _core.Error as error:
            raise convert(error) from None
        recorder = self.__dict__.get("_array_recorder")
        if recorder is not None:
            recorder.take_over()

    def find(self, tensor: Any) -> int | None:
        recorder = self.__dict__.get("_array_recorder")
        return recorder.find(tensor) if recorder is not None and isinstance(tensor, Array) else None

    def peek(self, tensor: Any) -> tuple[np.ndarray, str] | None:
        return (tensor.numpy(), str(tensor.dtype)) if isinstance(tensor, Array) and tensor.in_memory else None


def describe(value: Any) -> Hashable | None:
    """("tensor", dtype, shape) of an array, None for anything else."""
    return ("tensor", str(value.dtype), value.shape) if isinstance(value, Array) else None


def call(info: Any, args: tuple, kwargs: dict) -> Any:
    """Calls a captured function (jit.CapturedFunction); its results are computed when it returns."""
    for number in info.donate:
        if number < len(args) and isinstance(args[number], Array) and args[number].constant:
            file, line = where(_core.user_place())
            raise ArgumentError(f"{info.name} gives argument {number} away (donate), which is a constant, whose memory is never written: "
                                f"pass x.copy()", file=file, line=line)
    inputs = (signature(args, describe), signature(kwargs, describe))

    def attempt(step: int, check: reloadable.Check | None) -> Any:
        graph = _core.Graph(info.name)
        graph.step = step
        active = ArrayCapture(graph, info.name, step)
        trace = array_trace.begin(info, args, kwargs) if info.mode == "graph" else None
        try:
            capture.push(active)
            result = info.function(*(trace.arguments if trace else args), **kwargs)
            if check is not None:
                check(signature(result, describe, values=False))
            if trace:
                result = trace.end(active, result)
            active.flush_wanted()
        finally:
            capture.pop(active)
        return result

    result = reloadable.call(info.key, (id(info), owner(args, inputs), inputs), attempt)
    for number in info.donate:
        if number < len(args) and isinstance(args[number], Array):
            with native(_core.user_place()):
                _core.give_away(args[number])
    return result
