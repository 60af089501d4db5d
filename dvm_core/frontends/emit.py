"""Instructions by name on value ids: the vocabulary of lowerings and gradient rules.

A value is an int (its id in the graph). A Python float where an operand is expected becomes an immediate.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..dtypes import BY_CODE, TABLE

CODE = {name: code for name, code, *_ in _core.OPS}
NAME = {code: name for name, code in CODE.items()}
CLASS = {code: letter for _, code, letter, *_ in _core.OPS}

F32, F16, BF16, F64, BOOL, I8, U8, I32, I64 = (dtype.code for dtype in TABLE)
FLOATS = frozenset((F32, F16, BF16, F64))
HALVES = frozenset((F16, BF16))

_NARROW = frozenset((I8, U8, I32))
_EXACT = 2.0**53
_BOOL = frozenset(code for _, code, _, _, rule, _ in _core.OPS if rule == "bool")
_SELECT = CODE["SELECT"]
_VIEWS = frozenset(code for code, letter in CLASS.items() if letter == "V")

Operand = Any  # int (value id) or float (immediate)


def result_dtype(opcode: int, operands: Sequence[int], dtypes: Sequence[int], given: int) -> int:
    """Dtype of an instruction's result, by the dtype rule of native/ops.def."""
    if given:
        return given
    if opcode in _BOOL:
        return BOOL
    if opcode == _SELECT:
        return dtypes[operands[1]]
    first = operands[0]
    return dtypes[first if first >= 0 else operands[1]]


def signed(number: int) -> int:
    """A seed or offset as the 64 bits an immediate holds."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def wrapped(number: float, dtype: int) -> float:
    """A whole number as a narrow integer dtype holds it, wrapped around as frameworks do; anything else as it is."""
    if dtype not in _NARROW or not -_EXACT <= number <= _EXACT or not number.is_integer():
        return number
    found = BY_CODE[dtype].wrapped(int(number))
    return number if found == number else float(found)


class Emitter:
    """Base of what records: a front end's capture, and the builder of a backward plan."""

    def op(self, opcode: int, operands: tuple[int, ...], attrs: tuple[int, ...] = (), shape: tuple[int, ...] | None = None, dtype: int = 0,
           imms: tuple[float, ...] = ()) -> int:
        raise NotImplementedError

    def shape(self, value: int) -> tuple[int, ...]:
        raise NotImplementedError

    def dtype(self, value: int) -> int:
        raise NotImplementedError

    # ---- elementwise -----------------------------------------------------------------------------------------------------------------

    def binary(self, opcode: int, a: Operand, b: Operand) -> int:
        """A class-B instruction; either side may be a float."""
        if isinstance(b, float):
            return self.op(opcode, (a, -1), imms=(wrapped(b, self.dtype(a)),))
        if isinstance(a, float):
            return self.op(opcode, (-1, b), imms=(wrapped(a, self.dtype(b)),))
        return self.op(opcode, (a, b))

    def unary(self, opcode: int, a: int) -> int:
        return self.op(opcode, (a,))

    def select(self, condition: int, a: int, b: int) -> int:
        """condition ? a : b. Both sides are values; see `full` for a constant."""
        return self.op(_SELECT, (condition, a, b))

    def cast(self, a: int, dtype: int) -> int:
        """a in another dtype; a itself if it has that dtype."""
        return a if self.dtype(a) == dtype else self.op(CODE["CAST"], (a,), dtype=dtype)

    def full(self, value: float, shape: tuple[int, ...], dtype: int) -> int:
        return self.op(CODE["FULL"], (), shape=shape, dtype=dtype, imms=(wrapped(value, dtype),))

    def iota(self, shape: tuple[int, ...], axis: int, dtype: int) -> int:
        """0, 1, 2 ... along axis."""
        return self.op(CODE["IOTA"], (), (axis,), shape, dtype)

    def random(self, shape: tuple[int, ...], seed: int, offset: int, dtype: int = F32) -> int:
        """Uniform numbers over [0, 1) that seed, offset and the element's number decide."""
        return self.op(CODE["RANDOM"], (), (), shape, dtype, (signed(seed), signed(offset)))

    # ---- reductions ------------------------------------------------------------------------------------------------------------------

    def reduce(self, opcode: int, a: int, axes: Sequence[int], keepdims: bool) -> int:
        """SUM, MAX, MIN, MEAN or PROD over any axes (negative: from the end); a run of neighbours is one instruction, last run first."""
        runs = _adjacent(tuple(axes), len(self.shape(a)))
        for run in runs:
            a = self.op(opcode, (a,), (int(keepdims), *run))
        return a

    def sum(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        return self.reduce(CODE["SUM"], a, axes, keepdims)

    def mean(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        return self.reduce(CODE["MEAN"], a, axes, keepdims)

    def prod(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        return self.reduce(CODE["PROD"], a, axes, keepdims)

    def max(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        return self.reduce(CODE["MAX"], a, axes, keepdims)

    def min(self, a: int, axes: Sequence[int], keepdims: bool = False) -> int:
        return self.reduce(CODE["MIN"], a, axes, keepdims)

    # ---- matmul, views, data movement ------------------------------------------------------------------------------------------------

    def matmul(self, a: int, b: int, transpose_a: bool = False, transpose_b: bool = False) -> int:
        return self.op(CODE["MATMUL"], (a, b), (int(transpose_a), int(transpose_b)))

    def conv2d(self, a: int, weight: int, attrs: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """attrs: stride, before, dilation, gap (y and x each), groups."""
        return self.op(CODE["CONV2D"], (a, weight), attrs, shape)

    def conv2d_weight(self, a: int, g: int, attrs: tuple[int, ...], shape: tuple[int, ...]) -> int:
        return self.op(CODE["CONV2D_WEIGHT"], (a, g), attrs, shape)

    def pool(self, name: str, operands: tuple[int, ...], attrs: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """MAX_POOL2D or AVG_POOL2D, or one of their gradients."""
        return self.op(CODE[name], operands, attrs, shape)

    def reshape(self, a: int, shape: tuple[int, ...]) -> int:
        return self.op(CODE["RESHAPE"], (a,), shape=shape)

    def transpose(self, a: int, permutation: tuple[int, ...]) -> int:
        return self.op(CODE["TRANSPOSE"], (a,), permutation)

    def broadcast(self, a: int, shape: tuple[int, ...]) -> int:
        return self.op(CODE["BROADCAST"], (a,), shape=shape)

    def slice(self, a: int, start_step: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """r[i] = a[start + step * i]; start_step: start and step of every axis, in turn."""
        return self.op(CODE["SLICE"], (a,), start_step, shape)

    def unslice(self, a: int, start_step: tuple[int, ...], shape: tuple[int, ...]) -> int:
        return self.op(CODE["UNSLICE"], (a,), start_step, shape)

    def concat(self, values: Sequence[int], axis: int) -> int:
        return self.op(CODE["CONCAT"], tuple(values), (axis,))

    def gather(self, a: int, index: int, axis: int) -> int:
        return self.op(CODE["GATHER"], (a, index), (axis,))

    def scatter_add(self, a: int, index: int, axis: int, shape: tuple[int, ...]) -> int:
        return self.op(CODE["SCATTER_ADD"], (a, index), (axis,), shape)

    def pad(self, a: int, before: tuple[int, ...], shape: tuple[int, ...], value: float = 0.0) -> int:
        return self.op(CODE["PAD"], (a,), before, shape, imms=(value,))

    def cumsum(self, a: int, axis: int, exclusive: bool = False, reverse: bool = False) -> int:
        return self.op(CODE["CUMSUM"], (a,), (axis, int(exclusive), int(reverse)))

    def gather_elements(self, a: int, index: int, axis: int) -> int:
        """r[..., i, ...] = a[..., index[..., i, ...], ...]; the index has a's rank."""
        return self.op(CODE["GATHER_ELEMENTS"], (a, index), (axis,))

    def scatter(self, a: int, index: int, new: int, axis: int) -> int:
        """a with a[index] = new along an axis."""
        return self.op(CODE["SCATTER"], (a, index, new), (axis,))

    def scatter_elements(self, a: int, index: int, new: int, axis: int) -> int:
        return self.op(CODE["SCATTER_ELEMENTS"], (a, index, new), (axis,))

    def scatter_add_elements(self, a: int, index: int, axis: int, shape: tuple[int, ...]) -> int:
        return self.op(CODE["SCATTER_ADD_ELEMENTS"], (a, index), (axis,), shape)

    def argmax(self, a: int, axis: int, keepdims: bool = False, dtype: int = I64) -> int:
        return self.op(CODE["ARGMAX"], (a,), (int(keepdims), axis), dtype=dtype)

    def argmin(self, a: int, axis: int, keepdims: bool = False, dtype: int = I64) -> int:
        return self.op(CODE["ARGMIN"], (a,), (int(keepdims), axis), dtype=dtype)

    def sort(self, a: int, axis: int, descending: bool = False) -> int:
        return self.op(CODE["SORT"], (a,), (axis, int(descending)))

    def argsort(self, a: int, axis: int, descending: bool = False, dtype: int = I64) -> int:
        return self.op(CODE["ARGSORT"], (a,), (axis, int(descending)), dtype=dtype)

    def topk(self, a: int, axis: int, k: int, descending: bool = True, dtype: int = I64) -> int:
        """Positions of the k largest (smallest, if not descending) elements, in order."""
        return self.op(CODE["TOPK"], (a,), (axis, k, int(descending)), dtype=dtype)

    def one_hot(self, index: int, depth: int, dtype: int, on: float = 1.0, off: float = 0.0) -> int:
        return self.op(CODE["ONE_HOT"], (index,), (depth,), None, dtype, (on, off))

    def add(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["ADD"], a, b)

    def sub(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["SUB"], a, b)

    def mul(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["MUL"], a, b)

    def div(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["DIV"], a, b)

    def pow(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["POW"], a, b)

    def maximum(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["MAXIMUM"], a, b)

    def minimum(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["MINIMUM"], a, b)

    def equal(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["EQUAL"], a, b)

    def not_equal(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["NOT_EQUAL"], a, b)

    def less(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["LESS"], a, b)

    def less_equal(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["LESS_EQUAL"], a, b)

    def greater(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["GREATER"], a, b)

    def greater_equal(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["GREATER_EQUAL"], a, b)

    def logical_and(self, a: int, b: int) -> int:
        return self.binary(CODE["LOGICAL_AND"], a, b)

    def logical_or(self, a: int, b: int) -> int:
        return self.binary(CODE["LOGICAL_OR"], a, b)

    def logical_not(self, a: int) -> int:
        return self.unary(CODE["LOGICAL_NOT"], a)

    def neg(self, a: int) -> int:
        return self.unary(CODE["NEG"], a)

    def abs(self, a: int) -> int:
        return self.unary(CODE["ABS"], a)

    def exp(self, a: int) -> int:
        return self.unary(CODE["EXP"], a)

    def log(self, a: int) -> int:
        return self.unary(CODE["LOG"], a)

    def log1p(self, a: int) -> int:
        return self.unary(CODE["LOG1P"], a)

    def sqrt(self, a: int) -> int:
        return self.unary(CODE["SQRT"], a)

    def rsqrt(self, a: int) -> int:
        return self.unary(CODE["RSQRT"], a)

    def reciprocal(self, a: int) -> int:
        return self.unary(CODE["RECIPROCAL"], a)

    def tanh(self, a: int) -> int:
        return self.unary(CODE["TANH"], a)

    def erf(self, a: int) -> int:
        return self.unary(CODE["ERF"], a)

    def sigmoid(self, a: int) -> int:
        return self.unary(CODE["SIGMOID"], a)

    def floor(self, a: int) -> int:
        return self.unary(CODE["FLOOR"], a)

    def trunc(self, a: int) -> int:
        return self.unary(CODE["TRUNC"], a)

    def expm1(self, a: int) -> int:
        return self.unary(CODE["EXPM1"], a)

    def tan(self, a: int) -> int:
        return self.unary(CODE["TAN"], a)

    def atan(self, a: int) -> int:
        return self.unary(CODE["ATAN"], a)

    def sign(self, a: int) -> int:
        return self.unary(CODE["SIGN"], a)

    def fmod(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["FMOD"], a, b)

    def remainder(self, a: Operand, b: Operand) -> int:
        return self.binary(CODE["REMAINDER"], a, b)

    def sin(self, a: int) -> int:
        return self.unary(CODE["SIN"], a)

    def cos(self, a: int) -> int:
        return self.unary(CODE["COS"], a)

    def copy(self, a: int) -> int:
        return self.unary(CODE["COPY"], a)


@functools.cache
def _adjacent(axes: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], ...]:
    """Axes as runs of adjacent ones, the last run first: earlier axes keep their numbers when later ones are gone."""
    runs: list[list[int]] = []
    for axis in sorted({axis + rank if axis < 0 else axis for axis in axes}):
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return tuple(map(tuple, reversed(runs)))


def is_view(opcode: int) -> bool:
    """RESHAPE, TRANSPOSE, SLICE, BROADCAST: no work if the operand is in memory."""
    return opcode in _VIEWS
