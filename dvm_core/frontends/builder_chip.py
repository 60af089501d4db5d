"""What a simulated chip has no instruction for, found before a kernel runs there: devices/chips.py by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import devices
from ..devices import chips
from ..dtypes import DataType, of
from ..errors import ArgumentError, DtypeError, Error, ShapeError, UnsupportedError
from .builder_objects import NDObject
from .builder_rules import misuse

# Ops that a mix kernel may have behind its matmul
_ELEMENTWISE = {*(op for op in chips.BY_OP if op[0].isupper()), "Cast", "Copy", "Broadcast", "BroadcastS", "FullLike", "Reinterpret"} - {
    "MatMul",
    "GroupedMatMul",
    "ElementAny",
    "OneHot",
    "GatherLoad",
}
_ENDS = {"Store", "ViewStore"}
_GROUPS = 4  # of axes that one broadcast stretches


def check(kind: str, nodes: Sequence[NDObject]) -> None:
    """Raises for the first node that the simulated chip in use has not."""
    error = next(lacking(kind, nodes, devices.device()), None)
    if error is not None:
        raise error


def lacking(kind: str, nodes: Sequence[NDObject], device: str) -> Iterator[Error]:
    """The errors of `check` for any device, as they come."""
    profile = devices.profiles()[device]
    if not profile["simulated"]:
        return
    behind: set[int] = set()  # a matmul
    for node in nodes:
        op, dtype = node.attrs["kind"] if node.op == "Reduce" else node.op, computed_in(node)
        missing = next((t for t in (dtype, node.dtype_) if t.name not in chips.DTYPES), None)
        if missing is not None or not chips.has(profile["arch"], op, dtype.name):
            yield _lacks(device, profile["arch"], op, missing, dtype, node)
        if kind == "mix" and any(isinstance(item, NDObject) and item.id in behind for item in node.operands):
            behind.add(node.id)
            if node.op not in _ELEMENTWISE | _ENDS:
                yield misuse("mix-follow", node.place, node, op=node.op, kind=ArgumentError, chip=device)
        if node.op == "MatMul":
            behind.add(node.id)


def computed_in(node: NDObject) -> DataType:
    """The dtype a node's instruction works in: of its first tensor (of a select: of the choices), else its own."""
    tensors = [item for item in node.operands if isinstance(item, NDObject)]
    return tensors[1 if node.op == "Select" else 0].dtype_ if tensors else node.dtype_


def check_shapes(nodes: Sequence[NDObject]) -> None:
    """Raises for the first broadcast, explicit or not, that the chip in use cannot make at once. Nodes know their shapes."""
    device = devices.device()
    for node in nodes:
        if node.op not in _ELEMENTWISE or node.dims is None or len(node.dims) < 2 * _GROUPS + 1:
            continue
        for item in node.operands:
            if isinstance(item, NDObject) and item.dims is not None and (groups := stretched(item.dims, node.dims)) > _GROUPS:
                text = {"source": list(item.dims), "wanted": list(node.dims), "groups": groups, "chip": device}
                raise misuse("broadcast-groups", node.place, item, op=node.op, kind=ShapeError, **text)


def stretched(source: Sequence[int], wanted: Sequence[int]) -> int:
    """How many runs of neighbouring axes a broadcast stretches; axes of one element on both sides belong to any run."""
    groups, inside = 0, False
    for have, want in zip([1] * (len(wanted) - len(source)) + list(source), wanted, strict=True):
        if want == 1:
            continue
        groups += have == 1 and not inside
        inside = have == 1
    return groups


def _lacks(device: str, arch: str, op: str, missing: DataType | None, dtype: DataType, node: NDObject) -> Error:
    def refused(rule: str, kind: type[Error], what: str, instead: str) -> Error:
        return misuse(rule, node.place, node, op=node.op, kind=kind, chip=device, arch=arch, what=what, instead=instead)

    if missing is not None:
        return refused("chip-dtype", DtypeError, str(missing), "cast to float32, or run it on the cpu")
    others = [name for name in devices.profiles() if _profile_has(name, op, dtype)]
    where = " or ".join(("the cpu", *others))
    there = chips.dtypes(arch, op)
    if not there:
        return refused("chip-op", UnsupportedError, node.op, f"run it on {where}")
    instead = f"it takes {', '.join(there)}: cast first, for instance k.cast(x, {of(there[0])!r}), or run it on {where}"
    return refused("chip-dtype", DtypeError, f"{op} of {dtype}", instead)


def _profile_has(name: str, op: str, dtype: DataType) -> bool:
    profile = devices.profiles()[name]
    return profile["simulated"] and not profile["faithful"] and chips.has(profile["arch"], op, dtype.name)
