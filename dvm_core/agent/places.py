"""Places of instructions as the editor knows them: which file, which statement, which text."""
from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dvm_wire import syntax

from .. import _core, _library_prefixes
from ..hotreload import SourceBook

LIBRARIES = tuple(_library_prefixes())  # files under these are no user code
_DRIVE = re.compile(r"[a-z]:")


@functools.lru_cache(maxsize=4096)
def real(path: str) -> str:
    """The one spelling under which paths are compared: links resolved, a drive letter in upper case."""
    path = os.path.realpath(path)
    return path[0].upper() + path[1:] if _DRIVE.match(path) else path


@dataclass(frozen=True)
class Place:
    """Where an instruction comes from. `path` as the running code has it; the lines are 0 for an instruction without a place."""
    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    function: str
    backward: bool

    def message(self) -> dict[str, Any]:
        """As the wire carries it."""
        return {"path": self.path, "line": self.line, "function": self.function, "backward": self.backward}

    @property
    def real(self) -> str:
        return real(self.path) if self.path else ""


@functools.lru_cache(maxsize=65536)
def place(number: int) -> Place:
    """The place with that id; places are interned and never change."""
    return Place(*_core.place_info(number)) if number else Place("", 0, 0, 0, 0, "", False)


def is_user_code(filename: str) -> bool:
    return not filename.startswith(LIBRARIES)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of user code, from `frame` outwards."""
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class Texts:
    """Lines and statements of source files, in the version that is in force."""

    def __init__(self, book: SourceBook) -> None:
        self._book = book
        # By path the text they were made from, and by line what is asked for: of a file all lines may be.
        self._heads: dict[str, tuple[str, dict[int, tuple[str, int, int]]]] = {}
        self._spans: dict[str, tuple[str, dict[int, tuple[int, int]]]] = {}
        self._statements: tuple[int, dict[tuple[str, int], str]] = -1, {}  # (changes of the book, by path and line)

    def line(self, path: str, number: int) -> str:
        """A line without its indentation, "" if there is none."""
        return self.raw_line(path, number).strip()

    def text(self, path: str) -> str:
        """The whole file, "" if there is none."""
        text = self._book.get(path)
        return "".join(linecache.getlines(path)) if text is None else text

    def raw_line(self, path: str, number: int) -> str:
        text = self._book.get(path)
        if text is None:
            return linecache.getline(path, number)
        lines = text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def span(self, path: str, line: int) -> tuple[int, int]:
        """First and last line of the statement that line belongs to; of a compound one only its head. (line, line) if unknown."""
        text = self.text(path)
        known = self._spans.get(path)
        if known is None or known[0] is not text:
            known = self._spans[path] = text, _statement_spans(text)
        return known[1].get(line, (line, line))

    def statement(self, path: str, line: int) -> str:
        """The text of `span`, without indentation before it."""
        changes, known = self._statements
        if changes != self._book.changes:
            changes, known = self._statements = self._book.changes, {}
        if (text := known.get((path, line))) is None:
            first, last = self.span(path, line)
            text = "\n".join(self.raw_line(path, number) for number in range(first, last + 1)).strip()
            if self._book.get(path) is not None:  # of any other text nobody tells when it changes
                known[path, line] = text
        return text

    def headed(self, path: str, line: int) -> tuple[str, int, int] | None:
        """The function whose head, decorators included, that line is in: its name, and the first and last line of its body, which begins
        on a later line. None for any other line."""
        text = self.text(path)
        known = self._heads.get(path)
        if known is None or known[0] is not text:
            known = self._heads[path] = text, _heads(text)
        return known[1].get(line)


def _heads(text: str) -> dict[int, tuple[str, int, int]]:
    found = []
    for node in functions_of(text):
        first = min(part.lineno for part in (node, *node.decorator_list))
        found.append((first, (node.name, node.body[0].lineno, node.end_lineno or node.lineno)))
    return {line: body for first, body in sorted(found) for line in range(first, body[1])}  # of nested ones the inner one


def function_around(text: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function of a source text that the line is in."""
    around = [node for node in functions_of(text) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno, default=None)


@functools.lru_cache(maxsize=64)
def functions_of(text: str) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """All functions of a source text, () where it is none."""
    try:
        return tuple(node for node in ast.walk(syntax.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested more deeply than the parser goes
        return ()


def _statement_spans(text: str) -> dict[int, tuple[int, int]]:
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError):
        return {}
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            spans.append((node.lineno, max(node.lineno, last)))
    several = [span for span in spans if span[0] != span[1]]  # the others are their own span
    return {line: span for span in sorted(several, key=lambda span: span[0] - span[1]) for line in range(span[0], span[1] + 1)}
