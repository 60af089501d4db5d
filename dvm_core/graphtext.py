"""Programs as DVM's dump text: `%2[32,512]<float32> = Add<0.1>(%0[32,512]<float32>)`, names as DVM users know them."""

from __future__ import annotations

from collections.abc import Sequence

from .dtypes import BY_CODE
from .msbc.code import Code, Instruction
from .msbc.layout import NAMES

# opcode -> DVM's name, where it is not the opcode in capitals-at-word-starts
_DUMP_NAMES = {
    "POW": "Power",
    "TRANSPOSE": "Permute",
    "MATMUL": "MatMul",
    "SUM": "Reduce",
    "MAX": "Reduce",
    "MIN": "Reduce",
    "MEAN": "Reduce",
    "GATHER": "GatherLoad",
    "GATHER_ELEMENTS": "GatherLoad",
    "FULL": "BroadcastS",
    "IS_FINITE": "IsFinite",
    "ONE_HOT": "OneHot",
    "SCATTER_ADD": "ScatterAdd",
    "CONV2D": "Conv2D",
    "CONV2D_WEIGHT": "Conv2DWeight",
}


def dump_name(opcode: int) -> str:
    """DVM's dump name of an opcode: `Add`, `NotEqual`, `MatMul`, `Reduce`."""
    name = NAMES[opcode]
    return _DUMP_NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))


def tensor(value: int, shape: Sequence[int] | None, dtype: int, lowest_first: bool = False) -> str:
    """`%2[32,512]<float32>`; shape None prints as `[-1]`: not known before a call."""
    dims = (-1,) if shape is None else tuple(reversed(tuple(shape))) if lowest_first else shape
    return f"%{value}[{','.join(map(str, dims))}]<{BY_CODE[dtype]}>"


def strides(shape: Sequence[int]) -> list[int]:
    """Of a contiguous tensor, in elements, lowest axis first."""
    found, step = [], 1
    for dim in reversed(tuple(shape)):
        found.append(step)
        step *= dim
    return found


def line(code: Code, number: int, lowest_first: bool = False) -> str:
    """One instruction. lowest_first: dimensions from the lowest axis, with strides, as after codegen."""
    item = code.instructions[number]
    local = len(code.inputs) + number
    operands = [value(code, operand, lowest_first) for operand in item.operands if operand >= 0]
    text = f"{tensor(local, item.shape, item.dtype, lowest_first)} = {_name(item)}({', '.join(operands)})"
    return f"{text} // stride={strides(item.shape)}" if lowest_first else text


def value(code: Code, local: int, lowest_first: bool = False) -> str:
    """An input or result of a program: `%2[32,512]<float32>`."""
    count = len(code.inputs)
    source = code.inputs[local] if local < count else code.instructions[local - count]
    return tensor(local, source.shape, source.dtype, lowest_first)


def _name(item: Instruction) -> str:
    name, opcode = dump_name(item.opcode), NAMES[item.opcode]
    scalar = [f"{item.imms[0]}"] if -1 in item.operands else []
    if scalar:
        name = "ScalarDiv" if opcode == "DIV" and item.operands[0] < 0 else name
    attributes = {
        "Reduce": lambda: [str(list(item.attrs[1:])), str(bool(item.attrs[0])).lower(), opcode.lower()],
        "Permute": lambda: [str(list(item.attrs))],
        "Slice": lambda: [f"start={list(item.attrs[::2])}", f"step={list(item.attrs[1::2])}"],
        "MatMul": lambda: [f"trans_a={item.attrs[0]}", f"trans_b={item.attrs[1]}"],
        "BroadcastS": lambda: [f"{item.imms[0]}"],
        "Concat": lambda: [f"dim={item.attrs[0]}"],
        "GatherLoad": lambda: [f"axis={item.attrs[0]}", f"gather_mode={int(opcode == 'GATHER')}"],
        "OneHot": lambda: [f"depth={item.attrs[0]}", f"on={item.imms[0]}", f"off={item.imms[1]}"],
    }.get(name, lambda: scalar)()
    return f"{name}<{', '.join(attributes)}>" if attributes else name
