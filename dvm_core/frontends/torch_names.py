"""What the user calls the values of compiled graphs: arguments by where Dynamo found them, saved results by the variables they were
assigned to, and gradients by what they are gradients of: `grad(h)`, `grad(self.lin.weight)`."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from torch.fx import Node

from . import names as variables
from .torch_compat import descriptors

_LOCAL = re.compile(r"^[LG]\['([^']*)'\]")
_CHILD = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")


class Names:
    """Of one of Dynamo's graphs: its nodes by number, `places` where they come from. arguments: whether AOTAutograd numbers its arguments
    as Dynamo does."""

    def __init__(self, nodes: Iterable[Node], places: list[int], arguments: bool = True) -> None:
        nodes = list(nodes)
        self.variables = variables.names_for_places(places)
        self.arguments = [_source(node) for node in nodes if node.op == "placeholder"] if arguments else []
        self.last: dict[str, int] = {}  # by the name of a node of the forward graph, the number of the node whose result it is

    def forward(self, nodes: Iterable[Node], number: Callable[[Node], int]) -> dict[Node, str]:
        """Names of values of a forward graph. number: a node's number among Dynamo's, -1 if it has none."""
        last = {number(node): node for node in nodes if node.op == "call_function"}
        self.last = {node.name: n for n, node in last.items()}
        return {node: name for node in nodes if node.op == "placeholder" and (name := self._argument(node.meta.get("desc")))}

    def backward(self, nodes: Iterable[Node], number: Callable[[Node], int]) -> dict[Node, str]:
        """Names of values of the backward graph that goes with the forward graph seen last."""
        found: dict[Node, str] = {}
        carries: set[Node] = set()  # a gradient
        for node in nodes:
            if node.op == "placeholder":
                of = self.variables.get(self.last.get(node.name, -1)) or self._argument(node.meta.get("desc"))
                if of:
                    found[node] = of
                if node.name.startswith("tangents"):
                    carries.add(node)
            elif node.op == "output":
                for result, what in zip(node.args[0], node.meta.get("desc") or (), strict=False):  # type: ignore[arg-type]
                    gradient = descriptors and isinstance(what, descriptors.Gradient)
                    if isinstance(result, Node) and gradient and (of := self._argument(what.grad_of)):
                        found.setdefault(result, f"grad({of})")
            elif not carries.isdisjoint(node.all_input_nodes):
                carries.add(node)
                of = self.variables.get(number(node), "")  # it goes from the gradient of that one on to those of its operands
                for read in node.all_input_nodes if of else ():
                    if read in carries and read.op == "call_function" and number(read) != number(node):
                        found.setdefault(read, f"grad({of})")
        return found

    def _argument(self, what: Any) -> str:
        known = descriptors and isinstance(what, descriptors.Argument) and what.idx < len(self.arguments)
        return self.arguments[what.idx] if known else ""


def _source(node: Node) -> str:
    """`x`, `self.layers.0.weight`: what Dynamo read an argument from; "" if it is no variable of the user's."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    found = _CHILD.sub(r".\1", getattr(source, "name", "") or "") if source is not None else ""
    return _LOCAL.sub(r"\1", found) if _LOCAL.match(found) else ""
