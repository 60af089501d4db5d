"""A Python source as the server needs it: its tree, its captured functions, and positions as the protocol counts them."""
from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dvm_wire import syntax

from ..columns import utf16

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DECORATORS = {("dvm", "jit"), ("dvm", "kernel"), ("dvm_core", "jit"), ("dvm_core", "kernel")}
_COMPILERS = {("torch", "compile"), ("mindspore", "jit")}  # captured with backend="dvm"
_NEWLINE = re.compile("\r\n|\r|\n")  # not what str.splitlines() takes for one besides
_METHODS = ("construct", "forward")


@dataclass(frozen=True)
class Captured:
    """A captured function: its qualified name and its node."""

    name: str
    node: Function

    def covers(self, line: int) -> bool:
        return self.node.lineno <= line <= (self.node.end_lineno or self.node.lineno)


class Document:
    """One version of a text. tree: of this text, else of the last one that could be parsed, its lines moved to where they are now."""

    def __init__(self, text: str, before: Document | None = None) -> None:
        self.text = text
        self.lines = _NEWLINE.split(text)
        try:
            self.tree: ast.Module = syntax.parse(text)
            self._moved: dict[int, int] | None = None
            self._tree_lines = self.lines
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.tree = before.tree if before else ast.Module([], [])
            self._tree_lines = before._tree_lines if before else []
            self._moved = moved_lines(dict(enumerate(self._tree_lines, 1)), self.lines)
        self.imported = _imported(self.tree)
        self.captured = list(_captured(self.tree, self.imported))

    def add_called(self, lines: set[int]) -> None:
        """Counts functions that recorded something on one of these lines (of the text) among the captured: a captured one called them."""
        known = {captured.node for captured in self.captured}
        tree_lines = {self._tree_line(line) for line in lines} - {0}
        called = {_innermost(self.tree, line) for line in tree_lines}
        self.captured += [Captured(name, node) for name, node in _functions(self.tree.body) if node in called and node not in known]

    def line(self, number: int) -> int:
        """Where line `number` of the tree is now, 0 if it is gone or has changed."""
        return number if self._moved is None else self._moved.get(number, 0)

    def function_at(self, line: int) -> Captured | None:
        """The innermost captured function around a line of the text."""
        return max((f for f in self.captured if self.line(f.node.lineno) and f.covers(self._tree_line(line))),
                   key=lambda f: f.node.lineno, default=None)

    def _tree_line(self, line: int) -> int:
        if self._moved is None:
            return line
        return next((old for old, new in self._moved.items() if new == line), 0)

    def column(self, line: int, byte: int) -> int:
        """The UTF-16 column, from 0, of a byte offset of the tree in a line of the tree."""
        text = self._tree_lines[line - 1] if 0 < line <= len(self._tree_lines) else ""
        return utf16(text, byte)


def moved_lines(old: dict[int, str], new: Sequence[str]) -> dict[int, int]:
    """Old line number -> the new one, for lines whose text is still there, in order. Indentation does not count."""
    stripped = [line.strip() for line in new]
    if all(0 < number <= len(new) and stripped[number - 1] == text.strip() for number, text in old.items()):
        return {number: number for number in old}
    numbers = sorted(old)
    matcher = difflib.SequenceMatcher(None, [old[number].strip() for number in numbers], stripped, autojunk=False)
    return {numbers[a + i]: b + i + 1 for a, b, size in matcher.get_matching_blocks() for i in range(size)}


def _functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its qualified name."""
    for node in body:
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from _functions(node.body, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, part, []), prefix)
            for handler in getattr(node, "handlers", []):
                yield from _functions(handler.body, prefix)


def _innermost(tree: ast.Module, line: int) -> Function | None:
    around = [node for _, node in _functions(tree.body) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(around, key=lambda node: node.lineno, default=None)


def _captured(tree: ast.Module, names: dict[str, tuple[str, ...]]) -> Iterator[Captured]:
    wrapped = {  # f = dvm.jit(f), model = torch.compile(model, backend="dvm")
        call.args[0].id for call in ast.walk(tree)
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name) and _captures(call, names)
    }

    whole = {  # classes whose construct or forward is captured
        node.name for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and (node.name in wrapped or any(_captures(d, names) for d in node.decorator_list))
    }
    for name, node in _functions(tree.body):
        method = node.name in _METHODS and name.split(".")[-2:-1] and name.split(".")[-2] in whole
        if method or name in wrapped or any(_captures(d, names) for d in node.decorator_list):
            yield Captured(name, node)


def _imported(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    # Local name -> the dotted name it stands for: `import dvm_core as dvm`, `from dvm_core import jit as j`.
    names: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                names[alias.asname or parts[0]] = parts if alias.asname else parts[:1]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = (*node.module.split("."), alias.name)
    return names


def _captures(node: ast.expr, names: dict[str, tuple[str, ...]]) -> bool:
    """Whether a decorator, or a call around a function, has the VM run it."""
    call = node if isinstance(node, ast.Call) else None
    if call is not None and isinstance(call.func, ast.Call):  # dvm.jit(mode="graph")(f)
        return _captures(call.func, names)
    parts = dotted(call.func if call else node)
    if not parts:
        return False
    full = (*names.get(parts[0], parts[:1]), *parts[1:])
    ends = (full[0], full[-1])
    if ends in _DECORATORS:
        return True
    return ends in _COMPILERS and call is not None and any(
        k.arg == "backend" and isinstance(k.value, ast.Constant) and k.value.value == "dvm" for k in call.keywords)


def dotted(node: ast.expr) -> tuple[str, ...]:
    """("a", "b") for `a.b`, () for anything that is no dotted name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return (*inner, node.attr) if inner else ()
    return ()
