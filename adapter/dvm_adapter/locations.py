"""Where in a file a breakpoint can be: lines with a statement, and in them the columns at which an operation begins (UTF-16 units)."""
from __future__ import annotations

import ast
import os
import tokenize
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dvm_wire import syntax

from .channel import Message
from .columns import utf16
from .registry import Body, request

if TYPE_CHECKING:
    from .session import Session

MOST = 5000  # in one answer
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)
_NOT_RUN = (ast.Global, ast.Nonlocal)


@dataclass
class Layout:
    """A file's places. statements: the lines they begin on; columns: line -> start column -> (end line, end column)."""

    statements: set[int] = field(default_factory=set)
    columns: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    last: int = 0


_known: dict[str, tuple[tuple[int, int], Layout]] = {}


def layout_of(path: str) -> Layout | None:
    """None for a file that cannot be read or parsed. Read in the encoding it declares, again when it has changed."""
    try:
        told = os.stat(path)
        stamp = (told.st_mtime_ns, told.st_size)
        if path in _known and _known[path][0] == stamp:
            return _known[path][1]
        with tokenize.open(path) as file:
            text = file.read()
        layout = _read(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(_known) > 64:
        _known.clear()
    _known[path] = stamp, layout
    return layout


def _read(text: str) -> Layout:
    lines = text.split("\n")
    layout = Layout(last=len(lines))

    def column(line: int, offset: int) -> int:
        """A byte offset of ast's as a column from 1 in UTF-16 units."""
        return utf16(lines[line - 1], offset) + 1

    tree = syntax.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, _NOT_RUN) and not _is_docstring(node):
            layout.statements.update([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        elif isinstance(node, _OPERATIONS):
            start = column(node.lineno, node.col_offset)
            stop = node.end_lineno or node.lineno, column(node.end_lineno or node.lineno, node.end_col_offset or 0)
            ends = layout.columns.setdefault(node.lineno, {})
            ends[start] = max(stop, ends.get(start, (0, 0)))
    return layout


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@request("breakpointLocations", supportsBreakpointLocationsRequest=True)
async def breakpoint_locations(session: Session, arguments: Body) -> Body:
    """A line's own place and the columns of its operations, for every line of the range that a statement begins on."""
    path = (arguments.get("source") or {}).get("path")
    layout = layout_of(path) if isinstance(path, str) and "\0" not in path else None
    if layout is None:
        return {"breakpoints": []}
    first = max(1, arguments["line"])
    last = min(arguments.get("endLine") or first, layout.last)
    low, high = arguments.get("column") or 0, arguments.get("endColumn") or 1 << 31
    found: list[Message] = []
    for line in range(first, last + 1):
        if line in layout.statements and not (line == first and low > 1):
            found.append({"line": line})
        for start, end in sorted(layout.columns.get(line, {}).items()):
            if (line > first or start >= low) and (line < last or start <= high):
                found.append({"line": line, "column": start, "endLine": end[0], "endColumn": end[1]})
    return {"breakpoints": found[:MOST]}
