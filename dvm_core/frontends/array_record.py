"""Where arrays record: the graph of the captured function that runs on this thread, or a graph of the thread's own."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..errors import Error, convert
from ..msbc.program import add_input
from . import capture, reloadable

if TYPE_CHECKING:
    from .array import Array


class Recorder:
    """One graph being recorded, and the arrays that still want a value from it."""

    def __init__(self, graph: Any, owner: capture.Capture | None) -> None:
        self.graph = graph
        self.owner = owner  # the captured call whose graph this is; None: the thread's own
        self.live: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
        self.inputs: dict[int, tuple[Any, int]] = {}  # id of an array's memory -> (that memory, value)

    def value(self, array: Array) -> int:
        """The value id of an array in this graph."""
        if array._recorder is self and array._value is not None:
            return array._value
        data = array.numpy()
        found = self.inputs.get(id(data))
        if found is None:
            found = self.inputs[id(data)] = (data, add_input(self.graph, data))
        return found[1]

    def op(
        self,
        opcode: int,
        operands: tuple[int, ...],
        attrs: tuple[int, ...] = (),
        shape: tuple[int, ...] | None = None,
        dtype: int = 0,
        imms: tuple[float | int, ...] = (),
    ) -> int:
        """Records one instruction with the user's place."""
        place = _core.user_place()
        try:
            return self.graph.op(opcode, operands, attrs, shape, dtype, imms, place)
        except _core.Error as error:
            raise convert(error, place=place) from None

    def wanted(self) -> list[int]:
        """Values live arrays wait for: they must be kept by the next flush."""
        return [value for value in list(self.live) if not self.graph.in_memory(value)]

    def flush(self) -> None:
        """Runs what is pending, keeping what live arrays wait for."""
        if self.owner is not None:
            getattr(self.owner, "flush_wanted", self.owner.flush_all)()
            return
        keep = self.wanted()
        self.graph.step = reloadable.step()
        try:
            self.graph.flush(keep=keep)
        except _core.Error as error:
            raise convert(error) from None
        # Everything wanted is in memory now: the arrays take it over and the graph, whose ids only grow, is not used again.
        for array in list(self.live.values()):
            array._settle()
        if _thread.recorder is self:
            _thread.recorder = None

    def fetch(self, value: int) -> np.ndarray:
        """The memory of a value, computed if it must be."""
        if not self.graph.in_memory(value):
            self.flush()
        found = self.graph.array(value)
        if found is None:
            raise Error("a value of a captured call was read after the call had ended without keeping it: return it from the function")
        return found


class _Thread(threading.local):
    recorder: Recorder | None = None


_thread = _Thread()


def current() -> Recorder:
    """The recorder of the calling thread: of the active capture if there is one."""
    active = capture.active()
    if active is None:
        if _thread.recorder is None:
            _thread.recorder = Recorder(_core.Graph("arrays"), None)
        return _thread.recorder
    found: Recorder | None = active.__dict__.get("_array_recorder")
    if found is None:
        found = active.__dict__["_array_recorder"] = Recorder(active.graph, active)
    return found


def wanted(active: capture.Capture) -> list[int]:
    """Value ids that live arrays need from a capture's graph; whoever flushes that graph must keep them."""
    found: Recorder | None = active.__dict__.get("_array_recorder")
    return found.wanted() if found is not None else []
