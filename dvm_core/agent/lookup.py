"""The names an expression may use at a stop: tensors first, then plain Python values of the frame."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import naming, values
from .evaluate import Refused, is_plain
from .tensors import Tensor
from .views import plain_locals

if TYPE_CHECKING:
    from .session import Session


class Names(Mapping[str, Any]):
    """Tensors as NumPy arrays, numbers and texts as they are. Nothing else of the program can be reached."""

    def __init__(self, view: Any, session: Session) -> None:
        self._view = view
        self._python = plain_locals(view.python)
        self._tensors: dict[str, Tensor] | None = None

    def _known(self) -> dict[str, Tensor]:
        if self._tensors is None:
            self._tensors = {}
            for tensor in self._view.tensors():
                self._tensors.setdefault(tensor.name, tensor)
        return self._tensors

    def tensor(self, name: str) -> Tensor | None:
        """A tensor by exactly the name it is listed under or has in the program's text: also one that is no Python name."""
        return self._known().get(name) or self._view.find(name)

    @staticmethod
    def spelled(expression: str) -> str:
        return naming.spelled(expression)

    @staticmethod
    def unspelled(expression: str) -> str:
        return naming.unspelled(expression)

    def _numbered(self, name: str) -> Tensor | None:
        """What `spelled` made of `%4`."""
        text = naming.unspelled(name)
        return self._view.find(text) if text != name else None

    def __getitem__(self, name: str) -> Any:
        tensor = self._known().get(name) or self._numbered(name)
        if tensor is not None:
            array = tensor.array()
            if array is None:
                raise Refused(f"`{name}` is {tensor.reason}")
            return values.numbers(array, tensor.dtype)
        value = self._python[name]
        if not is_plain(value):
            raise Refused(f"`{name}` is a {type(value).__name__}: evaluate it in the Python frame below")
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._known() or name in self._python or (isinstance(name, str) and self._numbered(name) is not None)

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self._known() if name.isidentifier())

    def __len__(self) -> int:
        return len(self._known())

    @staticmethod
    def as_tensor(name: str, value: Any) -> Tensor | None:
        """An array as a tensor of the stop, None for anything else."""
        if not isinstance(value, np.ndarray) or not value.ndim:
            return None
        return Tensor(name, values.code_of(value), value.shape, lambda: value, cls="expression")
