"""Programs the MSBC tests share: one with every kind of operand, attribute and section, and long ones."""

import numpy as np

from dvm_core.msbc import Code, Input, Instruction, Place
from dvm_core.msbc.layout import CODES as OP

F32, BOOL, I32 = 1, 5, 8
HERE = Place("/home/u/model.py", 42, 43, 9, 27, "Net.forward")
FAR = Place("/home/u/generated.py", 70_000, function="step", backward=True)


def every_kind() -> Code:
    inputs = [Input(F32, (32, 64), None, "x", "activation"), Input(F32, (64,), (2,), "bias", "parameter"), Input(I32, (7,))]
    return Code(
        "forward",
        inputs,
        [
            Instruction(OP["ADD"], (0, 1), (32, 64), F32, place=HERE, name="h"),
            Instruction(OP["MUL"], (-1, 3), (32, 64), F32, imms=(0.5,), place=HERE),
            Instruction(OP["SUM"], (4,), (32, 1), F32, attrs=(1, 1), place=FAR, name="größe"),
            Instruction(OP["TRANSPOSE"], (4,), (64, 32), F32, attrs=(1, 0)),
            Instruction(OP["GATHER"], (6, 2), (7, 32), F32, attrs=(0,)),
            Instruction(OP["ONE_HOT"], (2,), (7, 9), I32, attrs=(9,), imms=(1, 0)),
            Instruction(OP["SLICE"], (4,), (16, 64), F32, attrs=(0, 2, 0, 1)),
            Instruction(OP["CONCAT"], (9, 4), (48, 64), F32, attrs=(0,)),
            Instruction(OP["FULL"], (), (3,), F32, imms=(2.5,)),
            Instruction(OP["GREATER"], (3, -1), (32, 64), BOOL, imms=(2**40,)),
            Instruction(OP["SELECT"], (12, 3, 4), (32, 64), F32),
            Instruction(OP["MATMUL"], (3, 4), (32, 32), F32, attrs=(0, 1)),
        ],
        [14, 5],
        {2: np.arange(7, dtype=np.int32)},
    )


def chain(length: int, shape: tuple[int, ...] = (32, 64)) -> Code:
    """x + x, then each result added to x."""
    return Code(
        "chain", [Input(F32, shape, None, "x")], [Instruction(OP["ADD"], (i, 0), shape, F32, place=HERE) for i in range(length)], [length]
    )
