"""Matchers: objects equal to every value of a kind, for comparing whole messages of which some fields vary."""
from typing import Any


class Some:
    """Equal to what `accepts` says."""

    def __init__(self, name: str, accepts) -> None:
        self._name, self._accepts = name, accepts

    def __eq__(self, other: Any) -> bool:
        return bool(self._accepts(other))

    def __repr__(self) -> str:
        return f"<some {self._name}>"

    __hash__ = None


int_ = Some("int", lambda value: isinstance(value, int) and not isinstance(value, bool))
ours = Some("reference of ours", lambda value: isinstance(value, int) and value >= 1 << 28)
text = Some("text", lambda value: isinstance(value, str))
anything = Some("thing", lambda value: True)


def containing(part: str) -> Some:
    return Some(f"text containing {part!r}", lambda value: isinstance(value, str) and part in value)


def with_items(**expected: Any) -> Some:
    """A dict that has at least these items."""
    def accepts(value: Any) -> bool:
        return isinstance(value, dict) and all(name in value and value[name] == item for name, item in expected.items())

    return Some(f"dict with {expected}", accepts)
