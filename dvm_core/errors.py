"""Errors a user can meet: each says what was wrong, with values, where in the user's code, and what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence


class Error(Exception):
    """Base of every error raised on purpose. `op`, `dtypes`, `shapes`, `file` and `line` are filled in where they are known.

    `rule` names the rule of docs/devices.md that was broken, if it was one of these.
    """

    rule = ""

    def __init__(
        self,
        message: str,
        *,
        op: str = "",
        dtypes: Sequence[str] = (),
        shapes: Sequence[tuple[int, ...]] = (),
        file: str = "",
        line: int = 0,
    ) -> None:
        self.op = op
        self.dtypes = tuple(str(dtype) for dtype in dtypes)
        self.shapes = tuple(tuple(shape) for shape in shapes)
        self.file = file
        self.line = line
        self.message = message
        super().__init__(f"{file}:{line}: {message}" if file else message)


class DtypeError(Error, TypeError):
    """Operands' dtypes do not fit the op (nothing is promoted between tensors)."""


class ShapeError(Error, ValueError):
    """Operands' shapes do not fit the op or each other."""


class ArgumentError(Error, ValueError):
    """An argument of a call is not what the call takes."""


class UnknownNameError(Error, AttributeError):
    """There is no operation of that name; the message has the nearest."""


class UnsupportedError(Error, NotImplementedError):
    """Understood, but not part of this version; the message names what is."""


class OutOfMemoryError(Error, MemoryError):
    """There is no memory for a value; the message names the op, its result and the bytes."""


class DeviceError(Error):
    """The device is unknown or not available in this version, what lives could not be moved to it, or a copy to or from it failed."""


def where(place: int) -> tuple[str, int]:
    """(file, line) of a place id, ("", 0) for place 0."""
    if not place:
        return "", 0
    from . import _core

    info = _core.place_info(place)
    return info[0], info[1]


# What the core's message is about; the first that matches decides.
_KINDS: tuple[tuple[re.Pattern[str], type[Error]], ...] = (
    (re.compile(r"a copy of \d+ bytes (to|from) |a simulated device needs"), DeviceError),
    (re.compile(r"no memory|has no room|has no addresses"), OutOfMemoryError),
    (re.compile(r"dtype|does not take|does not make|must be bool|must be int32"), DtypeError),
    (re.compile(r"\[[\d,]*\]|axis|axes|rank|shape|extent|permutation"), ShapeError),
)
_TYPE = re.compile(r"\b((?:b?float|u?int)\d+|bool)\[([\d,]*)\]")


def convert(error: Exception, *, op: str = "", dtypes: Sequence[str] = (), shapes: Sequence[tuple[int, ...]] = (), place: int = 0) -> Error:
    """The native core's error as one of ours, with the user's file and line. Ours come back as they are."""
    if isinstance(error, Error):
        return error
    file, line = where(getattr(error, "place", 0) or place)
    text = str(error).removesuffix(f" ({file}:{line})")
    kind = next((kind for pattern, kind in _KINDS if pattern.search(text)), Error)
    types = _TYPE.findall(text)
    return kind(
        text,
        op=op or text.partition(":")[0].partition(" ")[0],
        dtypes=dtypes or [name for name, _ in types],
        shapes=shapes or [tuple(int(dim) for dim in dims.split(",") if dim) for _, dims in types],
        file=file,
        line=line,
    )


@contextlib.contextmanager
def native(place: int = 0) -> Iterator[None]:
    """Runs a block of native calls; what the core raises leaves as one of our errors."""
    from . import _core

    try:
        yield
    except _core.Error as error:
        raise convert(error, place=place) from None


def chain(error: BaseException) -> list[BaseException]:
    """The exception, and those that it came of."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        link = left.pop()
        if link is not None and all(link is not other for other in found):
            found.append(link)
            left += [link.__cause__, link.__context__]
    return found
