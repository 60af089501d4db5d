"""Bounds of what an expression may compute: refused before it costs memory or time, wherever operands tell."""
from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

MOST_ELEMENTS = 1 << 26  # of any intermediate result
MOST_ITEMS = 1 << 20  # of any Python list, tuple or text: they are some ten times as large as arrays
_LARGEST_POWER = 1 << 12  # bits of a Python integer raised to a power
_MOST_BITS = 1 << 13  # of any Python integer
_MOST_DIFFERENCES = 64  # each is a pass over the data
_SHAPE_ARGUMENTS = frozenset(("permute", "percentile", "quantile", "reshape", "view"))  # their arguments do not broadcast
_LISTS = frozenset(("sorted", "tolist"))  # functions that make Python objects of elements


class Refused(ValueError):
    """The expression is not allowed, not known, or fails; the text is for the user."""


# Calls that make nothing of an array's size, whatever it is.
_LOOKS = frozenset("""all any argmax argmin asnumpy count_nonzero cpu detach diagonal dim expand_dims float int bool item len max mean min
    moveaxis numel numpy permute ptp shape size squeeze sum swapaxes t transpose""".split())
_RESHAPES = frozenset(("ravel", "reshape", "view"))  # views of what lies side by side


def check_operands(node: ast.AST, *operands: Any) -> None:
    """Refuses what would be too large before it is computed."""
    for operand in operands:
        if isinstance(operand, np.ndarray) and operand.size > MOST_ELEMENTS and not _only_looks(node, operand):
            refuse_large(node, operand.size)
    texts = [operand for operand in operands if isinstance(operand, (str, bytes))]
    if texts and isinstance(getattr(node, "op", None), ast.Mod):
        raise Refused(f"`{ast.unparse(node)}` formats a text; `%` is for numbers here")
    shapes = [shape for operand in operands if (shape := _shape(operand))]
    name = _called(node)
    matrix = isinstance(getattr(node, "op", None), ast.MatMult) or name in ("dot", "matmul")
    if len(shapes) > 1 and name not in _SHAPE_ARGUMENTS and not (isinstance(node, ast.BinOp) and _sequences(operands)):
        try:
            if matrix:
                size = math.prod(shapes[0][:-1]) * math.prod((*shapes[1][:-2], *shapes[1][-1:]))
            else:
                size = math.prod(np.broadcast_shapes(*shapes))
        except ValueError:
            return  # these do not broadcast: the operation itself says so
        refuse_large(node, size)
    if any(isinstance(operand, np.ndarray) for operand in operands) or not isinstance(node, ast.BinOp):
        return
    left, right = operands
    if isinstance(node.op, ast.Pow) and isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _LARGEST_POWER:
        raise Refused(f"`{ast.unparse(node)}` is too large a number")
    if isinstance(node.op, ast.Mult) and not all(isinstance(side, (int, float, complex, np.generic)) for side in (left, right)):
        raise Refused(f"`{ast.unparse(node)}` repeats a sequence")


def _only_looks(node: ast.AST, operand: np.ndarray) -> bool:
    name = _called(node)
    return isinstance(node, ast.Call) and (name in _LOOKS or (name in _RESHAPES and operand.flags.c_contiguous))


def _called(node: ast.AST) -> str:
    target = getattr(node, "func", None)
    return str(getattr(target, "attr", getattr(target, "id", "")))


def _shape(operand: Any) -> tuple[int, ...]:
    """() also for what is no array. Of a list by its first item: arrays in it are not to be copied for a look."""
    if isinstance(operand, (list, tuple)):
        return (len(operand), *(_shape(operand[0]) if operand else ()))
    return operand.shape if isinstance(operand, np.ndarray) else ()


def _size(operand: Any) -> int:
    return math.prod(_shape(operand))


def _sequences(operands: tuple[Any, ...]) -> bool:
    return all(isinstance(operand, (list, tuple)) for operand in operands)


def refuse_large(node: ast.AST, size: int) -> None:
    if size > MOST_ELEMENTS:
        raise Refused(f"`{ast.unparse(node)}` would have {size:,} elements; at most {MOST_ELEMENTS:,} are computed here")


def gathered(owner: np.ndarray, index: Any) -> int:
    """How many elements indexing with arrays of integers takes: as often as they say, and not as often as there are."""
    picked, left, axis = [], 1, 0
    parts = index if isinstance(index, tuple) else (index,)
    takes = [0 if part is None or part is Ellipsis else max(1, np.ndim(part)) if _is_mask(part) else 1 for part in parts]
    for part, taken in zip(parts, takes, strict=True):
        if part is Ellipsis:
            taken = owner.ndim - sum(takes)
            left *= math.prod(owner.shape[axis:axis + taken])
        elif isinstance(part, slice):
            left *= math.prod(owner.shape[axis:axis + 1])
        elif isinstance(part, (np.ndarray, list, tuple)) and taken:
            picked.append((int(np.count_nonzero(part)),) if _is_mask(part) else np.shape(part))
        axis += taken
    if not picked:
        return 0  # a view
    try:
        return math.prod(np.broadcast_shapes(*picked)) * left * math.prod(owner.shape[axis:])
    except ValueError:
        return 0  # these do not go together: indexing itself says so


def _is_mask(part: Any) -> bool:
    return isinstance(part, (np.ndarray, list)) and np.asarray(part).dtype == np.bool_


def check_call(node: ast.Call, operands: list[Any], keywords: dict[str, Any]) -> None:
    """Refuses calls whose arguments ask for more than the data's shapes tell."""
    name = _called(node)
    first = operands[0] if operands else None
    if name in _LISTS and _size(first) > MOST_ITEMS:
        raise Refused(f"`{ast.unparse(node)}` would make a list of {_size(first):,} items; at most {MOST_ITEMS:,} are made here")
    if name in ("concatenate", "stack") and isinstance(first, (list, tuple)):
        refuse_large(node, sum(_size(part) for part in first))
    if name in ("quantile", "percentile") and len(operands) > 1:
        each = _size(operands[1])
        refuse_large(node, each * _size(first) if len(operands) > 2 else each)
    if name == "diff" and isinstance(n := keywords.get("n", operands[1] if len(operands) > 1 else 1), (int, np.integer)):
        if n > _MOST_DIFFERENCES:
            raise Refused(f"`{ast.unparse(node)}` takes {n:,} differences; at most {_MOST_DIFFERENCES} are taken here")
    kinds = [keywords["dtype"]] if keywords.get("dtype") is not None else []
    if name == "astype":
        kinds += operands[1:2]
    if any(np.dtype(kind).kind not in "biufc" for kind in kinds):
        raise Refused(f"`{ast.unparse(node)}` would make something else than numbers")


def check_result(node: ast.AST, result: Any) -> None:
    """Keeps what is computed from growing with every further operation."""
    if isinstance(result, np.ndarray):
        # Views and parts are of memory that is there; what indexing gathers was checked before.
        if not isinstance(node, (ast.Attribute, ast.Subscript)) and _called(node) not in _LOOKS | _RESHAPES:
            refuse_large(node, result.size)
        if result.dtype.hasobject:
            raise Refused(f"`{ast.unparse(node)}` is not made of numbers")
    elif type(result) is int and result.bit_length() > _MOST_BITS:
        raise Refused(f"`{ast.unparse(node)}` is too large a number")
    elif isinstance(result, (str, bytes, list, tuple)) and len(result) > MOST_ITEMS:
        raise Refused(f"`{ast.unparse(node)}` has {len(result):,} items; at most {MOST_ITEMS:,} are made here")
