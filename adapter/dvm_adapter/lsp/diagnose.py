"""Diagnostics of captured functions: what cannot work, what falls back, what has no gradient, what would be faster otherwise."""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lsprotocol import types as lsp

from .analysis import Analysis
from .document import Captured
from .present import range_of, span, whole_line

SOURCE = "dvm"
_ENOUGH = 20  # launches before a shape counts as one that never varies
_VIEWS = frozenset(("T", "mT", "reshape", "view", "transpose", "permute", "swapaxes", "squeeze", "unsqueeze", "expand", "flatten"))
_ROUNDED = frozenset(("ROUND", "FLOOR", "CEIL", "TRUNC", "SIGN", "ARGMAX", "ARGMIN", "ARGSORT"))


@dataclass(frozen=True)
class Check:
    """code: what the diagnostic is called; docs/debugging.md has a line on each."""

    code: str
    severity: lsp.DiagnosticSeverity
    find: Callable[[Analysis], Iterator[tuple[lsp.Range, str]]]


def diagnostics(analysis: Analysis) -> list[lsp.Diagnostic]:
    return [lsp.Diagnostic(where, text, check.severity, code=check.code, source=SOURCE)
            for check in CHECKS for where, text in check.find(analysis)]


def _shapes(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    for line, column, end_line, end_column, text in analysis.errors():
        yield span(line, column, end_line, end_column), text


def _fallbacks(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    for notice in analysis.recall.notices:
        if notice.get("category") == "fallback" and analysis.document.function_at(notice["line"]):
            yield whole_line(analysis, notice["line"]), f"{notice['text']}. What is before and after it is not fused with it."


def _no_gradient(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    differentiated = {v["line"] for v in analysis.recall.values if v["backward"]}
    for value in analysis.recall.values:
        captured = analysis.document.function_at(value["line"])
        if captured is None or value["backward"] or value.get("gradient") is not False or value["op"] not in _ROUNDED:
            continue
        if any(captured.covers(line) for line in differentiated):
            yield (range_of(analysis, value), f"{value['op']} has no gradient: what only it depends on is not trained by this line")


def _never_varies(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    for function in analysis.recall.functions:
        captured = analysis.document.function_at(function["line"])
        if captured is None or function.get("launches", 0) < _ENOUGH or _is_graph(captured):
            continue
        if function.get("shapes") == 1:
            yield (whole_line(analysis, analysis.document.line(captured.node.lineno)),
                   f"the shapes of {function['name']} were the same in all {function['launches']} launches: mode=\"graph\" would replay it "
                   "without running its Python")


def _does_not_pay(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    for function in analysis.recall.functions:
        captured = analysis.document.function_at(function["line"])
        if captured is not None and function.get("verdict") == "does not pay":
            yield (whole_line(analysis, analysis.document.line(captured.node.lineno)),
                   f"the VM does not pay for {function['name']}: {function.get('why', '')}. {function.get('do', '')}".strip())


def _is_graph(captured: Captured) -> bool:
    return any(isinstance(k.value, ast.Constant) and k.value.value == "graph"
               for d in captured.node.decorator_list if isinstance(d, ast.Call) for k in d.keywords if k.arg == "mode")


def _in_place(analysis: Analysis) -> Iterator[tuple[lsp.Range, str]]:
    """A view that is read after what it looks at was written, in one straight run of statements."""
    for captured in analysis.document.captured:
        views: dict[str, str] = {}  # view -> what it looks at
        written: dict[str, tuple[str, int]] = {}  # view -> (what was written, line)
        for node in captured.node.body:
            for name in _reads(node):
                if name in written:
                    owner, line = written.pop(name)
                    now = analysis.document.line(node.lineno)
                    if now:
                        yield (whole_line(analysis, now), f"{name} looks into {owner}, which line {analysis.document.line(line)} has "
                               f"changed in place: it shows the new elements here. Copy it before if the old ones are meant")
            owner = _written(node)
            if owner:
                written |= {view: (owner, node.lineno) for view, base in views.items() if base == owner}
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                target = node.targets[0].id
                written.pop(target, None)
                views = {view: base for view, base in views.items() if target not in (view, base)}
                base = _viewed(node.value)
                if base and base != target:
                    views[target] = views.get(base, base)


def _reads(node: ast.stmt) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def _written(node: ast.stmt) -> str:
    """The name whose elements a statement changes in place, "" if none."""
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0].value
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        target = node.target.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        method = node.value.func.attr
        target = node.value.func.value if method.endswith("_") and not method.endswith("__") else None
    return target.id if isinstance(target, ast.Name) else ""


def _viewed(node: ast.expr) -> str:
    """The name an expression is a view of: `x[1:]`, `x.T`, `x.reshape(...)`."""
    found = False
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        elif (isinstance(node, ast.Attribute) and node.attr in _VIEWS) or isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node.id if found and isinstance(node, ast.Name) else ""
        found = True


CHECKS = (
    Check("shape", lsp.DiagnosticSeverity.Error, _shapes),
    Check("fallback", lsp.DiagnosticSeverity.Information, _fallbacks),
    Check("no-gradient", lsp.DiagnosticSeverity.Information, _no_gradient),
    Check("in-place", lsp.DiagnosticSeverity.Warning, _in_place),
    Check("fixed-shapes", lsp.DiagnosticSeverity.Hint, _never_varies),
    Check("does-not-pay", lsp.DiagnosticSeverity.Information, _does_not_pay),
)
