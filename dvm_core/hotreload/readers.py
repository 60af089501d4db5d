"""Who reads a module's global: a new value reaches functions, but not top-level code that has already run."""
from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from dvm_wire import syntax

from .live import Live, frames
from .parse import Source, all_codes
from .sources import SourceBook


def in_functions(name: str, source: Source) -> bool:
    """Whether any function of the file reads the global `name` (or a local of that name in a class body)."""
    return any(name in code.co_names for definition in source.functions if definition.code for code in all_codes(definition.code))


def at_top_level(name: str, source: Source, live: Live, owner: str = "") -> tuple[list[int], list[int]]:
    """Lines of top-level code that reads `name`, or that of the class `owner`: (has run already, runs now or later)."""
    now = live.module_line()
    done: list[int] = []
    ahead: list[int] = []
    read = [(node, _reads_name) for node in _top_level(source, owner)]
    if owner:
        read += [(node, _reads_attribute) for node in _top_level(source)]
    for node, reads in read:
        lines: list[int] = [part.lineno for part in ast.walk(node) if reads(part, name, owner)]  # type: ignore[attr-defined]
        if lines:
            (done if now is None or (node.end_lineno or node.lineno) < now else ahead).append(lines[0])
    return done, ahead


def _reads_name(part: Any, name: str, owner: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name and type(part.ctx) is ast.Load


def _reads_attribute(part: Any, name: str, owner: str) -> bool:
    if not isinstance(part, ast.Attribute) or part.attr != name or type(part.ctx) is not ast.Load:
        return False
    return ast.unparse(part.value) == owner


def _top_level(source: Source, owner: str = "") -> list[ast.stmt | ast.expr]:
    """Statements and expressions outside of functions; with an owner only those of that class's body."""
    found: list[ast.stmt | ast.expr] = [] if owner else list(source.statements)
    for definition in source.definitions.values():
        if definition.in_function or (owner and owner not in (definition.key, definition.owner and definition.owner.key)):
            continue
        found += definition.decorators
        if definition.is_class:
            found += definition.statements
        else:
            arguments = definition.node.args  # type: ignore[union-attr]
            found += [default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None]
    return found


def elsewhere(name: str, live: Live, book: SourceBook) -> bool:
    """Whether another file of the program has the word."""
    word = re.compile(rf"\b{name}\b")
    for other in list(sys.modules.values()):
        file = getattr(other, "__dict__", {}).get("__file__")
        text = book.get(file) if isinstance(file, str) and other not in live.modules else None
        if text is not None and word.search(text):
            return True
    return False


def stale(module: ModuleType, key: str, book: SourceBook) -> list[tuple[str, int]]:
    """(file, line) where top-level code of other user modules has read the module's `key`, be it as `module.key` or imported by name; the
    first line of each."""
    found = []
    for other in list(sys.modules.values()):
        file = getattr(other, "__dict__", {}).get("__file__")
        text = book.get(file) if isinstance(file, str) and other is not module else None
        if text is None or key.rpartition(".")[2] not in text:
            continue
        tree = syntax.parse(text)
        spelled = set(_spellings(tree, other, module, key))
        now = running_line(vars(other))
        lines = [part.lineno for node in tree.body if now is None or (node.end_lineno or node.lineno) < now
                 for part in _outside_functions(node)
                 if isinstance(part, (ast.Name, ast.Attribute)) and type(part.ctx) is ast.Load and ast.unparse(part) in spelled]
        found += [(os.path.basename(file), min(lines))] if lines and isinstance(file, str) else []
    return found


def _spellings(tree: ast.Module, other: ModuleType, module: ModuleType, key: str) -> Iterator[str]:
    """How the top level of `tree`, the text of `other`, may call what is `key` in `module`."""
    package, _, last = module.__name__.rpartition(".")
    first, _, rest = key.partition(".")
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (f"{alias.asname or alias.name}.{key}" for alias in node.names if alias.name == module.__name__)
        elif isinstance(node, ast.ImportFrom):
            source = _resolve(node, other)
            for alias in node.names:
                if source == module.__name__ and alias.name == first:
                    yield (alias.asname or first) + (f".{rest}" if rest else "")
                elif package and source == package and alias.name == last:
                    yield f"{alias.asname or last}.{key}"


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but not what runs only when a function is called."""
    yield node
    inside: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        inside = [*getattr(node, "decorator_list", []), *defaults]
    for part in inside:
        yield from _outside_functions(part)


def running_line(names: dict[str, Any]) -> int | None:
    """The line that the top-level code of the module with these names is at, None when it has run to its end."""
    return next((frame.f_lineno for frame in frames() if frame.f_globals is names and frame.f_code.co_name == "<module>"), None)


def importers(module: ModuleType, name: str, book: SourceBook) -> list[tuple[ModuleType, str]]:
    """(module, its name for it) of other user modules that have `from module import name` at their top level."""
    found = []
    for other in list(sys.modules.values()):
        file = getattr(other, "__dict__", {}).get("__file__")
        text = book.get(file) if isinstance(file, str) else None
        if other is module or text is None or name not in text:
            continue
        for node in syntax.parse(text).body:
            if isinstance(node, ast.ImportFrom) and _resolve(node, other) == module.__name__:
                found += [(other, alias.asname or name) for alias in node.names if alias.name == name]
    return found


def _resolve(node: ast.ImportFrom, importer: ModuleType) -> str:
    if not node.level:
        return node.module or ""
    package = (getattr(importer, "__package__", "") or "").split(".")
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


