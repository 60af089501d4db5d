"""The methods of an array that sort, search, scan, pad, pick elements by an index or at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from ..dtypes import bool_, describe, float32, int32, int64
from ..dtypes import of as dtype_of
from ..errors import ArgumentError, where
from ..msbc.layout import CODES as OP
from .array_record import record
from .emit import signed

if TYPE_CHECKING:
    from .array import Array
    from .array_methods import Scalar


class Selection:
    """Mixed into Array. Positions are int64; NaN counts as larger than every number."""

    __slots__ = ()
    if TYPE_CHECKING:
        dtype: Any
        shape: tuple[int, ...]
        ndim: int
        size: int
        _axis: Any
        _op: Any
        _operand: Any
        _shape_without: Any
        _number: Any
        _dtype_error: Any
        astype: Any
        reshape: Any

    # ---- order -----------------------------------------------------------------------------------

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Array:
        """The position of the largest element along an axis (None: of all), the first of several; the first NaN if there is one."""
        return self._extreme("ARGMAX", axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._extreme("ARGMIN", axis, keepdims)

    def sort(self, axis: int = -1, descending: bool = False) -> Array:
        """The elements in order along an axis; equal ones stay as they were."""
        return self._op("SORT", attrs=(self._axis(axis), int(descending))) if self.ndim else self._op("COPY")

    def argsort(self, axis: int = -1, descending: bool = False) -> Array:
        """Positions of the elements in sort's order."""
        array = self if self.ndim else self.reshape(1)
        found = array._op("ARGSORT", attrs=(array._axis(axis), int(descending)), dtype=int64)
        return found if self.ndim else found.reshape(())

    def topk(self, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
        """(values, positions) of the k largest (or smallest) elements along an axis, in order."""
        axis = self._axis(axis)
        positions = self._op("TOPK", attrs=(axis, int(k), int(largest)), dtype=int64)
        return self._op("GATHER_ELEMENTS", (positions,), (axis,)), positions

    def cumsum(self, axis: int | None = None, exclusive: bool = False, reverse: bool = False) -> Array:
        """Sums up to each element along an axis (None: of the flattened array), added one after the other. Integers and bools as int64.

        exclusive: without the element itself. reverse: from the end.
        """
        array = self if self.dtype.kind == "f" or self.dtype is int64 else self.astype(int64)
        if axis is None:
            array, axis = array.reshape(-1), 0
        return cast("Array", array._op("CUMSUM", attrs=(array._axis(axis), int(exclusive), int(reverse))))

    def _extreme(self, name: str, axis: int | None, keepdims: bool) -> Array:
        if axis is None:
            found = self.reshape(-1)._op(name, attrs=(0, 0), dtype=int64)
            return found.reshape((1,) * self.ndim) if keepdims else found
        return cast("Array", self._op(name, attrs=(int(keepdims), self._axis(axis)), dtype=int64))

    # ---- by index ----------------------------------------------------------------------------------

    def gather_elements(self, index: Any, axis: int) -> Array:
        """r[..., i, ...] = self[..., index[..., i, ...], ...] along an axis; the index has this array's rank. NumPy's take_along_axis."""
        return cast("Array", self._op("GATHER_ELEMENTS", (self._index("GATHER_ELEMENTS", index),), (self._axis(axis),)))

    def scatter(self, index: Any, values: Any, axis: int = 0) -> Array:
        """A copy with self[index] = values along an axis; of several writes to one place the last one stays."""
        axis, where_to = self._axis(axis), self._index("SCATTER", index)
        shape = (*self.shape[:axis], *where_to.shape, *self.shape[axis + 1 :])
        return cast("Array", self._op("SCATTER", (where_to, self._spread("SCATTER", values, shape)), (axis,)))

    def scatter_elements(self, index: Any, values: Any, axis: int) -> Array:
        """A copy with self[..., index[..., i, ...], ...] = values[..., i, ...]; of several writes to one place the last one stays."""
        where_to = self._index("SCATTER_ELEMENTS", index)
        values = self._spread("SCATTER_ELEMENTS", values, where_to.shape)
        return cast("Array", self._op("SCATTER_ELEMENTS", (where_to, values), (self._axis(axis),)))

    def scatter_add(self, index: Any, values: Any, axis: int = 0) -> Array:
        """A copy with values added at self[index] along an axis, in the index's order."""
        axis, where_to = self._axis(axis), self._index("SCATTER_ADD", index)
        shape = (*self.shape[:axis], *where_to.shape, *self.shape[axis + 1 :])
        return self + self._spread("SCATTER_ADD", values, shape)._op("SCATTER_ADD", (where_to,), (axis,), self.shape)  # type: ignore[operator, no-any-return]

    def scatter_add_elements(self, index: Any, values: Any, axis: int) -> Array:
        """A copy with values[..., i, ...] added at self[..., index[..., i, ...], ...]."""
        where_to = self._index("SCATTER_ADD_ELEMENTS", index)
        values = self._spread("SCATTER_ADD_ELEMENTS", values, where_to.shape)
        return self + values._op("SCATTER_ADD_ELEMENTS", (where_to,), (self._axis(axis),), self.shape)  # type: ignore[operator, no-any-return]

    def _index(self, name: str, index: Any) -> Array:
        from .array import tensor

        found = tensor(index)
        if found.dtype not in (int32, int64):
            raise self._dtype_error(name, f"the index must be int32 or int64, got {describe(found.dtype, found.shape)}", found)
        return found

    def _spread(self, name: str, values: Any, shape: tuple[int, ...]) -> Array:
        # A number or an array of this dtype as an array of that shape.
        from .array import Array, full

        found = self._operand(name, values)
        if not isinstance(found, Array):
            return full(shape, found, self.dtype)
        return found if found.shape == shape else found.broadcast_to(shape)

    # ---- shape -------------------------------------------------------------------------------------

    def pad(self, width: int | Sequence[Any], value: Scalar = 0) -> Array:
        """More elements at the ends of the axes: width is one number, (before, after), or a pair for each axis, as in NumPy."""
        pairs: Any = width
        if isinstance(width, int):
            pairs = ((width, width),) * self.ndim
        elif len(width) == 2 and all(isinstance(n, int) for n in width):
            pairs = (tuple(width),) * self.ndim
        if len(pairs) != self.ndim or any(n < 0 for pair in pairs for n in pair):
            file, line = where(_core.user_place())
            raise ArgumentError(
                f"pad takes a number, a pair, or a pair of numbers for each axis, none negative; got {width!r} for "
                f"{describe(self.dtype, self.shape)}",
                op="PAD", shapes=[self.shape], file=file, line=line,
            )  # fmt: skip
        shape = tuple(before + extent + after for (before, after), extent in zip(pairs, self.shape, strict=True))
        return record(OP["PAD"], (self,), tuple(pair[0] for pair in pairs), shape, 0, (self._number("PAD", value),))  # type: ignore[arg-type]

    # ---- at random ---------------------------------------------------------------------------------

    def dropout(self, p: float, seed: int | None = None, offset: int = 0) -> Array:
        """Each element with probability p is 0, the others are divided by 1 - p. Which ones depends on seed, offset and place alone."""
        if not 0 <= p < 1:
            file, line = where(_core.user_place())
            raise ArgumentError(f"dropout takes a probability from 0 to below 1, got {p!r}", op="RANDOM", file=file, line=line)
        if seed is None:
            file, line = where(_core.user_place())
            raise ArgumentError("dropout needs a seed, as in x.dropout(0.1, seed=step): the same seed drops the same elements",
                                op="RANDOM", file=file, line=line)
        kept = random(self.shape, seed, offset) >= p
        return kept.where(self, 0) * (1 / (1 - p))

    def any(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """Whether any element is true (a number: is not 0) along the axes."""
        return cast("Array", self._truth().max(axis, keepdims)) if self.size else self._of_none(False, axis, keepdims)

    def all(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
        """Whether all elements are, as those of no elements are."""
        return cast("Array", self._truth().min(axis, keepdims)) if self.size else self._of_none(True, axis, keepdims)

    def _of_none(self, value: bool, axis: int | Sequence[int] | None, keepdims: bool) -> Array:
        from .array import full

        return full(self._shape_without(axis, keepdims), value, bool_)

    def _truth(self) -> Any:
        return self if self.dtype is bool_ else self != 0


def random(shape: Sequence[int], seed: int, offset: int = 0, dtype: Any = float32) -> Array:
    """Numbers uniform over [0, 1) (int32, int64: over all values) that seed, offset and the element's number decide: the same on every
    device and in every run. Another offset gives another sequence."""
    return record(OP["RANDOM"], (), (), tuple(shape), dtype_of(dtype).code, (signed(seed), signed(offset)))
