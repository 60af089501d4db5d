"""A device-neutral descriptor of each instruction: what is computed, on what, by what kind of unit, in what blocks, with how much memory
near the unit. It says nothing of a device: `templates` binds it to what runs it on each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..dtypes import BY_CODE, DataType, describe

LONGEST_BLOCK = 4096  # elements: the longest row DVM keeps whole
CUBE_BLOCK = 128  # rows, columns and depth of a product's block

_OPS = {code: (name, cls) for name, code, cls, *_ in _core.OPS}
# what kind of unit computes an op, by its class; below, those of class D that do more than move bytes
_CAPABILITY = {"U": "vector", "B": "vector", "T": "vector", "N": "vector", "R": "reduce", "M": "cube", "V": "view", "D": "move"}
_OTHERS = {
    **dict.fromkeys(("GATHER", "GATHER_ELEMENTS", "SCATTER", "SCATTER_ELEMENTS", "SCATTER_ADD", "SCATTER_ADD_ELEMENTS"), "index"),
    **dict.fromkeys(("MAX_POOL2D", "MAX_POOL2D_GRAD", "AVG_POOL2D", "AVG_POOL2D_GRAD"), "window"),
    **dict.fromkeys(("SORT", "ARGSORT", "TOPK"), "sort"),
    **dict.fromkeys(("ARGMAX", "ARGMIN"), "reduce"),
    "CUMSUM": "scan",
    "ONE_HOT": "vector",
    "RANDOM": "random",
}
CAPABILITIES = tuple(dict.fromkeys((*_CAPABILITY.values(), *_OTHERS.values())))

Types = Sequence[tuple[int, tuple[int, ...]]] | Mapping[int, tuple[int, tuple[int, ...]]]


@dataclass(frozen=True)
class Operand:
    """A tensor an instruction reads."""

    dtype: DataType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return describe(self.dtype, self.shape)


@dataclass(frozen=True)
class Descriptor:
    """One instruction. An operand that is None is the immediate imms[0]. block: elements that are made at a time. local_bytes: what the
    operands and the result of a block take, 0 if it works on memory."""

    op: str
    cls: str
    operands: tuple[Operand | None, ...]
    dtype: DataType
    shape: tuple[int, ...]
    attrs: tuple[int, ...]
    imms: tuple[float | int, ...]
    capability: str
    block: int
    local_bytes: int

    @property
    def size(self) -> int:
        """Elements of the result."""
        return math.prod(self.shape)

    @property
    def operand_dtype(self) -> DataType:
        """Of the first tensor operand that is computed with (SELECT's condition is not); the result's where there is none."""
        tensors = [operand for operand in self.operands[self.op == "SELECT" :] if operand is not None]
        return tensors[0].dtype if tensors else self.dtype

    def __str__(self) -> str:
        operands = ", ".join(repr(self.imms[0]) if operand is None else str(operand) for operand in self.operands)
        local = f", blocks of {self.block}, {self.local_bytes} bytes near" if self.local_bytes else ""
        return f"{self.op}({operands}) -> {describe(self.dtype, self.shape)}: {self.capability}{local}"


def _block(
    capability: str, op: str, operands: Sequence[Operand | None], dtype: DataType, shape: tuple[int, ...], attrs: Sequence[int]
) -> tuple[int, int]:
    # (elements, bytes near the unit)
    size, tensors = math.prod(shape), [operand for operand in operands if operand is not None]
    if capability == "vector":
        block = min(size, LONGEST_BLOCK)
        # what is broadcast along a block still takes a row of it
        return block, block * (sum(operand.dtype.itemsize for operand in tensors) + dtype.itemsize)
    if capability == "reduce" and tensors:
        axes = attrs[1:] or range(len(tensors[0].shape))
        row = min(math.prod(tensors[0].shape[axis] for axis in axes), LONGEST_BLOCK)
        return row, row * tensors[0].dtype.itemsize + max(dtype.itemsize, 4)
    if capability == "cube" and op == "MATMUL" and len(shape) >= 2:
        depth = tensors[0].shape[-2 if attrs[0] else -1]
        m, n, k = (min(extent, CUBE_BLOCK) for extent in (shape[-2], shape[-1], depth))
        return m * n, (m * k + k * n) * dtype.itemsize + m * n * max(dtype.itemsize, 4)
    return size, 0


def describe_instruction(item: Any, types: Types) -> Descriptor:
    """The descriptor of an instruction (of `_core` or of MSBC). types: (dtype code, shape) of every value before it, by local id."""
    op, cls = _OPS[item.opcode]
    operands = tuple(None if local < 0 else Operand(BY_CODE[types[local][0]], tuple(types[local][1])) for local in item.operands)
    dtype, shape, attrs = BY_CODE[item.dtype], tuple(item.shape), tuple(item.attrs)
    capability = _OTHERS.get(op, _CAPABILITY[cls])
    block, local = _block(capability, op, operands, dtype, shape, attrs)
    return Descriptor(op, cls, operands, dtype, shape, attrs, tuple(item.imms), capability, block, local)


def descriptors(code: Any) -> Iterator[Descriptor]:
    """Of a program's instructions in order. code: `Code` of dvm.msbc or of a program (`dvm.programs()[0].code`)."""
    types = [(source.dtype, tuple(source.shape)) for source in code.inputs]
    for item in code.instructions:
        yield describe_instruction(item, types)
        types.append((item.dtype, tuple(item.shape)))
