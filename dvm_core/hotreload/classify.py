"""What an edit means for a program that is running: every difference between two versions of a file, as edits of known kinds."""
from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from types import CodeType

from . import toplevel
from .constants import NotConstant, replaced, value_of
from .edits import Changed, Edit
from .parse import Definition, Source, Stub, dump


def classify(old: Source, new: Source, is_main: bool = True) -> list[Edit]:
    """Every difference in meaning between two versions of a file, none for a difference in positions, comments or docstrings only.

    is_main: whether code under `if __name__ == "__main__"` belongs to the running program."""
    edits = list(toplevel.module_edits(old, new, is_main))
    for key, definition in new.definitions.items():
        before = old.definitions.get(key)
        if before is not None and (before is definition or old.text_of(before) == new.text_of(definition)):
            continue  # most of a file, most of the time
        if definition.in_function:  # made at every call: its own differences are body differences of what makes it
            if before is not None and _changed_inside(before, definition):
                edits.append(_body_edit(before, definition))
        elif before is None:
            if definition.owner is None or definition.owner.key in old.definitions:  # else: it is part of a new class
                edits.append(_added(definition, old))
        elif before.is_class != definition.is_class:
            edits.append(Edit("function kind", key, definition.first_line, _kind(before), _kind(definition)))
        elif definition.is_class:
            edits += _class_edits(before, definition)
        else:
            edits += _function_edits(before, definition)
    for key, before in old.definitions.items():
        gone = key not in new.definitions and not before.in_function
        if gone and (before.owner is None or before.owner.key in new.definitions):
            edits.append(Edit("defined again" if _last_of_several(before) else "removed", key, before.first_line))
    return edits


# ---- functions ---------------------------------------------------------------------------------------------------------------------
def _function_edits(old: Definition, new: Definition) -> Iterator[Edit]:
    key, line = new.key, new.node.lineno
    if _kind(old) != _kind(new):
        yield Edit("function kind", key, line, _kind(old), _kind(new))
        return
    if list(map(dump, old.decorators)) != list(map(dump, new.decorators)):
        yield Edit("decorator", key, new.first_line)
    before, after = _arguments(old), _arguments(new)
    if _parameters(before) != _parameters(after) or _defaults(before).keys() - _defaults(after).keys():
        yield Edit("signature", key, line, toplevel.first_line_of(before), toplevel.first_line_of(after))
        return
    yield from _default_edits(old, new)
    if _annotations(old) != _annotations(new):
        yield Edit("annotation", key, line)
    if _other_body(old, new):
        yield _body_edit(old, new)


def _arguments(definition: Definition) -> ast.arguments:
    return definition.node.args  # type: ignore[union-attr]


def _parameters(arguments: ast.arguments) -> list[tuple[str, str]]:
    groups = (("positional", arguments.posonlyargs), ("any", arguments.args), ("*", [arguments.vararg] if arguments.vararg else []),
              ("keyword", arguments.kwonlyargs), ("**", [arguments.kwarg] if arguments.kwarg else []))
    return [(kind, argument.arg) for kind, group in groups for argument in group]


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = arguments.posonlyargs + arguments.args
    named = dict(zip((a.arg for a in positional[len(positional) - len(arguments.defaults):]), arguments.defaults, strict=True))
    named.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None})
    return named


def _default_edits(old: Definition, new: Definition) -> Iterator[Edit]:
    before = _defaults(_arguments(old))
    for name, node in _defaults(_arguments(new)).items():
        if dump(before.get(name)) == dump(node):
            continue
        text = ast.unparse(before[name]) if name in before else "(none)"
        try:
            value = value_of(node)
        except NotConstant:
            yield Edit("computed default", new.key, node.lineno, text, f"{name}={ast.unparse(node)}")
        else:
            yield Edit("default", new.key, node.lineno, f"{name}={text}", f"{name}={ast.unparse(node)}", {name: value})


def _annotations(definition: Definition) -> list[str]:
    arguments = _arguments(definition)
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [dump(a.annotation) for a in every] + [dump(getattr(definition.node, "returns", None))]


def _body(definition: Definition) -> list[str]:
    if isinstance(definition.node, ast.Lambda):
        return [dump(definition.node.body)]
    return [dump(statement) for statement in _without_docstring(definition.statements)]


def _other_body(old: Definition, new: Definition) -> bool:
    """Whether the two differ in what they do: an annotation of a local, say, is compiled to nothing."""
    if _body(old) == _body(new):
        return False
    return old.code is None or new.code is None or _without_lines(old.code) != _without_lines(new.code)


def _without_lines(code: CodeType) -> CodeType:
    constants = tuple(_without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=constants)


def _without_docstring(statements: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    return statements[1:] if statements and toplevel.is_text(statements[0]) else statements



def _changed_inside(old: Definition, new: Definition) -> bool:
    if old.is_class or new.is_class:
        return list(map(dump, old.statements)) != list(map(dump, new.statements)) or _head(old) != _head(new)
    return _other_body(old, new) or dump(_arguments(old)) != dump(_arguments(new)) or _head(old) != _head(new)


def _head(definition: Definition) -> list[str]:
    node = definition.node
    bases = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
    return [dump(part) for part in (*definition.decorators, *bases)] + [_kind(definition)]


def _body_edit(old: Definition, new: Definition) -> Edit:
    """One edit with the constants that differ, if nothing else does, or with the statements that do."""
    constants = replaced(old.node, new.node)
    if constants:
        return Edit("body", new.key, constants[0].line, "", "", [Changed("constant", c.old, c.new, c.line) for c in constants])
    end = getattr(new.node, "end_lineno", 0) or new.node.lineno
    if isinstance(old.node, ast.Lambda) or isinstance(new.node, ast.Lambda):
        changed = [Changed("body", _lambda_text(old), _lambda_text(new), new.node.lineno)]
    else:
        changed = list(_changed_statements(_without_docstring(old.statements), _without_docstring(new.statements), end))
    return Edit("body", new.key, changed[0].line if changed else end, "", "", changed)


def _lambda_text(definition: Definition) -> str:
    return toplevel.first_line_of(definition.node.body) if isinstance(definition.node, ast.Lambda) else ""


def _changed_statements(old: Sequence[ast.stmt], new: Sequence[ast.stmt], end: int) -> Iterator[Changed]:
    """Statements inserted, deleted and replaced, in the order of the new text; inside a compound one if its head is the same.

    end: the line for what was deleted after the last statement that stays."""
    before, after = list(map(dump, old)), list(map(dump, new))
    for i, j, k, m in _differing(before, after):
        # What was replaced by more or less than it was: a statement goes with one of its own sort.
        for i2, j2, k2, m2 in _alike(old[i:j], new[k:m]):
            for gone, came in zip(old[i + i2:i + j2], new[k + k2:k + m2], strict=False):
                yield from _changed_statement(gone, came)
            paired = min(j2 - i2, m2 - k2)
            for came in new[k + k2 + paired:k + m2]:
                yield Changed("inserted", "", _statement_text(came), came.lineno)
            for gone in old[i + i2 + paired:i + j2]:
                line = new[k + m2].lineno if k + m2 < len(new) else end
                yield Changed("deleted", _statement_text(gone), "", line)


def _differing(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield i, j, k, m


def _alike(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> Iterator[tuple[int, int, int, int]]:
    """Runs of statements that belong together."""
    matcher = difflib.SequenceMatcher(None, list(map(_sort, old)), list(map(_sort, new)), autojunk=False)
    for _, i, j, k, m in matcher.get_opcodes():
        yield i, j, k, m


def _sort(node: ast.stmt) -> str:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    value = getattr(node, "value", None)
    called = dump(value.func) if isinstance(node, ast.Expr) and isinstance(value, ast.Call) else ""
    return " ".join([type(node).__name__, called, *(dump(t) for t in targets if isinstance(t, ast.AST))])


def _statement_text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, Stub):
        return "definition of " + getattr(node.value, "key", "").rpartition(".")[2]
    return toplevel.first_line_of(node)


def _changed_statement(old: ast.stmt, new: ast.stmt) -> Iterator[Changed]:
    blocks = [name for name in ("body", "orelse", "finalbody") if isinstance(getattr(new, name, None), list)]
    if blocks and type(old) is type(new) and _without(old, blocks) == _without(new, blocks):
        for name in blocks:
            yield from _changed_statements(getattr(old, name), getattr(new, name), new.end_lineno or new.lineno)
    else:
        yield Changed("body", _statement_text(old), _statement_text(new), new.lineno)


def _without(node: ast.stmt, blocks: list[str]) -> list[str]:
    """A compound statement but for these blocks of it."""
    return [ast.dump(value) if isinstance(value, ast.AST) else repr([ast.dump(v) if isinstance(v, ast.AST) else v for v in value])
            if isinstance(value, list) else repr(value) for name, value in ast.iter_fields(node) if name not in blocks]


def _kind(definition: Definition) -> str:
    node = definition.node
    if isinstance(node, ast.ClassDef):
        return "class"
    flags = definition.code.co_flags if definition.code else 0
    asynchronous, yields = isinstance(node, ast.AsyncFunctionDef), bool(flags & (0x20 | 0x200))  # CO_GENERATOR, CO_ASYNC_GENERATOR
    return ("asynchronous " if asynchronous else "") + ("generator" if yields else "function")


def _last_of_several(definition: Definition) -> bool:
    """Whether it has taken the name from an earlier definition, which no decorator (`@rate.setter`) joins it with."""
    return "#" in definition.key.rpartition(".")[2] and not any(isinstance(d, (ast.Attribute, ast.Call)) for d in definition.decorators)


def _added(new: Definition, old: Source) -> Edit:
    if _last_of_several(new):
        return Edit("defined again", new.key, new.first_line)
    if new.owner is None and toplevel.assigned_anywhere(new.key, old):
        return Edit("function kind", new.key, new.first_line, "value", _kind(new))
    kind = "new class" if new.is_class else "new function"
    plain = {"staticmethod", "classmethod", "property"} if new.owner else set()
    if not new.is_class and not all(isinstance(d, ast.Name) and d.id in plain for d in new.decorators):
        kind = "new decorated function"
    if kind == "new function":
        for name, node in _defaults(_arguments(new)).items():
            try:
                value_of(node)
            except NotConstant:
                return Edit("computed default", new.key, node.lineno, "", f"{name}={ast.unparse(node)}")
    return Edit(kind, new.key, new.first_line)

def _class_edits(old: Definition, new: Definition) -> Iterator[Edit]:
    if list(map(dump, old.decorators)) != list(map(dump, new.decorators)):
        yield Edit("decorator", new.key, new.first_line)
    elif _head(old) != _head(new):
        yield Edit("class layout", new.key, new.node.lineno, "", "the bases")
    yield from toplevel.class_edits(old, new)
