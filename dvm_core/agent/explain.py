"""Why a numeric check stopped: which elements are not numbers, and what they were made from."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from . import values
from .blocks import blocks
from .tensors import Tensor

_CLASS = {code: letter for _, code, letter, *_ in _core.OPS}
_WORDS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {"nan": ("NaN", np.isnan), "inf": ("infinity", np.isinf)}
_MOST_NAMED = 4  # operands whose values are told


def explain(reason: str, opcode: int, opname: str, result: Tensor, operands: list[Tensor], attrs: tuple[int, ...] = ()) -> str:
    """`DIV made 3 NaN in h, f32[32,64], 2,048 elements; the first at [0, 5]: NaN from total = 0`."""
    word, test = _WORDS.get(reason, _WORDS["nan"])
    array = result.array()
    if array is None:
        return f"{opname} made {word} in {result.name}"
    at, count = -1, 0
    for start, part in blocks(array):
        bad = test(values.numbers(part, result.dtype))
        if at < 0 and bad.any():
            at = start + int(bad.argmax())
        count += int(np.count_nonzero(bad))
    if at < 0:
        return f"{opname} made {word} in {result.name}"
    first = tuple(int(i) for i in np.unravel_index(at, array.shape))
    kind = values.summary(result.dtype, result.shape, None).split("  ")[0]
    text = f"{opname} made {count:,} {word} in {result.name}, {kind}, {array.size:,} elements; the first at {list(first)}: "
    text += values.texts(array[first], result.dtype, 0, 1)[0]
    causes = [_cause(_CLASS.get(opcode, ""), operand, first, len(result.shape), number, attrs) for number, operand in enumerate(operands)]
    told = ", ".join(cause for cause in causes[:_MOST_NAMED] if cause)
    return f"{text} from {told}" if told else text


def _cause(letter: str, operand: Tensor, index: tuple[int, ...], rank: int, number: int, attrs: tuple[int, ...]) -> str:
    """What one operand contributed to the result's element at `index`."""
    array = operand.array()
    if array is None:
        return ""
    if letter in "UBT" and letter:
        return f"{operand.name} = {values.texts(_broadcast(array, index), operand.dtype, 0, 1)[0]}"
    if letter == "M" and len(attrs) == 2:  # a convolution has more
        transposed = bool(attrs[number]) if len(attrs) > number else False
        position = index[-2] if number == 0 else index[-1]
        by_row = (number == 0) != transposed  # of the operand as it lies in memory
        axis = array.ndim - (2 if by_row else 1)
        lead = _batch(array, index)
        line = np.take(array[lead], position, axis=axis - len(lead))
        return f"{'row' if by_row else 'column'} {position} of {operand.name} ({_range(line, operand.dtype)})"
    if letter == "R":
        axes = tuple(attrs[1:])
        keeps = bool(attrs[0]) if attrs else False
        rest = iter(index if not keeps else [i for axis, i in enumerate(index) if axis not in axes])
        line = array[tuple(slice(None) if axis in axes else next(rest) for axis in range(array.ndim))]
        return f"{line.size:,} elements of {operand.name} ({_range(line, operand.dtype)})"
    return f"{operand.name} ({_range(array, operand.dtype)})"


def _broadcast(array: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    lined = index[len(index) - array.ndim:] if array.ndim else ()
    return array[tuple(0 if extent == 1 else i for extent, i in zip(array.shape, lined, strict=True))]


def _batch(array: np.ndarray, index: tuple[int, ...]) -> tuple[int, ...]:
    shape = array.shape[:-2]
    lined = index[:-2][len(index) - 2 - len(shape):] if shape else ()
    return tuple(0 if extent == 1 else i for extent, i in zip(shape, lined, strict=True))


def _range(array: np.ndarray, code: int) -> str:
    stats: Any = {"nan": 0, "pos_inf": 0, "neg_inf": 0, **values.statistics(array, code)}
    words = [f"min {values.figure(stats['min'])}", f"max {values.figure(stats['max'])}"] if array.size else ["no elements"]
    words += [f"{stats[key]} {label}" for key, label in (("nan", "NaN"), ("pos_inf", "+Inf"), ("neg_inf", "-Inf")) if stats[key]]
    return ", ".join(words)
