"""The elementwise ops of a kernel body. Each checks dtypes, applies DVM's build-time rewrites, and adds nodes; shapes come at the call."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from ..dtypes import bfloat16, bool_, float16, float32, int64, uint8
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, where
from .builder_objects import NDObject, fail, numbers
from .builder_rules import Operand, Rules, Scalar, encode, taken, tensor_of

# The spellings of binary() and unary(): DVM's names -> our method
OLD_NAMES = {
    name: method
    for method, names in {
        "add": "Add",
        "sub": "Sub",
        "mul": "Mul",
        "div": "Div RealDiv",
        "pow": "Pow Power",
        "maximum": "Maximum Max",
        "minimum": "Minimum Min",
        "equal": "Equal",
        "not_equal": "NotEqual",
        "greater": "Greater",
        "greater_equal": "GreaterEqual",
        "less": "Less",
        "less_equal": "LessEqual",
        "logical_and": "LogicalAnd",
        "logical_or": "LogicalOr",
        "logical_not": "LogicalNot",
        "sqrt": "Sqrt",
        "abs": "Abs",
        "log": "Log",
        "exp": "Exp",
        "reciprocal": "Reciprocal",
        "isfinite": "IsFinite",
        "round": "Round",
        "floor": "Floor",
        "ceil": "Ceil",
        "trunc": "Trunc",
        "copy": "Copy",
    }.items()
    for name in names.split()
}


class Elementwise(Rules):
    """Mixed into Kernel: ops on single elements, and the older spellings of all ops."""

    def sqrt(self, x: NDObject) -> NDObject:
        return self._unary("Sqrt", x)

    def abs(self, x: NDObject) -> NDObject:
        return self._unary("Abs", x)

    def log(self, x: NDObject) -> NDObject:
        return self._unary("Log", x)

    def exp(self, x: NDObject) -> NDObject:
        return self._unary("Exp", x)

    def round(self, x: NDObject) -> NDObject:
        """To the nearest integer, halves to even."""
        return self._unary("Round", x)

    def floor(self, x: NDObject) -> NDObject:
        return self._unary("Floor", x)

    def ceil(self, x: NDObject) -> NDObject:
        return self._unary("Ceil", x)

    def trunc(self, x: NDObject) -> NDObject:
        return self._unary("Trunc", x)

    def isfinite(self, x: NDObject) -> NDObject:
        """bool: neither NaN nor infinite."""
        return self._unary("IsFinite", x, bool_)

    def copy(self, x: NDObject) -> NDObject:
        return self._unary("Copy", x)

    def reciprocal(self, x: NDObject) -> NDObject:
        """1 / x."""
        return self._binary("Div", 1.0, x)

    def logical_not(self, x: NDObject) -> NDObject:
        """Not x for bool; 1 - x for numbers."""
        return self._unary("LogicalNot", x) if tensor_of(x, "LogicalNot").dtype_ is bool_ else self.sub(1, x)

    def add(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Add", a, b)

    def sub(self, a: Operand, b: Operand) -> NDObject:
        """a - b; with a number on one side it becomes an addition, as in DVM: x + (-s), x * (-1) + s."""
        if isinstance(b, (int, float)) and _negates(b, a):
            return self._binary("Add", a, -b)
        if isinstance(a, (int, float)) and isinstance(b, NDObject) and b.dtype_ not in (int64, uint8):  # no product, no -1
            return self._binary("Add", self._binary("Mul", b, -1), a)
        return self._binary("Sub", a, b)

    def mul(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Mul", a, b)

    def div(self, a: Operand, b: Operand) -> NDObject:
        """a / b, of floats."""
        return self._binary("Div", a, b)

    def maximum(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Maximum", a, b)

    def minimum(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Minimum", a, b)

    def equal(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Equal", a, b)

    def not_equal(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("NotEqual", a, b)

    def greater(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Greater", a, b)

    def greater_equal(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("GreaterEqual", a, b)

    def less(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("Less", a, b)

    def less_equal(self, a: Operand, b: Operand) -> NDObject:
        return self._binary("LessEqual", a, b)

    def logical_and(self, a: NDObject, b: NDObject) -> NDObject:
        return self._logical("LogicalAnd", a, b)

    def logical_or(self, a: NDObject, b: NDObject) -> NDObject:
        return self._logical("LogicalOr", a, b)

    def pow(self, a: Operand, b: Operand) -> NDObject:
        """a ** b. A whole exponent becomes multiplications; a positive number to a tensor exp(b ln a). Halves go through float32."""
        half = next((item.dtype_ for item in (a, b) if isinstance(item, NDObject) and item.dtype_ in (float16, bfloat16)), None)
        if half is not None:
            self._same_dtype("Power", [item for item in (a, b) if isinstance(item, NDObject)], _core.user_place())
            return self.cast(self.pow(*(self.cast(item, float32) if isinstance(item, NDObject) else item for item in (a, b))), half)
        if isinstance(b, (int, float)) and isinstance(a, NDObject) and math.isfinite(b) and int(b) == b:
            return self._whole_power(a, int(b))
        if isinstance(a, (int, float)) and a > 0 and math.isfinite(a) and isinstance(b, NDObject):
            return self.exp(self._binary("Mul", b, math.log(a)))
        return self._binary("Power", a, b)

    def cast(self, x: NDObject, dtype: Any) -> NDObject:
        """x in another dtype; x itself if it has it already. Float to integer goes towards zero."""
        place = _core.user_place()
        file, line = where(place)
        wanted = dtype_of(dtype, file=file, line=line)
        return x if tensor_of(x, "Cast").dtype_ is wanted else self._node("Cast", (x,), wanted, place)

    def select(self, cond: NDObject, a: Operand, b: Operand) -> NDObject:
        """a where cond, else b. One of a and b may be a number; a cond that is no bool means cond != 0."""
        place = _core.user_place()
        if tensor_of(cond, "Select", place).dtype_ is not bool_:
            cond = self._node("Cast", (cond,), bool_, place)
        tensors = [item for item in (a, b) if isinstance(item, NDObject)]
        if not tensors:
            raise fail(ArgumentError, "one of the two choices must be a tensor", place, op="Select")
        dtype = tensor_of(tensors[0], "Select", place).dtype_
        sides = [
            item if isinstance(item, NDObject) else self._full(encode(item, dtype, "Select", place), (), dtype, place)
            for item in self._one_dtype("Select", (a, b), place)
        ]
        return self._node("Select", (cond, *sides), dtype, place)

    def broadcast(self, x: NDObject | Scalar, shape: Any, dtype: Any = None) -> NDObject:
        """x stretched to a shape, aligned at the right; -1 keeps an extent. A number needs a dtype and fills the shape."""
        if not isinstance(x, NDObject):
            return self.full(x, shape, float32 if dtype is None else dtype)
        return self._node("Broadcast", (x,), x.dtype_, _core.user_place(), shape=numbers(shape))

    def full(self, value: Scalar, shape: Any, dtype: Any) -> NDObject:
        """A tensor of one value."""
        place = _core.user_place()
        file, line = where(place)
        wanted = dtype_of(dtype, file=file, line=line)
        return self._full(encode(value, wanted, "Full", place), numbers(shape), wanted, place)

    def _logical(self, op: str, a: NDObject, b: NDObject) -> NDObject:
        # Of numbers: 1 where both (either) are not zero, in their own dtype.
        place = _core.user_place()
        dtype = self._same_dtype(op, [taken(a, op, place), tensor_of(b, op, place)], place)
        if dtype is bool_:
            return self._node(op, (a, b), bool_, place)
        result = self._node(op, [self._node("Cast", (side,), bool_, place) for side in (a, b)], bool_, place)
        return self._node("Cast", (result,), dtype, place)

    def _whole_power(self, x: NDObject, exponent: int) -> NDObject:
        place = _core.user_place()
        if exponent == 0:
            return self._node("FullLike", (x,), x.dtype_, place, value=encode(1, x.dtype_, "Power", place))
        if exponent < 0:
            taken(x, "Div", place)
            return self.reciprocal(self._whole_power(x, -exponent))
        if exponent == 1:
            return self.copy(x)
        square, result, left = x, None, exponent
        while True:
            if left & 1:
                result = square if result is None else self._binary("Mul", result, square)
            left >>= 1
            if not left:
                assert result is not None
                return result
            square = self._binary("Mul", square, square)

    # ---- the older spellings --------------------------------------------------------------------------------

    def binary(self, op: str, a: Operand, b: Operand) -> NDObject:
        """`binary("Add", a, b)` is `add(a, b)`."""
        return getattr(self, self._old_name(op))(a, b)

    def unary(self, op: str, x: NDObject) -> NDObject:
        """`unary("Exp", x)` is `exp(x)`."""
        return getattr(self, self._old_name(op))(x)

    def reduce(self, op: str, x: NDObject, dims: Any = (), keepdims: bool = False) -> NDObject:
        """`reduce("sum", x, dims, keepdims)` is `sum(x, dims, keepdims)`."""
        if op.lower() not in ("sum", "max", "min"):
            raise fail(ArgumentError, f"there is no reduction {op!r}; there are sum, max, min", _core.user_place())
        return self._reduce(op.lower(), x, dims, keepdims)

    def _old_name(self, op: str) -> str:
        if op not in OLD_NAMES:
            raise fail(ArgumentError, f"there is no op {op!r}; there are {', '.join(OLD_NAMES)}", _core.user_place())
        return OLD_NAMES[op]


def _negates(number: float | int, tensor: Any) -> bool:
    # -number is a number of the tensor's dtype: not of uint8, and not for the least integer
    dtype = tensor.dtype_ if isinstance(tensor, NDObject) else float32
    return dtype.kind == "f" or dtype is not uint8 and number != -(1 << 8 * dtype.itemsize - 1)
