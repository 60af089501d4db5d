"""Where arrays record: the graph of the captured function that runs on this thread, or a graph of the thread's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import convert

if TYPE_CHECKING:
    from . import capture
    from .array import Array

current = _core.current_recorder


def record(
    opcode: int,
    operands: tuple[Array | None, ...],
    attrs: tuple[int, ...] = (),
    shape: tuple[int, ...] | None = None,
    dtype: int = 0,
    imms: tuple[float | int, ...] = (),
) -> Array:
    """Records one instruction with the user's place; the array of its result. None among the operands: immediate 0 stands there."""
    try:
        return _core.record(opcode, operands, attrs, shape, dtype, imms)
    except _core.Error as error:
        raise convert(error, place=_core.user_place()) from None


def flush(active: Any) -> None:
    """Runs what is pending in a capture's graph and keeps what live arrays wait for."""
    getattr(active, "flush_wanted", active.flush_all)()


def wanted(active: capture.Capture) -> list[int]:
    """Value ids that live arrays need from a capture's graph; whoever flushes that graph must keep them."""
    found = active.__dict__.get("_array_recorder")
    return found.wanted() if found is not None else []
