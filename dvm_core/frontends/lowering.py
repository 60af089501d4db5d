"""The table of lowerings, and what they share: dtype promotion as MindSpore does it, axes, immediates."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .emit import BF16, BOOL, F16, F32, F64, FLOATS, HALVES, I8, I32, I64, U8

Lowering = Callable[..., Any]
LOWER: dict[str, Lowering] = {}  # the table: name of a MindSpore op -> lowering


def lowers(*names: str, once: bool = False) -> Callable[[Lowering], Lowering]:
    """Registers a lowering under MindSpore's op names. once: its instructions compute halves in float32, and the result is rounded once."""
    def register(function: Lowering) -> Lowering:
        LOWER.update(dict.fromkeys(names, _rounding_once(function) if once else function))
        return function
    return register


class _Widened:
    """A capture as a lowering sees it that computes halves in float32."""

    def __init__(self, capture: Any) -> None:
        self._capture = capture
        self.half = 0  # the dtype of the first tensor, if that is a half

    def __getattr__(self, name: str) -> Any:
        return getattr(self._capture, name)

    def value(self, tensor: Any) -> int:
        return self._wide(self._capture.value(tensor))

    def operand(self, x: Any) -> Any:
        found = self._capture.operand(x)
        return self._wide(found) if found.__class__ is int else found

    def _wide(self, value: int) -> int:
        dtype = self._capture.dtype(value)
        return self._capture.cast(value, F32) if dtype in HALVES else value


def _rounding_once(function: Lowering) -> Lowering:
    @functools.wraps(function)
    def lower(c: Any, first: Any, *rest: Any) -> Any:
        half = c.dtype(c.value(first))
        if half not in HALVES:
            return function(c, first, *rest)
        result = function(_Widened(c), first, *rest)
        if result.__class__ is not tuple:
            return c.cast(result, half)
        return (c.cast(result[0], half), *result[1:])  # what comes beside it (means, deviations) stays float32, as in MindSpore
    return lower


class Unlowerable(Exception):
    """This op, with these operands, is none of ours: MindSpore runs it."""


class Whole(float):
    """An immediate that was an integer: it never makes a float out of an integer tensor."""


class Typed(float):
    """An immediate that was a tensor of rank 0: it takes part in promotion with its dtype."""

    __slots__ = ("dtype",)
    dtype: int

    def __new__(cls, value: float, dtype: int) -> Typed:
        made = super().__new__(cls, value)
        made.dtype = dtype
        return made


def is_whole(x: Any) -> bool:
    """Whether an operand is an immediate that was an integer."""
    return x.__class__ is Whole or (x.__class__ is Typed and x.dtype not in FLOATS)


_ORDER = {BOOL: 0, U8: 1, I8: 1, I32: 2, I64: 3, F16: 4, BF16: 4, F32: 5, F64: 6}
_KIND = {dtype: "f" if dtype in FLOATS else "b" if dtype == BOOL else "i" for dtype in _ORDER}


def promote(a: int, b: int) -> int:
    """The dtype two tensors' dtypes meet in. Raises Unlowerable for pairs without one among ours."""
    if a == b:
        return a
    if _ORDER[a] == _ORDER[b]:
        if a in HALVES:
            return F32
        raise Unlowerable  # uint8 with int8 is int16
    return a if _ORDER[a] > _ORDER[b] else b


def unify(c: Any, a: Any, b: Any, both: bool = False, keep_first: bool = False, weak: bool = False) -> tuple[Any, Any]:
    """Two operands (values, or floats for immediates) made to have one dtype.

    both: immediates become values, for instructions that take none. keep_first: the result has a's dtype whatever b is. weak: a tensor of
    rank 0 never widens one of another rank within floats or integers (MindSpore's Mul and Div).
    """
    if a.__class__ is int and b.__class__ is int:
        of_a, of_b = c.dtype(a), c.dtype(b)
        if of_a != of_b:
            wanted = of_a if keep_first else promote(of_a, of_b)
            if weak and not keep_first and _KIND[of_a] == _KIND[of_b] and (not c.shape(a)) != (not c.shape(b)):
                wanted = of_a if c.shape(a) else of_b
            a, b = c.cast(a, wanted), c.cast(b, wanted)
        return a, b
    if a.__class__ is not int and b.__class__ is not int:
        dtype = promote(_dtype_of(a), _dtype_of(b))
        return c.full(a, (), dtype), c.full(b, (), dtype) if both else b
    tensor, number = (a, b) if a.__class__ is int else (b, a)
    if not keep_first:
        tensor = _widen(c, tensor, number, weak)
    if both:
        number = c.full(float(number), (), c.dtype(tensor))
    return (tensor, number) if a.__class__ is int else (number, tensor)


def _dtype_of(number: float) -> int:
    return number.dtype if isinstance(number, Typed) else I64 if number.__class__ is Whole else F32


def _widen(c: Any, tensor: int, number: float, weak: bool) -> int:
    dtype = c.dtype(tensor)
    if isinstance(number, Typed):
        stays = weak and _KIND[dtype] == _KIND[number.dtype] and c.shape(tensor)
        return tensor if stays else c.cast(tensor, promote(dtype, number.dtype))
    if dtype in FLOATS:
        return tensor
    if number.__class__ is not Whole:
        return c.cast(tensor, F32)
    return c.cast(tensor, I64) if dtype == BOOL else tensor


def given_dtype(type_id: Any) -> int:
    """Our code of a dtype argument (MindSpore passes its type number). Raises Unlowerable for a dtype that is not computed here."""
    from .mindspore_compat import TYPE_ID

    code = TYPE_ID.get(type_id, 0) if isinstance(type_id, int) else 0
    if not code:
        raise Unlowerable
    return code


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises Unlowerable if there is no such axis: MindSpore words the error."""
    if not -rank <= axis < max(rank, 1):
        raise Unlowerable
    return axis + rank if axis < 0 else axis


def normal_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """Reduction axes from what MindSpore accepts: None or () are all, a number is one."""
    if axes is None:
        return tuple(range(rank))
    if isinstance(axes, int):
        return (normal_axis(axes, rank),) if rank else ()
    if not isinstance(axes, Iterable):
        raise Unlowerable
    found = tuple(normal_axis(axis, rank) for axis in axes) if rank else ()
    if len(set(found)) < len(found):
        raise Unlowerable
    return found or tuple(range(rank))
