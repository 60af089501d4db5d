"""The user's names for values, read from the source when someone looks: recording an op costs nothing for them.

An assignment's target names the last value recorded on its lines; several targets name the last several, in order. Where the value is
a call of the user's own function (`q = split(query(x))`), it is the last value recorded before the assigning function goes on.
"""
from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from typing import Any

from dvm_wire import syntax

from .. import _core

Span = tuple[tuple[int, int], tuple[int, int]]  # (line, column) of the start and the end, as places count them


class Assignment:
    """One assignment statement: its lines and the names it binds."""

    __slots__ = ("line", "end_line", "names", "lines_of_names", "value", "is_call")

    def __init__(self, line: int, end_line: int, names: tuple[str, ...], lines_of_names: tuple[tuple[int, int], ...] | None,
                 value: Span, is_call: bool) -> None:
        self.line = line
        self.end_line = end_line
        self.names = names
        self.lines_of_names = lines_of_names  # per name, (start, end) column key of its own expression in a tuple value; None if one value
        self.value = value
        self.is_call = is_call


# The text that a file's code was made from, where a debugger knows it: the one on disk may be a later one.
in_force: Callable[[str], str | None] | None = None


def line_of(file: str, line: int) -> str:
    """The source line, stripped; "" if there is none."""
    known = in_force(file) if in_force is not None and file else None
    if known is None:
        return linecache.getline(file, line).strip() if file else ""
    lines = known.split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def assignments(file: str) -> dict[int, Assignment]:
    """Line -> innermost assignment that covers it. Unreadable or broken source gives none."""
    known = in_force(file) if in_force is not None else None
    if known is None:
        linecache.checkcache(file)
        known = "".join(linecache.getlines(file))
    return _parsed(file, known)


@functools.lru_cache(maxsize=64)
def _parsed(file: str, text: str) -> dict[int, Assignment]:
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError):
        return {}
    lines = text.split("\n")
    found: dict[int, Assignment] = {}
    for node in ast.walk(tree):  # outer statements first, so that inner ones overwrite
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and (value := node.value) is not None:
            names, keys = _targets(node)
            if names:
                assignment = Assignment(node.lineno, node.end_lineno or node.lineno, names, keys, _whole(value, lines),
                                        isinstance(value, ast.Call))
                for line in range(assignment.line, assignment.end_line + 1):
                    found[line] = assignment
    return found


def _targets(node: Any) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...] | None]:
    target = node.targets[-1] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, (ast.Tuple, ast.List)):
        return (_name(target),) if _name(target) else (), None
    names = tuple(_name(element) for element in target.elts)
    value = node.value
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(names):
        return names, tuple(_span(element) for element in value.elts)
    return names, None


def _whole(value: ast.expr, lines: list[str]) -> Span:
    def column(line: int, offset: int) -> int:  # from bytes to UTF-16 code units, from 1
        return len(lines[line - 1].encode()[:offset].decode(errors="ignore").encode("utf-16-le")) // 2 + 1

    end_line, end_offset = _span(value)
    return (value.lineno, column(value.lineno, value.col_offset)), (end_line, column(end_line, end_offset))


def _span(node: ast.expr) -> tuple[int, int]:
    # Where an expression ends, as one number pair that orders like the text.
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _name(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return f"{target.value.id}.{target.attr}"
    return ""


def names_for_program(program: Any) -> dict[int, str]:
    """Instruction index -> name of the variable its value was assigned to, for the forward instructions of a program."""
    return names_for_places([instruction.place for instruction in program.instructions])


@functools.lru_cache(maxsize=256)
def of_values(places: tuple[int, ...], version: int) -> dict[int, str]:
    """The same for the values of a call, remembered: shapes change from call to call, places do not. version: that of the code in force."""
    return names_for_places(list(places))


def names_for_places(places: list[int]) -> dict[int, str]:
    """Index -> variable name, for values in the order they were recorded.

    A line executed several times names a value each time, if other lines ran between.
    """
    found: dict[int, str] = {}
    info = [_core.place_info(place) if place else ("", 0, 0, 0, 0, "", False) for place in places]
    start = 0
    while start < len(info):
        file, line, *_, function, backward = info[start]
        statement = None if backward or not file else assignments(file).get(line)
        end = start + 1
        while end < len(info) and _same(info[end], info[start], statement):
            end += 1
        if statement is not None:
            last = end if _covers(info[end - 1], statement.value) else _returned(statement, info, end)
            if last:
                found.update(_named(statement, info, start, last if statement.is_call else end))
        start = end
    return found


def _same(one: tuple, first: tuple, statement: Assignment | None) -> bool:
    if one[0] != first[0] or one[5] != first[5] or one[6] != first[6]:
        return False
    return one[1] == first[1] if statement is None else statement.line <= one[1] <= statement.end_line


def _covers(place: tuple, value: Span) -> bool:
    # Whether a value was made by the whole expression and not by a part of it. Places without columns tell nothing: take them so.
    _, line, end_line, column, end_column, *_ = place
    return not column or ((line, column) <= value[0] and (end_line or line, end_column) >= value[1])


def _returned(statement: Assignment, info: list[tuple], end: int) -> int:
    """One past the last value of the functions called, 0 if the statement itself has more to come."""
    first = info[end - 1]
    last = end
    while last < len(info) and info[last][5] != first[5] and info[last][6] == first[6]:
        last += 1
    return 0 if last < len(info) and _same(info[last], first, statement) else last


def _named(statement: Assignment, info: list[tuple], start: int, end: int) -> dict[int, str]:
    names = statement.names
    if statement.lines_of_names is not None:  # a, b = x * 2, y + 1: the last value inside each expression
        found: dict[int, str] = {}
        for index in range(start, end):
            _, line, end_line, _, end_column, *_ = info[index]
            at = (end_line or line, end_column - 1)  # place columns count from 1
            owner = next((n for n, span in enumerate(statement.lines_of_names) if at <= span), None)
            if owner is not None and names[owner]:
                found = {i: name for i, name in found.items() if name != names[owner]} | {index: names[owner]}
        return found
    if len(names) > end - start:
        return {}
    return {end - len(names) + n: name for n, name in enumerate(names) if name}
