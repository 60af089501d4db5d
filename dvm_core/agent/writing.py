"""Values put in by hand at a stop: elements, slices, whole tensors, bytes. They go into the tensor's own memory."""
from __future__ import annotations

import ast
import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from dvm_wire import syntax

from .. import devices, dtypes
from ..bf16 import convert_to_bf16
from . import values
from .commands import Answer, Arguments, CommandError, command, need
from .evaluate import Refused, evaluate
from .lookup import Names
from .tensors import Tensor

if TYPE_CHECKING:
    from .session import Session

_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf")}
_WORDS = {**_NUMBERS, **{sign + name: (-1 if sign == "-" else 1) * _NUMBERS[name] for sign in "+-" for name in ("inf", "infinity")},
          "true": True, "false": False}


class _Written(Names):
    """The stop's names, and where there is none of that name, words for numbers: `[nan, 1, -Infinity]`."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name) if super().__contains__(name) else _NUMBERS[name.lower()]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).lower() in _NUMBERS


class _Memory:
    """The memory of an array as a writable one; the array is kept alive by who uses it."""

    def __init__(self, array: np.ndarray) -> None:
        self.kept = array
        told = dict(array.__array_interface__)
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}


def writable(tensor: Tensor) -> np.ndarray:
    """The tensor's memory, for writing. Raises CommandError with the reason where there is none that the program reads again."""
    if tensor.fixed:
        raise CommandError(f"{tensor.name} cannot be written: {tensor.fixed}")
    array = tensor.array()
    if array is None:
        raise CommandError(f"{tensor.name} cannot be written: {tensor.reason}")
    if tensor.cls == "expression":
        raise CommandError(f"{tensor.name} is computed for this view alone: write to a tensor the program has, such as `h[0, 3]`")
    if devices.device() != "cpu":
        raise CommandError(f"{tensor.name} is in the memory of {devices.device()}, and what is shown here is a copy: "
                           "switch to the cpu to write to it")
    if array.size and not _pages_writable(array):
        raise CommandError(f"{tensor.name} cannot be written: its memory is read only (a mapped file or a constant)")
    return np.asarray(_Memory(array)) if array.size else array


def _pages_writable(array: np.ndarray) -> bool:
    low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)  # type: ignore[attr-defined]
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
            for line in maps:
                bounds, rights = line.split(None, 2)[:2]
                start, end = (int(part, 16) for part in bounds.split("-"))
                if start < high and low < end and "w" not in rights:
                    return False
    except OSError:  # no such table here, and a write to a read-only page ends the process: the array's own word is taken
        return bool(array.flags.writeable)
    return True


def converted(value: Any, dtype: int, what: str) -> np.ndarray:
    """A value as the dtype's items. Raises CommandError for one that the dtype does not hold."""
    entry = dtypes.BY_CODE.get(dtype)
    given = np.asarray(value)
    if entry is None or given.dtype.kind not in "biuf":
        raise CommandError(f"{what} is {value!r}; it must be a number" + (f" that {entry.name} holds" if entry else ""))
    if dtype == values.BFLOAT16:
        return convert_to_bf16(given)
    if entry.kind == "f":
        return given.astype(entry.numpy)
    if entry.numpy == np.bool_:
        if not np.isin(given, (0, 1)).all():
            raise CommandError(f"{what} is {_short(given)}; a bool is True or False")
        return given.astype(np.bool_)
    info = np.iinfo(entry.numpy)
    with np.errstate(all="ignore"):
        whole = given if given.dtype.kind in "biu" else np.trunc(given)
        # For floats the end is the power of two past it: info.max itself would be rounded to that.
        below = given <= info.max if given.dtype.kind in "biu" else given < 2.0 ** (info.bits - (info.min < 0))
        if not (np.all(given == whole) and np.all(given >= info.min) and np.all(below)):
            raise CommandError(f"{what} is {_short(given)}; {entry.name} holds whole numbers from {info.min} to {info.max}")
    return given.astype(entry.numpy)


def _short(array: np.ndarray) -> str:
    return str(array.item()) if array.size == 1 else f"an array of {array.size}"


def _value(session: Session, text: str) -> Any:
    """What a person typed for a value: a number, a word for one, or an expression over what the stop shows."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if re.fullmatch(r"[+-]?0[xob][0-9a-f_]+", word):
        return int(word, 0)
    try:
        return evaluate(Names.spelled(text), _Written(session.stops.require().view, session))
    except Refused as error:
        raise CommandError(str(error)) from None


def _put(tensor: Tensor, index: Any, value: Any, what: str) -> np.ndarray:
    """tensor[index] = value. Answers with what is there now, as a view."""
    memory = writable(tensor)
    new = converted(value, tensor.dtype, what)
    try:
        part = memory[index]
        if part.shape != new.shape:
            new = np.broadcast_to(new, part.shape)
        memory[index] = new.copy()  # the value may be read from what is written
    except (IndexError, ValueError) as error:
        raise CommandError(f"{what} does not fit {tensor.name} of shape {list(tensor.shape)}: {error}") from None
    return np.asarray(memory[index])


def _written(session: Session, tensor: Tensor) -> Answer:
    """TENSOR after a write, and every reference given out whose memory it touched: their statistics are old."""
    array = tensor.array()
    touched = session.references.sharing(array) if array is not None else []
    return {**tensor.describe(with_stats=not tensor.large), "ref": session.references.add(tensor), "touched": touched}


@command("write")
def write(session: Session, arguments: Arguments) -> Answer:
    """The part under `index` becomes `value`, all of it without one. A value of fewer axes fills the part's."""
    tensor = session.references.get(need(arguments, "ref", int))
    text = need(arguments, "value", str)
    prefix = need(arguments, "index", list, [])
    inside = all(type(i) is int and 0 <= i < extent for i, extent in zip(prefix, tensor.shape, strict=False))
    if not inside or len(prefix) > len(tensor.shape):
        raise CommandError(f"{tensor.name} of shape {list(tensor.shape)} has no element {prefix}")
    part = _put(tensor, (*prefix, ...), _value(session, text), f"`{text}`")
    return {"tensor": _written(session, tensor), "values": values.texts(part, tensor.dtype, 0, 8)}


@command("assign")
def assign(session: Session, arguments: Arguments) -> Answer:
    """`h[0, 3]` or `h` = value: an expression that names a tensor or a part of one."""
    target, text = need(arguments, "expression", str).strip(), need(arguments, "value", str)
    names = Names(session.stops.require().view, session)
    tensor, index = names.tensor(target), ()
    if tensor is None:
        tensor, index = _part(names, target)
    part = _put(tensor, (*index, ...) if Ellipsis not in index else index, _value(session, text), f"`{text}`")
    return {"tensor": _written(session, tensor), "values": values.texts(part, tensor.dtype, 0, 8), "shape": list(part.shape)}


def _part(names: Names, target: str) -> tuple[Tensor, tuple[Any, ...]]:
    try:
        node = syntax.parse(names.spelled(target), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if not isinstance(node, ast.Subscript):
        raise CommandError(f"`{target}` is no tensor of this stop, nor an element or slice of one: `h` or `h[0, 3]` can be written")
    owner = names.unspelled(ast.unparse(node.value))
    tensor = names.tensor(owner)
    if tensor is None:
        raise CommandError(f"no tensor `{owner}` here; there are {', '.join(sorted(names)[:12]) or 'none'}")
    inner = names.unspelled(ast.unparse(node.slice))
    try:
        return tensor, values.parse_slice(inner[1:-1] if inner.startswith("(") else inner)
    except values.BadSlice as error:
        raise CommandError(str(error)) from None


@command("writeMemory")
def write_memory(session: Session, arguments: Arguments) -> Answer:
    """Bytes from `offset` on, in index order; what lies past the end is not written. Answers how many were."""
    tensor = session.references.get(need(arguments, "ref", int))
    offset = need(arguments, "offset", int, 0)
    try:
        data = base64.b64decode(need(arguments, "data", str), validate=True)
    except (binascii.Error, ValueError) as error:
        raise CommandError(f"data is not base64: {error}") from None
    memory = writable(tensor)
    if offset < 0 or offset > memory.nbytes:
        raise CommandError(f"offset {offset} is outside of {tensor.name}, which has {memory.nbytes} bytes")
    data = data[:memory.nbytes - offset]
    if data:
        item = memory.dtype.itemsize
        first, last = offset // item, -(-(offset + len(data)) // item)
        where = np.unravel_index(np.arange(first, last), memory.shape) if memory.ndim else ()
        part = np.atleast_1d(np.ascontiguousarray(memory[where]))
        part.view(np.uint8)[offset - first * item:offset - first * item + len(data)] = np.frombuffer(data, np.uint8)
        memory[where] = part if memory.ndim else part[0]
    return {"written": len(data), "tensor": _written(session, tensor)}
