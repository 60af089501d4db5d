"""What an edit means for a program that is running: every difference between two versions of a file, as edits of known kinds."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from . import toplevel
from .constants import NotConstant, replaced, value_of
from .edits import Edit
from .parse import Definition, Source, dump


def classify(old: Source, new: Source, is_main: bool = True) -> list[Edit]:
    """Every difference in meaning between two versions of a file, none for a difference in positions, comments or docstrings only.

    is_main: whether code under `if __name__ == "__main__"` belongs to the running program."""
    edits = list(toplevel.module_edits(old, new, is_main))
    for key, definition in new.definitions.items():
        before = old.definitions.get(key)
        if before is not None and old.text_of(before) == new.text_of(definition):
            continue  # most of a file, most of the time
        if definition.in_function:  # made at every call: its own differences are body differences of what makes it
            if before is not None and _changed_inside(before, definition):
                edits.append(_body_edit(before, definition))
        elif before is None:
            if definition.owner is None or definition.owner.key in old.definitions:  # else: it is part of a new class
                edits.append(_added(definition))
        elif before.is_class != definition.is_class:
            edits.append(Edit("function kind", key, definition.first_line, _kind(before), _kind(definition)))
        elif definition.is_class:
            edits += _class_edits(before, definition)
        else:
            edits += _function_edits(before, definition)
    for key, before in old.definitions.items():
        gone = key not in new.definitions and not before.in_function
        if gone and (before.owner is None or before.owner.key in new.definitions):
            edits.append(Edit("removed", key, before.first_line))
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
    if _body(old) != _body(new):
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


def _without_docstring(statements: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    return statements[1:] if statements and toplevel.is_text(statements[0]) else statements



def _changed_inside(old: Definition, new: Definition) -> bool:
    if old.is_class or new.is_class:
        return list(map(dump, old.statements)) != list(map(dump, new.statements)) or _head(old) != _head(new)
    return _body(old) != _body(new) or dump(_arguments(old)) != dump(_arguments(new)) or _head(old) != _head(new)


def _head(definition: Definition) -> list[str]:
    node = definition.node
    bases = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
    return [dump(part) for part in (*definition.decorators, *bases)] + [_kind(definition)]


def _body_edit(old: Definition, new: Definition) -> Edit:
    """One edit with the constants that differ, if nothing else does, or the first statement that differs."""
    constants = replaced(old.node, new.node)
    if constants:
        return Edit("body", new.key, constants[0].line, "", "", constants)
    before, after = _body(old), _body(new)
    first = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return Edit("body", new.key, _line_of(new, first), _text_of(old, first), _text_of(new, first))


def _line_of(definition: Definition, index: int) -> int:
    statements = _without_docstring(definition.statements)
    return statements[index].lineno if index < len(statements) else getattr(definition.node, "end_lineno", 0) or definition.node.lineno


def _text_of(definition: Definition, index: int) -> str:
    if isinstance(definition.node, ast.Lambda):
        return toplevel.first_line_of(definition.node.body)
    statements = _without_docstring(definition.statements)
    return toplevel.first_line_of(statements[index]) if index < len(statements) else ""



def _kind(definition: Definition) -> str:
    node = definition.node
    if isinstance(node, ast.ClassDef):
        return "class"
    flags = definition.code.co_flags if definition.code else 0
    asynchronous, yields = isinstance(node, ast.AsyncFunctionDef), bool(flags & (0x20 | 0x200))  # CO_GENERATOR, CO_ASYNC_GENERATOR
    return ("asynchronous " if asynchronous else "") + ("generator" if yields else "function")


def _added(new: Definition) -> Edit:
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
