"""The methods of an array: elementwise, reductions, matmul, shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _core
from ..dtypes import DataType, bfloat16, bool_, describe, float16, float32, float64, int64
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, DtypeError, ShapeError, where
from ..msbc.layout import CODES as OP
from .array_record import record

if TYPE_CHECKING:
    from .array import Array


Scalar = bool | int | float

_SUM, _MEAN, _MAX, _MIN, _PROD = (OP[name] for name in ("SUM", "MEAN", "MAX", "MIN", "PROD"))


def _unary(opcode: str) -> Callable[[Methods], Array]:
    code = OP[opcode]
    return lambda self: record(code, (self,))  # type: ignore[arg-type]


def _float_unary(opcode: str) -> Callable[[Methods], Array]:
    # As NumPy: bools and integers of 8 bits become float16 first, wider ones float64.
    code = OP[opcode]
    return lambda self: record(code, (self if self.dtype.kind == "f" else self.astype(float16 if self.dtype.itemsize == 1 else float64),))  # type: ignore[arg-type]


class Methods:
    """Mixed into Array."""

    __slots__ = ()
    if TYPE_CHECKING:
        dtype: DataType
        shape: tuple[int, ...]

        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...

    _op: Callable[..., Array]
    _reduced: Callable[[int, int | Sequence[int] | None, bool], Array | None]  # the core's, for what is plain
    _binary: Callable[..., Array]
    _operand: Callable[[str, Any], Array | Scalar]
    _dtype_error: Callable[..., DtypeError]

    exp, log, sqrt, rsqrt = _float_unary("EXP"), _float_unary("LOG"), _float_unary("SQRT"), _float_unary("RSQRT")
    tanh, erf, sigmoid = _float_unary("TANH"), _float_unary("ERF"), _float_unary("SIGMOID")
    sin, cos, reciprocal, log1p = _float_unary("SIN"), _float_unary("COS"), _float_unary("RECIPROCAL"), _float_unary("LOG1P")
    floor, ceil, round, trunc = _unary("FLOOR"), _unary("CEIL"), _unary("ROUND"), _unary("TRUNC")
    expm1, tan, atan = _float_unary("EXPM1"), _float_unary("TAN"), _float_unary("ATAN")
    sign, isnan, isinf = _unary("SIGN"), _unary("IS_NAN"), _unary("IS_INF")
    abs, isfinite, copy = _unary("ABS"), _unary("IS_FINITE"), _unary("COPY")

    def maximum(self, other: Any) -> Array:
        """The larger, element by element; NaN if either is."""
        return self._binary("MAXIMUM", other)

    def minimum(self, other: Any) -> Array:
        return self._binary("MINIMUM", other)

    def relu(self) -> Array:
        return self._binary("MAXIMUM", 0)

    def astype(self, dtype: Any) -> Array:
        """In another dtype; float to integer goes towards zero."""
        file, line = where(_core.user_place())
        wanted = dtype_of(dtype, file=file, line=line)
        return self._op("CAST", dtype=wanted) if wanted is not self.dtype else self._itself()

    to = astype

    def where(self, a: Any, b: Any) -> Array:
        """a where this (bool) array is true, else b. One of a and b may be a number."""
        from .array import Array, full, tensor

        if self.dtype is not bool_:
            raise self._dtype_error(
                "SELECT", f"the condition must be bool, got {describe(self.dtype, self.shape)}; compare it, as in x > 0"
            )
        first = a if isinstance(a, Array) else b if isinstance(b, Array) else tensor(a)
        sides = [side if isinstance(side, Array) else full((), first._number("SELECT", side), first.dtype) for side in (a, b)]
        return self._op("SELECT", sides)

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """Integers and bools are summed as int64, as NumPy does (uint8 too, for want of uint64)."""
        made = self._reduced(_SUM, axis, keepdims)
        return self._as(int64 if self.dtype.kind != "f" else self.dtype)._reduce("SUM", axis, keepdims) if made is None else made

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """Of integers and bools in float64, as NumPy does."""
        made = self._reduced(_MEAN, axis, keepdims)
        return self._as(float64 if self.dtype.kind != "f" else self.dtype)._reduce("MEAN", axis, keepdims) if made is None else made

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        made = self._reduced(_MAX, axis, keepdims)
        return self._reduce("MAX", axis, keepdims) if made is None else made

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        made = self._reduced(_MIN, axis, keepdims)
        return self._reduce("MIN", axis, keepdims) if made is None else made

    def prod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """Integers and bools are multiplied as int64, as NumPy does."""
        made = self._reduced(_PROD, axis, keepdims)
        return self._as(int64 if self.dtype.kind != "f" else self.dtype)._reduce("PROD", axis, keepdims) if made is None else made

    def norm(self, p: float = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """(sum |x| ** p) ** (1 / p) over the axes; p infinite: the largest |x|."""
        if p == 2:
            return (self._itself() * self._itself()).sum(axis, keepdims).sqrt()
        size = self.abs()
        if math.isinf(p):
            return size.max(axis, keepdims) if p > 0 else size.min(axis, keepdims)
        return size.sum(axis, keepdims) if p == 1 else (size**p).sum(axis, keepdims) ** (1 / p)

    def clamp(self, low: Any = None, high: Any = None) -> Array:
        """Nothing below `low`, nothing above `high`; NaN stays."""
        raised = self._itself() if low is None else self.maximum(low)
        return raised if high is None else raised.minimum(high)

    def logsumexp(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """ln(sum(exp x)) over the axes, without overflow."""
        peak = self.max(axis, True)
        peak = peak.isfinite().where(peak, 0)
        total = (self._itself() - peak).exp().sum(axis, True).log() + peak
        return total if keepdims else total.reshape(self._shape_without(axis, False))

    def log_softmax(self, axis: int = -1) -> Array:
        """x - max - ln(sum(exp(x - max))) along an axis; of halves in float32, rounded once."""
        if self.dtype in (float16, bfloat16):
            return self.astype(float32).log_softmax(axis).astype(self.dtype)
        shifted = self._itself() - self.max(axis, True)
        return shifted - shifted.exp().sum(axis, True).log()

    def softmax(self, axis: int = -1) -> Array:
        """exp(x - max) / sum(exp(x - max)) along an axis; of halves in float32, rounded once."""
        if self.dtype in (float16, bfloat16):
            return self.astype(float32).softmax(axis).astype(self.dtype)
        e = (self._itself() - self.max(axis, True)).exp()
        return e / e.sum(axis, True)

    def _reduce(self, name: str, axis: int | Sequence[int] | None, keepdims: bool) -> Array:
        axes = self._axes(axis)
        result, group = self._itself(), list[int]()
        for number in [*reversed(axes), None]:  # runs of neighbours, the last first, so that earlier axes keep their numbers
            if group and number != group[0] - 1:
                result = result._op(name, attrs=(int(keepdims), *group))
                group = []
            if number is not None:
                group.insert(0, number)
        return result if axes else self._op("COPY")

    def _as(self, dtype: DataType) -> Array:
        return self._itself() if dtype is self.dtype else self._op("CAST", dtype=dtype)

    def _itself(self) -> Array:
        return cast("Array", self)

    def _axes(self, axis: int | Sequence[int] | None) -> list[int]:
        # Counted from the front, in order. An axis named twice is a mistake, as in NumPy.
        axes = sorted(self._axis(item) for item in ((axis,) if isinstance(axis, int) else range(self.ndim) if axis is None else axis))
        if len(set(axes)) < len(axes):
            file, line = where(_core.user_place())
            raise ArgumentError(f"axis {axis!r} names an axis of {describe(self.dtype, self.shape)} twice", shapes=[self.shape], file=file,
                                line=line)
        return axes

    def _shape_without(self, axis: int | Sequence[int] | None, keepdims: bool) -> list[int]:
        # The shape without these axes, or with 1 in their place.
        axes = self._axes(axis)
        return [1 if i in axes else extent for i, extent in enumerate(self.shape) if keepdims or i not in axes]

    def _axis(self, axis: int) -> int:
        if not -self.ndim <= axis < self.ndim:
            file, line = where(_core.user_place())
            raise ArgumentError(
                f"axis {axis} is out of range for {describe(self.dtype, self.shape)}", shapes=[self.shape], file=file, line=line
            )
        return axis % self.ndim

    def matmul(self, other: Any, transpose_a: bool = False, transpose_b: bool = False) -> Array:
        """self @ other over the last two axes, batches broadcast. A vector on the left is a row, on the right a column, as in NumPy."""
        other = self._operand("MATMUL", other)
        if not isinstance(other, Methods):
            raise self._dtype_error("MATMUL", f"takes an array, got {other!r}")
        left = self.reshape(1, -1) if self.ndim == 1 else self
        right = other.reshape(-1, 1) if other.ndim == 1 else other
        result = left._op("MATMUL", (right,), (int(transpose_a), int(transpose_b)))
        shape = list(result.shape)
        if other.ndim == 1:
            del shape[-1]
        if self.ndim == 1:
            del shape[-1 if other.ndim == 1 else -2]
        return result if len(shape) == result.ndim else result.reshape(shape)

    def reshape(self, *shape: Any) -> Array:
        """The same elements in another shape; one dimension may be -1."""
        wanted = [int(dim) for dim in (shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)]
        if wanted.count(-1) == 1:
            rest = int(np.prod([dim for dim in wanted if dim != -1], dtype=np.int64))
            if rest and self.size % rest == 0:
                wanted[wanted.index(-1)] = self.size // rest
        if any(dim < 0 for dim in wanted):
            file, line = where(_core.user_place())
            raise ShapeError(
                f"RESHAPE: {describe(self.dtype, self.shape)} does not make {wanted}",
                op="RESHAPE",
                shapes=[self.shape],
                file=file,
                line=line,
            )
        return self._op("RESHAPE", shape=tuple(wanted))

    def transpose(self, *axes: Any) -> Array:
        """Axes reordered; reversed if none are named."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or range(self.ndim - 1, -1, -1)
        return self._op("TRANSPOSE", attrs=tuple(self._axis(int(axis)) for axis in order))

    def swapaxes(self, a: int, b: int) -> Array:
        order = [*range(self.ndim)]
        a, b = self._axis(a), self._axis(b)
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def broadcast_to(self, shape: Sequence[int]) -> Array:
        return self._op("BROADCAST", shape=tuple(shape))

    def one_hot(self, depth: int, on: Scalar = 1, off: Scalar = 0, dtype: Any = float32) -> Array:
        """`on` where the index is, else `off`, along a new last axis."""
        return record(OP["ONE_HOT"], (self._itself(),), (depth,), None, dtype_of(dtype).code, (on, off))
