"""Everything the server knows of one version of a document: made once, asked by hints, hovers, lenses and diagnostics."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from . import shapes
from .document import Document
from .recall import Recall, Value, shape_text


@dataclass(frozen=True)
class Named:
    """A variable that a statement of a captured function gives a tensor: where its name ends (line and column from 0), and its type:
    that of the last run, else what the source tells."""

    name: str
    line: int
    column: int
    text: str
    value: Value | None


class Analysis:
    def __init__(self, path: str, text: str, before: Analysis | None = None) -> None:
        self.path = path
        self.document: Document = Document(text, before.document if before else None)
        self.recall = Recall.of(path, self.document.lines)
        self.document.add_called({value["line"] for value in self.recall.values if not value["backward"]})
        known, imported = shapes.constants(self.document.tree), self.document.imported
        self._deduced = [(f, shapes.deduce(f.node, known, imported)) for f in self.document.captured]
        self.named = sorted(self._named(), key=lambda named: (named.line, named.column))

    def _named(self) -> Iterator[Named]:
        for captured, found in self._deduced:
            for node in ast.walk(captured.node):
                for target, first, last in _targets(node):
                    line = self.document.line(target.lineno)
                    if not line:
                        continue
                    end = target.end_col_offset or 0
                    column = self.document.column(target.lineno, end)
                    value = self.recall.named(target.id, line, line + last - first)
                    static = found.assigned.get((target.lineno, end, target.id))
                    text = shape_text(value) if value else str(static) if static is not None and static.tells else ""
                    if text:
                        yield Named(target.id, line - 1, column, text, value)

    def errors(self) -> Iterator[tuple[int, int, int, int, str]]:
        """(line, column, end line, end column, text), from 0, of operations that cannot work as the source tells."""
        for _, found in self._deduced:
            for node, text in found.errors.values():
                line, end = self.document.line(node.lineno), self.document.line(node.end_lineno or node.lineno)
                if line and end:
                    yield (line - 1, self.document.column(node.lineno, node.col_offset), end - 1,
                           self.document.column(node.end_lineno or node.lineno, node.end_col_offset or 0), text)


def _targets(node: ast.AST) -> Iterator[tuple[ast.Name, int, int]]:
    # Names an assignment binds, with the statement's first and last line.
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.NamedExpr):
        yield node.target, node.lineno, node.end_lineno or node.lineno
        return
    else:
        return
    for target in targets:
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
            if isinstance(part, ast.Name):
                yield part, node.lineno, node.end_lineno or node.lineno
