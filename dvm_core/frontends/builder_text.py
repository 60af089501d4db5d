"""A kernel as text: `dump` (the graph, before and after it was fused) and `das` (tile code), with the line shapes of DVM's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .. import graphtext
from ..devices import Device
from ..msbc import Code
from .builder_objects import Late, NDObject

if TYPE_CHECKING:
    from .builder_kernel import Kernel

# What stands between < and > after a node's name, by its attributes
_SHOWN = (
    "kind",
    "dims",
    "keepdims",
    "shape",
    "start",
    "size",
    "end",
    "dim",
    "begin",
    "stride",
    "trans_a",
    "trans_b",
    "depth",
    "axis",
    "pad",
    "value",
)
_IN_ORDER = {"Reduce": ("dims", "keepdims", "kind"), "Load": (), "MatMul": ("trans_a", "trans_b")}
_KEYED = {"MatMul", "OneHot", "GatherLoad", "Concat"}


def graph(kernel: Kernel) -> str:
    """`rgraph.split() { ... }`: the nodes in the order they were built, dimensions highest axis first."""
    lines = [f"rgraph.{kernel.kind}() {{"]
    for node in kernel.nodes:
        tensors = [_tensor(item) for item in node.operands if isinstance(item, NDObject)]
        scalars = [_value(item) for item in node.operands if not isinstance(item, NDObject)]
        attributes = scalars + _attributes(node)
        name = "ScalarDiv" if node.op == "Div" and not isinstance(node.operands[0], NDObject) else node.op
        lines.append(f"  {_tensor(node)} = {name}{'<' + ', '.join(attributes) + '>' if attributes else ''}({', '.join(tensors)})")
    return "\n".join([*lines, "}"]) + "\n"


def fused(program: Any) -> str:
    """`vgraph(tile_num=N) { ... }` for each area of a program's last launch; several are stages."""
    if program is None:
        return "vgraph(tile_num=0) {\n}\n"
    code = Code.of(program)
    blocks = []
    for area in program.areas:
        title = {"cube": "vgraph.cube", "move": "vgraph.move"}.get(area.kind, "vgraph")
        lines = [f"{title}(tile_num={area.tiles}) {{", *(f"  {graphtext.line(code, i, lowest_first=True)}" for i in area.instructions), "}"]
        blocks.append(lines)
    if len(blocks) == 1:
        return "\n".join(blocks[0]) + "\n"
    lines = ["vgraph.stages() {"]
    for number, block in enumerate(blocks):
        lines += [f"  // stage {number}", *(f"  {text}" for text in block)]
    return "\n".join([*lines, "}"]) + "\n"


def das(program: Any) -> str:
    """Tile code of every area of a program's last launch."""
    areas = program.areas if program is not None else []
    if not areas:
        return "vmain.idle() {}\n"
    lines = []
    for area in areas:
        lines.append(f"// target=cpu, block_dim={min(Device.core_num(), max(area.tiles, 1))}, area={area.index}, kind={area.kind}")
        lines += [text.rstrip() for text in program.tile_text(area.index).splitlines()]
    return "\n".join(lines) + "\n"


def peaks(program: Any) -> str:
    """Bytes of local memory each area of a program takes for a tile."""
    areas = program.areas if program is not None else []
    found = [(area.index, re.search(r"\bub=(\d+)", program.tile_text(area.index))) for area in areas]
    return "".join(f"area {index}: peak live {match.group(1) if match else 0} bytes of UB\n" for index, match in found)


def _tensor(node: NDObject) -> str:
    return graphtext.tensor(node.id, node.dims, node.dtype_.code)


def _value(item: Any) -> str:
    if isinstance(item, Late):
        return "?" if item.value is None else _value(item.value)
    if isinstance(item, tuple):
        return str(list(item))
    return str(item).lower() if isinstance(item, bool) else str(item)


def _attributes(node: NDObject) -> list[str]:
    keys = _IN_ORDER.get(node.op, tuple(key for key in _SHOWN if key in node.attrs))
    return [f"{key}={_value(node.attrs[key])}" if node.op in _KEYED else _value(node.attrs[key]) for key in keys if key in node.attrs]
