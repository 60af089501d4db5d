"""Operators of the user's own: a name for a function that builds them from a kernel's ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..errors import ArgumentError, UnknownNameError, UnsupportedError
from .builder_objects import NDObject, fail
from .builder_rules import Rules, tensor_of

_KNOWN: dict[str, Callable[..., Any]] = {}


class Custom(Rules):
    """Mixed into Kernel: custom ops."""

    @staticmethod
    def reg_custom(op_name: str, body: Callable[..., Any]) -> None:
        """Makes `custom(op_name, inputs)` mean `body(k, *inputs)`, in every kernel built from now on.

        On an NPU a custom op is a piece of device source; what the CPU needs instead is the op in terms of other ops.
        """
        if not callable(body):
            raise fail(
                UnsupportedError,
                f"device source cannot run on a CPU; register a function of a kernel and its tensors for {op_name!r}",
                _core.user_place(),
                op="reg_custom",
            )
        _KNOWN[op_name] = body

    def custom(self, op_name: str, inputs: Sequence[NDObject]) -> Any:
        """What the function registered for `op_name` builds: its nodes carry the lines of that function."""
        place = _core.user_place()
        if op_name not in _KNOWN:
            known = ", ".join(sorted(_KNOWN)) or "none yet"
            raise fail(UnknownNameError, f"no custom op {op_name!r} is registered; there are: {known}", place, op="Custom")
        made = _KNOWN[op_name](self, *(tensor_of(item, "Custom", place) for item in inputs))
        if not all(isinstance(item, NDObject) for item in (made if isinstance(made, (list, tuple)) else [made])):
            raise fail(ArgumentError, f"the function of {op_name!r} must give tensors of the kernel, got {made!r}", place, op="Custom")
        return made
