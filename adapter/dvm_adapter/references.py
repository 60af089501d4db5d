"""Numbers the client holds for things of ours: frames, variables, memory. They die when the program goes on."""
from __future__ import annotations

from typing import Any, TypeVar

from .errors import RequestError

# debugpy counts its frames and variables up from 1; from here on a number is ours.
FIRST = 1 << 28
# Listings (disassembly as text) stay valid for the whole session and have a range of their own.
FIRST_LISTING = 3 << 28

T = TypeVar("T")


def is_ours(reference: Any) -> bool:
    return isinstance(reference, int) and reference >= FIRST


class References:
    """Never hands out a number twice, so a number from an earlier stop is told from a live one."""

    def __init__(self, first: int = FIRST) -> None:
        self._first = self._next = first
        self._live: dict[int, Any] = {}

    def add(self, thing: Any) -> int:
        number = self._next
        self._next += 1
        self._live[number] = thing
        return number

    def get(self, reference: Any, kind: type[T]) -> T:
        """The `kind` behind a reference. Raises RequestError for a number that was never given out, or whose stop is over."""
        thing = self._live.get(reference)
        if thing is not None and isinstance(thing, kind):
            return thing
        if isinstance(reference, int) and self._first <= reference < self._next and thing is None:
            raise RequestError("this belongs to an earlier stop: the program has run since")
        raise RequestError(f"there is no such reference: {reference!r}")

    def each(self, kind: type[T]) -> list[tuple[int, T]]:
        """All live numbers of things of that kind."""
        return [(number, thing) for number, thing in self._live.items() if isinstance(thing, kind)]

    def clear(self) -> dict[int, Any]:
        """Gives what `restore` brings back, should the program not have gone on after all."""
        held, self._live = self._live, {}
        return held

    def restore(self, held: dict[int, Any]) -> None:
        self._live.update(held)
