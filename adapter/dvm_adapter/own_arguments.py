"""The arguments of dvm/ requests, by name: what cannot be meant is refused before anything is done. A name means the same everywhere."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dvm_wire import MOST_KEPT
from dvm_wire.paths import is_path

from .errors import RequestError

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Kind:
    """What a value must be, in words, and whether one is."""

    words: str
    fits: Callable[[Any], bool]


def _whole(least: int = -_LARGEST, most: int = _LARGEST, words: str = "a whole number") -> Kind:
    limits = f" from {least} to {most}" if most < _LARGEST else f", at least {least}" if least > -_LARGEST else ""
    return Kind(words + limits, lambda value: type(value) is int and least <= value <= most)  # true and 1.0 are no whole numbers


def _list_of(kind: Kind, words: str, length: int | None = None) -> Kind:
    return Kind(words, lambda value: isinstance(value, list) and length in (None, len(value)) and all(map(kind.fits, value)))


def _number(least: float, words: str) -> Kind:
    return Kind(words, lambda value: type(value) in (int, float) and math.isfinite(value) and value >= least)


def _is_texts(value: Any) -> bool:
    return isinstance(value, str) or isinstance(value, list) and all(isinstance(item, str) for item in value)


_WHOLE, _COUNT, _FROM_ONE = _whole(), _whole(0), _whole(1)
TEXT, TEXTS = Kind("a text", lambda value: isinstance(value, str)), Kind("a text, or a list of texts", _is_texts)
_FLAG = Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = Kind("an object that names a tensor", lambda value: isinstance(value, dict))
_FILE = Kind("the file's path, a text", is_path)
_PAIR = _list_of(_WHOLE, "a list of two whole numbers", 2)
_TIME = _number(-math.inf, "a count of instructions")
_MARGIN = _number(0, "a number, at least 0")

ARGUMENTS: dict[str, Kind] = {
    "watchId": _WHOLE, "snapshot": _COUNT, "variablesReference": _WHOLE,
    "memoryReference": Kind("a text", lambda value: type(value) in (str, int)),
    "ref": _WHOLE, "expression": TEXT, "name": TEXT, "path": _FILE, "line": _FROM_ONE, "program": _WHOLE, "id": _WHOLE,
    "instruction": _COUNT, "everyN": _whole(1, words="a whole number of steps"),
    "keep": _whole(0, MOST_KEPT, "a whole number of snapshots"), "what": TEXTS,
    "slice": TEXT, "offset": _COUNT, "count": _COUNT, "maxBytes": _COUNT, "axes": _PAIR, "rows": _PAIR, "columns": _PAIR,
    "most": _list_of(_FROM_ONE, "a list of two whole numbers, at least 1", 2), "indices": _list_of(_WHOLE, "a list of whole numbers"),
    "texts": _FLAG, "shades": _FLAG, "together": _FLAG, "a": _OBJECT, "b": _OBJECT, "tolerance": _MARGIN, "relative": _MARGIN,
    "data": TEXT, "dtype": TEXT,
    "shape": _list_of(_COUNT, "a list of whole numbers, at least 0"), "steps": _PAIR, "step": _WHOLE, "title": TEXT,
    "html": Kind("true, or the file's path", lambda value: isinstance(value, bool) or is_path(value)),
    "from": _TIME, "to": _TIME, "fresh": _FLAG, "select": _WHOLE, "level": TEXT, "area": _whole(-1), "on": _FLAG, "device": TEXT,
    "format": TEXT,
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "dvm/unwatch": ("watchId",), "dvm/compare": ("a", "b"), "dvm/line": ("path", "line"), "dvm/reload": ("path",),
    "dvm/breakInstruction": ("program", "instruction"), "dvm/device": ("device",), "dvm/export": ("format", "path"),
}
_NESTED = ("a", "b")  # of dvm/compare: each names a tensor


def checked(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a dvm/ request, without those that are null. Raises RequestError."""
    given = {name: value for name, value in arguments.items() if value is not None}
    for name, value in given.items():
        kind = ARGUMENTS.get(name)
        if kind is not None and not kind.fits(value):
            raise RequestError(f'"{name}" is {short(value)}; it must be {kind.words}')
    for name in REQUIRED.get(command, ()):
        if name not in given:
            raise RequestError(f'{command} without "{name}": {ARGUMENTS[name].words}')
    return {name: checked("", value) if name in _NESTED else value for name, value in given.items()}


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
