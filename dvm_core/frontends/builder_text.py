"""A kernel as text: `dump` (the graph, before and after it was fused) and `das` (tile code), with the line shapes of DVM's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import devices, graphtext
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
    "group_type",
    "group_list_type",
    "depth",
    "axis",
    "gather_mode",
    "pad",
    "value",
)
_IN_ORDER = {"Reduce": ("dims", "keepdims", "kind"), "Load": (), "MatMul": ("trans_a", "trans_b")}
_KEYED = {"MatMul", "GroupedMatMul", "OneHot", "GatherLoad", "Concat"}


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


def fused(programs: Sequence[Any]) -> str:
    """`vgraph(tile_num=N) { ... }` for each area of the programs' last launches; several are stages."""
    blocks = []
    for program in programs:
        code = Code.of(program)
        for area in program.areas:
            title = {"cube": "vgraph.cube", "move": "vgraph.move"}.get(area.kind, "vgraph")
            blocks.append([f"{title}(tile_num={area.tiles}) {{", *(f"  {text}" for text in _area(code, area.instructions)), "}"])
    if len(blocks) == 1:
        return "\n".join(blocks[0]) + "\n"
    lines = ["vgraph.stages() {"]
    for number, block in enumerate(blocks):
        lines += [f"  // stage {number}", *(f"  {text}" for text in block)]
    return "\n".join([*lines, "}"]) + "\n"


def _area(code: Code, numbers: Sequence[int]) -> list[str]:
    # What it reads, what it computes, what is kept of that.
    count = len(code.inputs)
    made = {count + number for number in numbers}
    read = dict.fromkeys(operand for number in numbers for operand in code.instructions[number].operands if operand >= 0)
    loads = [f"{graphtext.value(code, local, lowest_first=True)} = Load()" for local in read if local not in made]
    kept = [graphtext.value(code, local, lowest_first=True) for local in code.outputs if local in made]
    return [*loads, *(graphtext.line(code, number, lowest_first=True) for number in numbers), *(f"{text} = Store({text})" for text in kept)]


def das(programs: Sequence[Any]) -> str:
    """Tile code of every area of the programs' last launches."""
    lines = []
    if devices.profiles()[devices.device()]["elsewhere"]:
        from ..devices import report

        return "".join(f"{text}\n" for program in programs for text, _ in report.calls(Code.of(program), devices.device()))
    for program in programs:
        for area in program.areas:
            text = [line.rstrip() for line in program.tile_text(area.index).splitlines()]
            # A simulated device writes this line itself.
            title = text.pop(0) if text[0].startswith("//") else f"// target=cpu, block_dim={min(Device.core_num(), max(area.tiles, 1))}"
            lines += [f"{title}, area={area.index}, kind={area.kind}", *text]
    return "\n".join(lines or ["vmain.idle() {}"]) + "\n"


def peaks(programs: Sequence[Any]) -> str:
    """Bytes of local memory each area takes for a tile."""
    texts = [program.tile_text(area.index) for program in programs for area in program.areas]
    found = [re.search(r"\bub=(\d+)", text) for text in texts]
    return "".join(f"area {number}: peak live {match.group(1) if match else 0} bytes of UB\n" for number, match in enumerate(found))


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
