"""Ops of half precision, computed in float32: PyTorch does so too, op by op, and rounds each result."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .emit import BF16, BOOL, F16, F32, HALVES, I8, I32, I64, U8, Emitter
from .torch_ops import ARITHMETIC, COMPARISONS, Parts, Value

_WHOLE = frozenset((BOOL, I8, U8, I32, I64))
_EXACT = frozenset(("aten.mul.Tensor", "aten.div.Tensor", "aten.true_divide.Tensor"))  # a second operand without axes is not rounded
_DTYPES = {F16: torch.float16, BF16: torch.bfloat16}


def half_of(e: Emitter, tree: Any) -> int:
    """The dtype of the first operand that is a half, 0 without one."""
    for a in tree:
        found = half_of(e, a) if isinstance(a, (list, tuple)) else e.dtype(a) if isinstance(a, Value) else 0
        if found in HALVES:
            return found
    return 0


def widened(e: Emitter, name: str, half: int, tree: Any) -> Any:
    """Operands with halves as float32. Whole numbers that halves are computed with, and a number that they are compared with, are rounded
    to halves first."""
    if isinstance(tree, Value):
        if name in ARITHMETIC and e.dtype(tree) in _WHOLE:
            tree = Value(e.cast(tree, half))
        return Value(e.cast(tree, F32)) if e.dtype(tree) in HALVES else tree
    if isinstance(tree, (list, tuple)):
        exact = len(tree) - 1 if name in _EXACT and isinstance(tree[-1], Value) and not e.shape(tree[-1]) else -1
        return [Value(e.cast(a, F32)) if at == exact else widened(e, name, half, a) for at, a in enumerate(tree)]
    return torch.tensor(tree, dtype=_DTYPES[half], device="cpu").item() if type(tree) in (int, float) and name in COMPARISONS else tree


def narrowed(e: Emitter, result: Any, codes: Sequence[int]) -> Any:
    """The results in the halves that PyTorch gives. codes: its dtypes."""
    if isinstance(result, Parts):
        return Parts(narrowed(e, value, codes[at:]) for at, value in enumerate(result))
    computed = isinstance(result, int) and codes[0] in HALVES and e.dtype(result) == F32
    return Value(e.cast(result, codes[0])) if computed else result
