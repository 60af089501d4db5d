"""The messages of log points: text with expressions in braces."""
from __future__ import annotations

from . import syntax

_MOST = 100  # closing braces that are looked at

def split_message(text: str) -> list[tuple[bool, str]]:
    """A log message as (is expression, text) parts. `{{` and `}}` are braces; what is never closed is text."""
    parts: list[tuple[bool, str]] = []
    plain, i = "", 0
    while i < len(text):
        if text[i:i + 2] in ("{{", "}}"):
            plain, i = plain + text[i], i + 2
        elif text[i] == "{" and (end := _closing(text, i)) > 0:
            parts += [(False, plain), (True, text[i + 1:end].strip())]
            plain, i = "", end + 1
        else:
            plain, i = plain + text[i], i + 1
    return [part for part in (*parts, (False, plain)) if part[1]]


def _closing(text: str, start: int) -> int:
    """Where the brace is closed: at the first one before which an expression ends, for braces may stand in quotes; else by counting."""
    for end in [i for i in range(start, len(text)) if text[i] == "}"][:_MOST]:
        try:
            syntax.parse(text[start + 1:end].strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return end
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return -1
