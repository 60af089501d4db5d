"""The ops of a kernel body that look beyond one element: reductions, matmul, shape and movement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..dtypes import float32
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, where
from .builder_objects import NDObject, ScalarRef, fail, numbers
from .builder_rules import REDUCTIONS, TAKES, Rules, Scalar, encode, misuse, reproduced, taken, tensor_of


class Shaped(Rules):
    """Mixed into Kernel: everything but elementwise ops, loads and stores."""

    def sum(self, x: NDObject, dims: Any = (), keepdims: bool = False) -> NDObject:
        """Sum over axes (all if none are named). float32 (or float64) only, as in DVM."""
        return self._reduce("sum", x, dims, keepdims)

    def max(self, x: NDObject, dims: Any = (), keepdims: bool = False) -> NDObject:
        """Largest over axes."""
        return self._reduce("max", x, dims, keepdims)

    def min(self, x: NDObject, dims: Any = (), keepdims: bool = False) -> NDObject:
        """Smallest over axes."""
        return self._reduce("min", x, dims, keepdims)

    def element_any(self, x: NDObject) -> NDObject:
        """float32 of shape [1]: 1 if any element is not zero."""
        place = _core.user_place()
        return self._node("ElementAny", (taken(x, "ElementAny", place),), float32, place)

    def matmul(self, lhs: NDObject, rhs: NDObject, trans_a: bool = False, trans_b: bool = False, bias: NDObject | None = None) -> NDObject:
        """lhs @ rhs over the last two axes, batches broadcast, plus an optional bias."""
        place = _core.user_place()
        dtype = self._same_dtype("MatMul", [lhs, rhs, *([bias] if bias is not None else [])], place)
        taken(lhs, "MatMul", place)
        if self.kind == "mix" and any(node.op == "MatMul" for node in self.nodes):
            raise misuse("mix-second-cube", place, lhs, rhs, op="MatMul", kind=ArgumentError)
        result = self._node("MatMul", (lhs, rhs), dtype, place, trans_a=bool(trans_a), trans_b=bool(trans_b))
        return result if bias is None else self._node("Add", (result, bias), dtype, place)

    def _reduce(self, kind: str, x: NDObject, dims: Any, keepdims: bool) -> NDObject:
        place = _core.user_place()
        if tensor_of(x, "Reduce", place).dtype_ not in TAKES[kind] and reproduced(REDUCTIONS[kind]):
            return None  # type: ignore[return-value]
        operands = (taken(x, "Reduce", place, rule=kind),)
        return self._node("Reduce", operands, x.dtype_, place, kind=kind, dims=numbers(dims), keepdims=bool(keepdims))

    # ---- shape and movement --------------------------------------------------------------------------------

    def reshape(self, x: NDObject, shape: Any) -> NDObject:
        """The same elements in another shape; one dimension may be -1."""
        return self._shaped("Reshape", x, shape=numbers(shape))

    def permute(self, x: NDObject, dims: Any) -> NDObject:
        """Axes reordered: axis i of the result is axis dims[i] of x."""
        return self._shaped("Permute", x, dims=numbers(dims))

    def slice(self, x: NDObject, start: Any, size: Any) -> NDObject:
        """A box of x: `size` elements from `start` along every axis; size -1: to the end."""
        return self._shaped("Slice", x, start=numbers(start), size=numbers(size))

    def slice_dim(self, x: NDObject, dim: int, begin: int | ScalarRef, end: int | ScalarRef) -> NDObject:
        """x[begin:end] along one axis; negative bounds count from the end."""
        for bound in (begin, end):
            if not isinstance(bound, (int, ScalarRef)):
                raise fail(
                    ArgumentError,
                    f"Unsupported slice_dim bound type {type(bound).__name__}; it is an int or a ScalarRef",
                    _core.user_place(),
                )
        return self._shaped("DimSlice", x, dim=dim, begin=begin, end=end)

    def concat(self, inputs: Sequence[NDObject], dim: int) -> NDObject:
        """Tensors side by side along an axis."""
        place = _core.user_place()
        if not inputs:
            raise fail(ArgumentError, "needs at least one tensor", place, op="Concat")
        return self._node("Concat", tuple(inputs), self._same_dtype("Concat", list(inputs), place), place, dim=int(dim))

    def split(self, x: NDObject, dim: int, split_size: int, split_num: int) -> list[NDObject]:
        """`split_num` pieces of `split_size` along an axis; the last may be shorter."""
        pieces = (split_size, split_num)
        if split_size < 1 or split_num < 1:
            raise fail(ArgumentError, f"{split_num} pieces of {split_size}: at least one of each", _core.user_place(), x, op="Split")
        bounds = [(i * split_size, (i + 1) * split_size) for i in range(split_num)]
        return [self._shaped("DimSlice", x, dim=dim, begin=begin, end=end, pieces=pieces) for begin, end in bounds]

    def one_hot(self, indices: NDObject, depth: int, axis: int = -1, on: Scalar = 1, off: Scalar = 0, dtype: Any = float32) -> NDObject:
        """`on` where the index is, else `off`, along a new axis of extent `depth`. Indices int32."""
        place = _core.user_place()
        file, line = where(place)
        wanted = dtype_of(dtype, file=file, line=line)
        taken(indices, "OneHot", place)
        imms = tuple(encode(value, wanted, "OneHot", place) for value in (on, off))
        return self._node("OneHot", (indices,), wanted, place, depth=int(depth), axis=int(axis), imms=imms)
