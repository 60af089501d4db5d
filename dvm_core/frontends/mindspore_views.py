"""Views among what a captured function reads. MindSpore hands ops a copy of a view, made before they are dispatched: no address tells
what it is a copy of, and no gradient leads back from it.

Views among the arguments are exchanged for tensors with memory of their own before the call. One that is read elsewhere (a closure, a
global, an attribute) is looked for when a tensor arrives that nothing else explains.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from mindspore import Parameter, Tensor

from . import guards, reloadable
from . import mindspore_compat as compat


def exchange(args: tuple, kwargs: dict, which: Callable[[Tensor], bool]) -> tuple[tuple, dict, frozenset[int]]:
    """The arguments with tensors of their own memory for those of `which`, and the addresses of these."""
    found: dict[int, Tensor] = {}

    def swap(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in found:
                found[id(value)] = compat.own(value) if which(value) else value
            return found[id(value)]
        if isinstance(value, (tuple, list)):
            items = [swap(item) for item in value]
            if all(item is was for item, was in zip(items, value, strict=True)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            changed = {key: swap(item) for key, item in value.items()}
            return changed if any(changed[key] is not value[key] for key in value) else value
        return value

    given = {id(tensor) for tensor in _tensors((args, kwargs))}
    args, kwargs = swap(args), swap(kwargs)
    return args, kwargs, frozenset(tensor.data_ptr() for tensor in found.values() if id(tensor) not in given)


def loses_gradient(tensor: Tensor) -> bool:
    """Whether a gradient is wanted for a tensor that ops get a copy of."""
    return compat.needs_grad(tensor) and not isinstance(tensor, Parameter) and compat.is_view(tensor)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in _tensors(item)]


class Elsewhere:
    """The tensors one captured function can read from outside its arguments, but for parameters."""

    def __init__(self) -> None:
        self.version = -1
        self.guards: list[guards.Guard] = []
        self.places: set[int] = set()  # lines where a tensor arrived that nothing explained, since the last search

    def tensors(self, function: Any, args: tuple, kwargs: dict, place: int) -> list[tuple[str, Tensor]]:
        """Where each is read, and it. place: where one is looked for."""
        if self.version != reloadable.version or place not in self.places:
            self.version = reloadable.version
            self.places.add(place)
            self.guards = [guard for guard in guards.of_call(function, args, kwargs) if not isinstance(guard.value, Parameter)]
        read = [(guard.label, guard.read()) for guard in self.guards]
        return [(label, value) for label, value in read if isinstance(value, Tensor)]


_elsewhere: weakref.WeakKeyDictionary[Any, Elsewhere] = weakref.WeakKeyDictionary()


class Search:
    """Looks, during one call, for the views that tensors are copies of."""

    def __init__(self, function: Any, args: tuple, kwargs: dict) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.found: list[tuple[str, Tensor]] | None = None
        self.addresses: set[int] = set()

    def original(self, c: Any, tensor: Tensor, address: int) -> Tensor:
        """The view, with a gradient wanted for it, that `tensor` is a copy of; the tensor itself if it is a copy of none. Raises
        UnsupportedError where that cannot be told."""
        if self.found is None:
            self.found = _elsewhere.setdefault(self.function, Elsewhere()).tensors(self.function, self.args, self.kwargs, c.place)
            self.addresses = {value._data_ptr() for _, value in self.found}
        if address in self.addresses:
            return tensor
        alike = [(label, value) for label, value in self.found if value.shape == tensor.shape and value.dtype is tensor.dtype]
        if not any(compat.needs_grad(value) for _, value in alike):
            return tensor
        compat.synchronize()
        bits = tensor.asnumpy().tobytes()
        alike = [(label, value) for label, value in alike if value.asnumpy().tobytes() == bits]
        wanted = {compat.needs_grad(value) and value._data_ptr() for _, value in alike}
        if len(wanted) > 1:
            c.refuse(f"{alike[0][0]} is a view of another tensor, read from outside the arguments, and it cannot be told from "
                     f"{alike[-1][0]}, which has the same values: pass them as arguments, so that the gradient finds its way")
        return alike[0][1] if alike and wanted != {False} else tensor
