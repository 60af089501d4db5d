"""The tensors of a stop: what each is, by reference, until the program goes on."""
from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from . import values
from .aside import LARGE_BYTES
from .commands import Answer, Arguments, CommandError, Reply, command, need
from .places import Place

if TYPE_CHECKING:
    from .session import Session

_LISTED_SECONDS = 0.1  # a tensor whose turn comes later than this has no statistics in a list: they are a request of their own


@dataclass
class Tensor:
    """One tensor of a stop. `array` gives a read-only view of its values now, None if they are not in memory."""
    name: str
    dtype: int  # code of native/types.h
    shape: tuple[int, ...]
    array: Callable[[], np.ndarray | None]
    place: Place | None = None
    cls: str = "activation"
    reason: str = "not yet computed"  # what is said while there are no values
    stats: dict[str, Any] | None = None
    fixed: str = ""  # why it cannot be written, where its memory alone does not say
    extra: dict[str, Any] = field(default_factory=dict)  # "program" and "instruction" of what made it
    writes: int = 0  # how often its memory was written by hand

    @property
    def bytes(self) -> int:
        entry = values.entry_of(self.dtype)
        return math.prod(self.shape) * (entry.itemsize if entry else 1)

    def statistics(self, array: np.ndarray) -> dict[str, Any]:
        """From any thread. Of values that are written meanwhile they are not kept."""
        if (known := self.stats) is not None:
            return known
        writes, made = self.writes, values.statistics(array, self.dtype)
        if writes == self.writes:
            self.stats = made
        return made

    @property
    def large(self) -> bool:
        """Whether its statistics are a request of their own: looking at all of it takes a while."""
        return self.bytes > LARGE_BYTES

    def describe(self, with_stats: bool) -> Answer:
        """TENSOR of the wire, without ref and data."""
        array = self.array()
        told: Answer = {
            "name": self.name, "shape": list(self.shape), "dtype": values.dtype_name(self.dtype, array), "device": devices.device(),
            "cls": self.cls, "computed": array is not None, "bytes": array.nbytes if array is not None else self.bytes,
            "strides": [step // array.itemsize for step in array.strides] if array is not None else None, **self.extra,
        }
        if self.place is not None and self.place.path:
            told["place"] = self.place.message()
        if array is None:
            told["reason"] = self.reason
        told["summary"] = values.summary(self.dtype, self.shape, self.stats if array is not None else None, array)
        return told if array is None or not with_stats else self.measured(told, array)

    def measured(self, told: Answer, array: np.ndarray) -> Answer:
        """What `describe` told, with statistics of all elements."""
        stats = self.statistics(array)
        return {**told, "stats": stats, "summary": values.summary(self.dtype, self.shape, stats, array)}


class References:
    """Numbers for the tensors of the present stop. A number is never given twice; after the stop it is refused."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._tensors: dict[int, Tensor] = {}

    def add(self, tensor: Tensor) -> int:
        number = next(self._numbers)
        self._tensors[number] = tensor
        return number

    def get(self, number: Any) -> Tensor:
        """Raises CommandError for a number of another stop."""
        tensor = self._tensors.get(number) if isinstance(number, int) else None
        if tensor is None:
            raise CommandError(f"tensor reference {number!r} is not of this stop: the program has gone on since it was given out")
        return tensor

    def sharing(self, array: np.ndarray) -> list[int]:
        """The numbers of all tensors whose memory lies where this array's does. Their statistics are forgotten."""
        found = []
        for number, tensor in self._tensors.items():
            other = tensor.array()
            if other is not None and np.may_share_memory(array, other):
                tensor.writes += 1
                tensor.stats = None
                found.append(number)
        return found

    def clear(self) -> None:
        self._tensors.clear()


def listed(references: References, tensors: list[Tensor]) -> list[Answer]:
    """All with references; statistics within a budget of time, so that a list of large tensors comes at once."""
    end = time.monotonic() + _LISTED_SECONDS
    found = []
    for tensor in tensors:
        told = tensor.describe(with_stats=not tensor.large and time.monotonic() < end)
        found.append({**told, "ref": references.add(tensor)})
    return found


def asked(session: Session, arguments: Arguments) -> Tensor:
    """The tensor a request names: a `ref` of this stop, or a `watch` and the number of a `snapshot` it keeps (none: the newest)."""
    if arguments.get("watch") is not None:
        return session.kept.get(arguments["watch"], need(arguments, "snapshot", int, None)).tensor
    return session.references.get(need(arguments, "ref", int))


@command("tensors")
def tensors_of_stop(session: Session, arguments: Arguments) -> Answer:
    stop = session.stops.require()
    return {"tensors": listed(session.references, stop.view.tensors())}


def still(session: Session, arguments: Arguments, work: Callable[[], Answer]) -> Callable[[], Answer]:
    """The work on a tensor that a request names as in `asked`, to be done later: refused if by then the stop is over whose tensor it was,
    for the program may have written to its memory meanwhile."""
    number = arguments.get("ref") if arguments.get("watch") is None else None

    def checked() -> Answer:
        if number is None:
            return work()
        session.references.get(number)
        made = work()
        session.references.get(number)
        return made

    return checked


@command("tensor", later=True)
def tensor(session: Session, arguments: Arguments, reply: Reply) -> None:
    """With `slice` the answer is about that part. Data are left out with maxBytes 0; more bytes than that are a placeholder, or with
    `offset` as many as are allowed."""
    found = asked(session, arguments)
    if need(arguments, "slice", str, ""):
        found = part_of(found, arguments["slice"])
    limit, offset = need(arguments, "maxBytes", int, values.DEFAULT_BYTES), need(arguments, "offset", int, None)
    told, array = {**found.describe(with_stats=False), "ref": arguments.get("ref")}, found.array()
    if array is None:
        return reply({**told, "placeholder": True})

    def made() -> Answer:
        return {**found.measured(told, array), **_data(array, limit, offset)}

    session.aside.do("tensor", array.nbytes, reply, still(session, arguments, made))


def _data(array: np.ndarray, limit: int, offset: int | None) -> Answer:
    if offset is not None:
        return {"data": values.packed(values.contiguous(array, offset, limit)), "offset": offset}
    if limit and array.nbytes > limit:
        return {"placeholder": True, "reason": f"{array.nbytes:,} bytes, above the limit of {limit:,}: ask for a slice"}
    return {"data": values.packed(values.contiguous(array, 0, limit))} if limit else {}


def part_of(whole: Tensor, text: str) -> Tensor:
    """A slice as a tensor of its own. Raises CommandError."""
    array = whole.array()
    if array is None:
        raise CommandError(f"{whole.name} is {whole.reason}")
    try:
        part = values.sliced(array, text)
    except values.BadSlice as error:
        raise CommandError(str(error)) from None
    part = np.asarray(part)
    name = f"{whole.name}[{text.strip().strip('[]')}]"
    return Tensor(name, whole.dtype, part.shape, lambda: part, whole.place, whole.cls, extra=whole.extra)


@command("elements")
def elements(session: Session, arguments: Arguments) -> Answer:
    found = session.references.get(need(arguments, "ref", int))
    array = found.array()
    if array is None:
        raise CommandError(f"{found.name} is {found.reason}")
    start, count = need(arguments, "start", int, 0), need(arguments, "count", int)
    return {"values": values.texts(array, found.dtype, start, count), "total": array.size}


@command("evaluateMemory")
def memory_of_tensor(session: Session, arguments: Arguments) -> Answer:
    """Bytes in index order. `unreadable`: how many of those asked for lie past the end."""
    found = asked(session, arguments)
    array = found.array()
    if array is None:
        raise CommandError(f"{found.name} is {found.reason}")
    offset, count = need(arguments, "offset", int, 0), need(arguments, "count", int)
    data = values.contiguous(array, offset, count)
    return {"data": values.packed(data), "unreadable": max(0, count - len(data))}
