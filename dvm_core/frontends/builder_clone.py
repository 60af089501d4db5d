"""A kernel's graph copied into another kernel, with new objects for what is declared at each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ArgumentError
from .builder_objects import Late, NDObject, fail

if TYPE_CHECKING:
    from .builder_kernel import Kernel


class Copier:
    """What became of the objects of one kernel in another: nodes, and the numbers and lists given at each run."""

    def __init__(self, into: Kernel) -> None:
        self.into = into
        self.copies: dict[int, Any] = {}  # by id() of the original, which the base keeps alive
        self.numbers: dict[int, int] = {}  # node id in the base -> node id here

    def graph(self, base: Kernel) -> None:
        """Every node of `base`, in its order; what was stored before keeps its place among the stores."""
        earlier = [store.id for store in self.into.stores]
        for node in list(base.nodes):
            attrs = {key: self.value(item) for key, item in node.attrs.items() if key != "earlier"}
            if "earlier" in node.attrs:
                attrs["earlier"] = earlier + [self.numbers[number] for number in node.attrs["earlier"]]
            copy = self.into._node(node.op, [self.value(item) for item in node.operands], node.dtype_, node.place, **attrs)
            copy.name = node.name
            if node.op in ("Load", "ViewLoad"):
                copy.dims = node.dims
            self.copies[id(node)] = copy
            self.numbers[node.id] = copy.id
            if any(node is store for store in base.stores):
                self.into.stores.append(copy)

    def value(self, item: Any) -> Any:
        """The copy of an operand or attribute."""
        if id(item) in self.copies:
            return self.copies[id(item)]
        if isinstance(item, Late):
            copy = type(item).__new__(type(item))
            vars(copy).update(vars(item))
            self.copies[id(item)] = copy
            return copy
        if isinstance(item, tuple):
            return tuple(self.value(part) for part in item)
        return item


def clone(into: Kernel, base: Kernel, remap: Sequence[Any] | Any = ()) -> list[Any]:
    """Copies `base` into `into`; for each object of `remap` (tensor, scalar, list) the one that stands for it here."""
    copier = Copier(into)
    copier.graph(base)
    wanted: Iterable[Any] = (remap,) if isinstance(remap, (NDObject, Late)) else remap
    result = []
    for item in wanted:
        copy = copier.copies.get(id(item))
        if copy is None:
            raise fail(ArgumentError, f"{item!r} is not of the kernel {base.name} that is cloned", _core.user_place(), op="clone")
        result.append(copy)
    return result
