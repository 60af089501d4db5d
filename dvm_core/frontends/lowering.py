"""The table of lowerings, and what they share: dtype promotion as MindSpore does it, axes, immediates."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .emit import BOOL, COMPUTED, F32, F64, FLOATS, I8, I32, I64, U8

Lowering = Callable[..., Any]
LOWER: dict[str, Lowering] = {}  # the table: name of a MindSpore op -> lowering


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers a lowering under MindSpore's op names."""
    def register(function: Lowering) -> Lowering:
        LOWER.update(dict.fromkeys(names, function))
        return function
    return register


class Unlowerable(Exception):
    """This op, with these operands, is none of ours: MindSpore runs it."""


class Whole(float):
    """An immediate that was an integer: it never makes a float out of an integer tensor."""


_ORDER = {BOOL: 0, U8: 1, I8: 1, I32: 2, I64: 3, F32: 4, F64: 5}


def promote(a: int, b: int) -> int:
    """The dtype two tensors' dtypes meet in. Raises Unlowerable for pairs without one among ours."""
    if a == b:
        return a
    if _ORDER[a] == _ORDER[b]:
        raise Unlowerable  # uint8 with int8 is int16
    return a if _ORDER[a] > _ORDER[b] else b


def unify(c: Any, a: Any, b: Any, both: bool = False, keep_first: bool = False) -> tuple[Any, Any]:
    """Two operands (values, or floats for immediates) made to have one dtype.

    both: immediates become values, for instructions that take none. keep_first: the result has a's dtype whatever b is.
    """
    if a.__class__ is int and b.__class__ is int:
        of_a, of_b = c.dtype(a), c.dtype(b)
        if of_a != of_b:
            wanted = of_a if keep_first else promote(of_a, of_b)
            a, b = c.cast(a, wanted), c.cast(b, wanted)
        return a, b
    if a.__class__ is not int and b.__class__ is not int:
        dtype = I64 if a.__class__ is Whole and b.__class__ is Whole else F32
        return c.full(a, (), dtype), c.full(b, (), dtype) if both else b
    tensor, number = (a, b) if a.__class__ is int else (b, a)
    if not keep_first:
        tensor = _widen(c, tensor, number)
    if both:
        number = c.full(float(number), (), c.dtype(tensor))
    return (tensor, number) if a.__class__ is int else (number, tensor)


def _widen(c: Any, tensor: int, number: float) -> int:
    dtype = c.dtype(tensor)
    if dtype in FLOATS:
        return tensor
    if number.__class__ is not Whole:
        return c.cast(tensor, F32)
    return c.cast(tensor, I64) if dtype == BOOL else tensor


def given_dtype(type_id: Any) -> int:
    """Our code of a dtype argument (MindSpore passes its type number). Raises Unlowerable for a dtype that is not computed here."""
    from .mindspore_compat import TYPE_ID

    code = TYPE_ID.get(type_id, 0) if isinstance(type_id, int) else 0
    if code not in COMPUTED:
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
    return found or tuple(range(rank))
