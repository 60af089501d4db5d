"""Which dimensions of a program are the same by the rules of its ops: `s0 = 128 to 160: %0[0], %3[1]`.

Two dimensions share a symbol if every launch that passes the ops' checks gives them the same extent, or 1 where NumPy's broadcasting
repeats it. What the rules leave open (reshaped, sliced, padded, gathered, gradients of those, windows) gets a symbol of its own; an
extent of 1 gets none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .msbc.code import Code, Instruction
from .msbc.layout import NAMES, OPS

Dim = tuple[int, int]  # local value id, axis
# data movement whose result has the shape of one operand: which
_SHAPED_AS = {"CUMSUM": 0, "SORT": 0, "ARGSORT": 0, "SCATTER": 0, "SCATTER_ELEMENTS": 0, "GATHER_ELEMENTS": 1}


@dataclass(frozen=True)
class Symbol:
    """extents: smallest and largest so far; the last launch's alone where the dimension is not an input's."""

    name: str
    extents: tuple[int, int]
    dims: tuple[Dim, ...]

    def __str__(self) -> str:
        low, high = self.extents
        where = ", ".join(f"%{value}[{axis}]" for value, axis in self.dims)
        return f"{self.name} = {low if low == high else f'{low} to {high}'}: {where}"


class _Classes:
    """Sets of equal dimensions; the one that came first stands for its set."""

    def __init__(self) -> None:
        self.parent: dict[Dim, Dim] = {}

    def find(self, dim: Dim) -> Dim:
        root = self.parent.setdefault(dim, dim)
        while root != self.parent[root]:
            root = self.parent[root]
        self.parent[dim] = root
        return root

    def join(self, a: Dim, b: Dim) -> None:
        first, second = sorted((self.find(a), self.find(b)))
        self.parent[second] = first


def _equal(code: Code, number: int, item: Instruction) -> list[tuple[Dim, Dim]]:
    """Pairs of dimensions the instruction makes or demands equal."""
    value = len(code.inputs) + number
    shapes = [_shape(code, operand) for operand in item.operands]
    name, cls = NAMES[item.opcode], OPS[item.opcode][1]
    pairs: list[tuple[Dim, Dim]] = []

    def broadcast(operand: int, shape: Sequence[int], out: int, extents: Sequence[int]) -> None:
        shift = len(extents) - len(shape)
        pairs.extend(((operand, axis), (out, axis + shift)) for axis, extent in enumerate(shape) if extent != 1 and axis + shift >= 0)

    if cls in "UBT" or name == "BROADCAST":
        for operand, shape in zip(item.operands, shapes, strict=True):
            if operand >= 0:
                broadcast(operand, shape, value, item.shape)
    elif cls == "R" or name in ("ARGMAX", "ARGMIN"):
        reduced = set(item.attrs[1:]) if len(item.attrs) > 1 else set(range(len(shapes[0])))
        left = [axis for axis in range(len(shapes[0])) if axis not in reduced]
        out = left if item.attrs[0] else range(len(left))
        pairs += [((item.operands[0], axis), (value, to)) for axis, to in zip(left, out, strict=True)]
    elif name == "MATMUL":
        (a, b), (sa, sb), (ta, tb) = item.operands, shapes, item.attrs
        rank = len(item.shape)
        pairs.append(((a, len(sa) - (2 if ta else 1)), (b, len(sb) - (1 if tb else 2))))
        pairs.append(((a, len(sa) - (1 if ta else 2)), (value, rank - 2)))
        pairs.append(((b, len(sb) - (2 if tb else 1)), (value, rank - 1)))
        for operand, shape in ((a, sa), (b, sb)):
            broadcast(operand, shape[:-2], value, item.shape[:-2])
    elif name in _SHAPED_AS:
        pairs += [((item.operands[_SHAPED_AS[name]], axis), (value, axis)) for axis in range(len(item.shape))]
    elif name == "TRANSPOSE":
        pairs += [((item.operands[0], axis), (value, to)) for to, axis in enumerate(item.attrs)]
    elif name == "CONCAT":
        pairs += [((operand, axis), (value, axis)) for operand in item.operands for axis in range(len(item.shape)) if axis != item.attrs[0]]
    return pairs


def _shape(code: Code, value: int) -> tuple[int, ...]:
    count = len(code.inputs)
    return () if value < 0 else tuple(code.inputs[value].shape if value < count else code.instructions[value - count].shape)


def symbols_of(code: Code, seen: Sequence[tuple[int, int]] = ()) -> list[Symbol]:
    """Symbols that name two dimensions or more, or one that has changed, in the order of their first dimension.

    seen: smallest and largest extent of every dimension of the inputs, input after input.
    """
    classes = _Classes()
    dims = [(value, axis) for value in range(len(code.inputs) + len(code.instructions)) for axis in range(len(_shape(code, value)))]
    for dim in dims:
        classes.find(dim)
    for number, item in enumerate(code.instructions):
        for a, b in _equal(code, number, item):
            classes.join(a, b)
    ranges = dict(zip(dims, seen, strict=False))
    members: dict[Dim, list[Dim]] = {}
    for dim in dims:
        if _shape(code, dim[0])[dim[1]] != 1:
            members.setdefault(classes.find(dim), []).append(dim)
    found: list[Symbol] = []
    for group in members.values():
        now = _shape(code, group[0][0])[group[0][1]]
        known = [ranges[dim] for dim in group if dim in ranges]
        low, high = min([now, *(r[0] for r in known)]), max([now, *(r[1] for r in known)])
        if len(group) > 1 or low != high:
            found.append(Symbol(f"s{len(found)}", (low, high), tuple(group)))
    return found
