"""Columns as editors count them: UTF-16 units."""
from __future__ import annotations


def utf16(line: str, byte: int) -> int:
    """The units before a byte offset of a line, as Python's `ast` counts bytes (UTF-8)."""
    return len(line.encode("utf-8")[:byte].decode("utf-8", "ignore").encode("utf-16-le")) // 2


def units(text: str) -> int:
    """The UTF-16 units of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def before(line: str, column: int) -> str:
    """What stands before a column, which counts UTF-16 units from 1."""
    return line.encode("utf-16-le", "surrogatepass")[: 2 * max(0, column - 1)].decode("utf-16-le", "ignore")
