"""Differences outside of functions: module-level and class-level constants, imports, and code that has run and will not run again."""
from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence

from .constants import is_constant, value_of
from .edits import MISSING, Edit
from .parse import Definition, Source, Stub, dump


def first_line_of(node: ast.AST) -> str:
    try:
        return ast.unparse(node).split("\n")[0]
    except Exception:  # a stub stands in it
        return "..."


def kind_of(definition: Definition) -> str:
    return "class" if definition.is_class else "function"


def same(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> bool:
    """Whether statements mean the same."""
    return len(old) == len(new) and all(a is b or dump(a) == dump(b) for a, b in zip(old, new, strict=True))


def is_text(node: ast.stmt) -> bool:
    """A docstring, or another constant standing alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def module_edits(old: Source, new: Source, is_main: bool) -> Iterator[Edit]:
    if same(old.statements, new.statements):
        return
    yield from _import_edits(old, new)
    before, after = _constants(old.statements), _constants(new.statements)
    for name, node in after.items():
        if name in old.definitions and name not in new.definitions:
            yield Edit("function kind", name, node.lineno, kind_of(old.definitions[name]), "value")
        elif name not in before and not assigned_anywhere(name, old):
            yield Edit("new constant", name, node.lineno, "", ast.unparse(node), (MISSING, value_of(node)))
        elif name in before and dump(before[name]) != dump(node):
            values = value_of(before[name]), value_of(node)
            yield Edit("constant", name, node.lineno, ast.unparse(before[name]), ast.unparse(node), values)
    fresh = {name for name in after if name not in before and not assigned_anywhere(name, old)}
    stay = {name for name in before if name not in after and not assigned_anywhere(name, new)}
    for name in sorted(stay):
        yield Edit("removed", name, before[name].lineno)
    left = [n for n in _other(old.statements, before, after) if _counts(n, is_main) and _assigned(n) not in stay]
    right = [n for n in _other(new.statements, before, after) if _counts(n, is_main) and _assigned(n) not in fresh]
    for place, gone, came in _sequence_changes(left, right):
        if came:
            yield Edit("statement", "", came[0].lineno, "", new.line(came[0].lineno))
        else:
            yield Edit("removed statement", "", place, old.line(gone[0].lineno))


def assigned_anywhere(name: str, source: Source) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
               for node in source.statements for part in ast.walk(node))


def _counts(node: ast.stmt, is_main: bool) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return False
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return False
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        if test in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return False
        if "__name__" in test and "__main__" in test and not is_main:
            return False
    return True


def _sequence_changes(old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[tuple[int, list[ast.stmt], list[ast.stmt]]]:
    """(line in the new text, statements gone, statements come) for each run of differing statements."""
    matcher = difflib.SequenceMatcher(None, [dump(n) for n in old], [dump(n) for n in new], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            line = new[k].lineno if k < len(new) else (new[-1].end_lineno or 0) if new else 1
            yield line, old[i:j], new[k:m]


def _import_edits(old: Source, new: Source) -> Iterator[Edit]:
    before = {text for text, *_ in _imports(old)}
    for text, line, node, alias in _imports(new):
        if text in before:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield Edit("future import", "", line, "", text)
        elif alias.name == "*":
            yield Edit("star import", "", line, "", text)
        else:
            name = _bound(node, alias)
            if name in old.definitions and name not in new.definitions:
                yield Edit("function kind", name, line, kind_of(old.definitions[name]), "value")
            else:
                yield Edit("new import", alias.asname or alias.name, line, "", text, (node, alias))
    after = {text for text, *_ in _imports(new)}
    bound = {_bound(node, alias) for _, _, node, alias in _imports(new)} | new.definitions.keys() | _constants(new.statements).keys()
    for text, line, node, alias in _imports(old):
        if text in after:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield Edit("future import", "", line, "", text)
        elif _bound(node, alias) not in bound:
            yield Edit("removed", alias.asname or alias.name, line)


def _bound(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """The name an import gives its module or value."""
    return alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)


def _imports(source: Source) -> Iterator[tuple[str, int, ast.Import | ast.ImportFrom, ast.alias]]:
    for node in source.statements:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if isinstance(node, ast.Import):
                    text = f"import {alias.name}"
                else:
                    text = f"from {'.' * node.level}{node.module or ''} import {alias.name}"
                yield text + (f" as {alias.asname}" if alias.asname else ""), node.lineno, node, alias


def class_edits(old: Definition, new: Definition) -> Iterator[Edit]:
    before, after = _constants(old.statements), _constants(new.statements)
    for name, node in after.items():
        if name in before and dump(before[name]) != dump(node):
            yield Edit("class constant", f"{new.key}.{name}", node.lineno, ast.unparse(before[name]), ast.unparse(node),
                       (value_of(before[name]), value_of(node)))
        elif name not in before and _plain(name, old):
            yield Edit("new class constant", f"{new.key}.{name}", node.lineno, "", ast.unparse(node), (MISSING, value_of(node)))
    fresh = {name for name in after if name not in before and _plain(name, old)}
    gone = [name for name in before if name not in after and _plain(name, new)]
    for name in gone:
        yield Edit("removed class constant", f"{new.key}.{name}", before[name].lineno)
    left, right = ([node for node in _other(d.statements, before, after) if not isinstance(node, ast.Pass) and _assigned(node) not in once]
                   for d, once in ((old, gone), (new, fresh)))
    for _, before_it, came in _sequence_changes(left, right):
        first = (came or before_it)[0]
        yield Edit("class layout", new.key, first.lineno, "", f"`{first_line_of(first)}`")


def _plain(name: str, other: Definition) -> bool:
    """Whether a class constant that the class has in another version, and not in this one, means nothing but its value."""
    parts = [part for node in other.statements for part in ast.walk(node)]
    taken = any(isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load) for part in parts)
    defined = any(isinstance(part, Stub) and getattr(part, "key", "").rpartition(".")[2].partition("#")[0] == name for part in parts)
    imported = any(isinstance(part, ast.alias) and (part.asname or part.name.partition(".")[0]) == name for part in parts)
    return not (taken or defined or imported or name.startswith("__") and name.endswith("__"))


def _constants(statements: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Names assigned once, by `name = constant` or `name: type = constant`."""
    found: dict[str, ast.expr | None] = {}
    twice: set[str] = set()
    for node in statements:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
                if part.id in found:
                    twice.add(part.id)
                found.setdefault(part.id, _constant_assignment(node))
    return {name: node for name, node in found.items() if node is not None and name not in twice}


def _constant_assignment(node: ast.stmt) -> ast.expr | None:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None or not _assigned(node):
        return None
    if isinstance(node, ast.Assign) and len(node.targets) > 1:  # a = b = 1: two names, one value
        return None
    return node.value if is_constant(node.value) else None


def _assigned(node: ast.stmt) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
    return target.id if isinstance(target, ast.Name) else ""


def _other(statements: Sequence[ast.stmt], *constants: dict[str, ast.expr]) -> list[ast.stmt]:
    """Statements that are neither texts, nor stubs of definitions, nor assignments of a constant on both sides."""
    both = constants[0].keys() & constants[1].keys()
    return [node for node in statements if not is_text(node) and not _is_stub(node) and _assigned(node) not in both]


def _is_stub(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, Stub)
