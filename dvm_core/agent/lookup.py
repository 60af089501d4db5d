"""The names an expression may use at a stop: tensors first, then plain Python values of the frame."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import naming, values
from .bounds import MOST_ELEMENTS
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

    def encoded(self, name: str) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None:
        """A tensor's elements as they lie in memory, and what makes numbers of them or of a part; None for what is no tensor."""
        tensor = self._known().get(name) or self._numbered(name)
        return None if tensor is None else (self._elements(name, tensor), functools.partial(values.numbers, code=tensor.dtype))

    @staticmethod
    def _elements(name: str, tensor: Tensor) -> np.ndarray:
        array = tensor.array()
        if array is None:
            raise Refused(f"`{naming.unspelled(name)}` is {tensor.reason}")
        return array

    def __getitem__(self, name: str) -> Any:
        tensor = self._known().get(name) or self._numbered(name)
        if tensor is not None:
            array = self._elements(name, tensor)
            if array.size > MOST_ELEMENTS and values.is_encoded(tensor.dtype):
                raise Refused(f"`{naming.unspelled(name)}` has {array.size:,} elements; at most {MOST_ELEMENTS:,} are decoded here: "
                              f"take a part of it")
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
