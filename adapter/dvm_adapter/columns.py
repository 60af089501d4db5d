"""Columns as editors count them: UTF-16 units."""
from __future__ import annotations


def utf16(line: str, byte: int) -> int:
    """The units before a byte offset of a line, as Python's `ast` counts bytes (UTF-8)."""
    return len(line.encode("utf-8")[:byte].decode("utf-8", "ignore").encode("utf-16-le")) // 2
