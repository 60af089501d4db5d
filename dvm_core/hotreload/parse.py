"""A file's text as definitions and statements that can be compared without their positions."""
from __future__ import annotations
import __future__

import ast
import copy
import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from dvm_wire import syntax

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def dump(node: ast.AST | None) -> str:
    """The tree as text, positions left out: equal text, equal meaning."""
    return "" if node is None else ast.dump(node)


@dataclass
class Definition:
    """A function or class. `key` is its qualified name, with `#2`, `#3` for further ones of that name (a property and its setter)."""
    key: str
    node: Function | ast.ClassDef | ast.Lambda
    owner: Definition | None
    first_line: int  # of the code object: the first decorator, if there is one
    statements: list[ast.stmt] = field(default_factory=list)  # of the body, definitions in it replaced by stubs
    code: CodeType | None = None  # functions and lambdas, and class bodies
    lines: list[str] | None = None  # its text, where it is not that of the source it is in

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def root(self) -> Definition:
        """The definition of the module that it stands in, or is."""
        return self if self.owner is None else self.owner.root

    @property
    def in_function(self) -> bool:
        """Made again at every call of the function it stands in."""
        return self.owner is not None and (not self.owner.is_class or self.owner.in_function)

    @property
    def name(self) -> str:
        return self.code.co_name if self.code else getattr(self.node, "name", "<lambda>")

    @property
    def decorators(self) -> list[ast.expr]:
        return getattr(self.node, "decorator_list", [])


@dataclass
class Source:
    """One version of a file."""
    path: str
    text: str
    definitions: dict[str, Definition]
    statements: list[ast.stmt]  # of the module, definitions replaced by stubs
    spans: list[tuple[int, int]]  # first and last line of each of them, decorators included
    inner: list[CodeType]  # made directly by the module's own code, in order
    futures: int  # compiler flags of its `from __future__` imports

    @property
    def functions(self) -> list[Definition]:
        return [definition for definition in self.definitions.values() if not definition.is_class]

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, number: int) -> str:
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def text_of(self, definition: Definition) -> list[str]:
        """The definition's lines, decorators included."""
        return definition.lines if definition.lines is not None else self.lines[definition.first_line - 1:definition.node.end_lineno]


class Stub(ast.expr):
    """Stands where a definition was: the definition is compared by itself."""
    _fields = ("key",)


def parse(path: str, text: str) -> Source:
    """Parses and compiles `text` as the file `path`. Raises SyntaxError, ValueError (a null byte)."""
    tree = syntax.parse(text, path)
    code = compile(tree, path, "exec", dont_inherit=True)
    collector = Collector()  # copies what it changes: the tree stays what was compiled
    statements = collector.body(tree.body, None, "")
    inner = inner_codes(code)
    attach_codes(collector.definitions, inner)
    return Source(path, text, collector.definitions, statements, [span(node) for node in tree.body], inner, code.co_flags & _FUTURES)


_FUTURES = functools.reduce(operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))


def span(node: ast.stmt) -> tuple[int, int]:
    return _first_line(node), node.end_lineno or node.lineno


def _first_line(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


class Collector:
    def __init__(self) -> None:
        self.definitions: dict[str, Definition] = {}

    def body(self, statements: list[ast.stmt], owner: Definition | None, prefix: str) -> list[ast.stmt]:
        return [self.statement(statement, owner, prefix) for statement in statements]

    def statement(self, node: ast.stmt, owner: Definition | None, prefix: str) -> ast.stmt:
        if isinstance(node, _DEFINITIONS):
            return self.define(node, node.name, node.body, owner, prefix)
        lambda_name = _named_lambda(node) if owner is None or owner.is_class else ""
        if lambda_name:
            return self.define(node.value, lambda_name, [], owner, prefix)  # type: ignore[attr-defined]
        if not (hasattr(node, "body") or hasattr(node, "cases")) or not any(isinstance(part, _DEFINITIONS) for part in ast.walk(node)):
            return node
        node = copy.copy(node)  # an `if`, `try`, `with` or loop around definitions: the same statement with stubs inside
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.body(value, owner, prefix))
            elif isinstance(value, list) and value and isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                setattr(node, name, [self.handler(part, owner, prefix) for part in value])
        return node

    def handler(self, part: Any, owner: Definition | None, prefix: str) -> Any:
        part = copy.copy(part)
        part.body = self.body(part.body, owner, prefix)
        return part

    def define(self, node: Any, name: str, body: list[ast.stmt], owner: Definition | None, prefix: str) -> ast.stmt:
        key, count = prefix + name, 1
        while key in self.definitions:
            count += 1
            key = f"{prefix}{name}#{count}"
        definition = self.definitions[key] = Definition(key, node, owner, _first_line(node))
        inside = key + ("." if isinstance(node, ast.ClassDef) else ".<locals>.")
        definition.statements = self.body(body, definition, inside)
        return ast.copy_location(ast.Expr(Stub(key=key)), node)  # type: ignore[call-arg]


def _named_lambda(node: ast.stmt) -> str:
    """The name in `name = lambda ...: ...`, which defines a function like `def` does."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Lambda) or len(node.targets) != 1:
        return ""
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


def inner_codes(code: CodeType) -> list[CodeType]:
    """Code objects made directly inside this one, in order; through the scopes that Python 3.12 puts around type parameters."""
    found: list[CodeType] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += inner_codes(constant) if constant.co_name.startswith("<generic parameters of") else [constant]
    return found


def all_codes(code: CodeType) -> list[CodeType]:
    """This code object and all inside it, at any depth."""
    return [code, *(deeper for inner in inner_codes(code) for deeper in all_codes(inner))]


def _by_place(codes: Iterable[CodeType]) -> dict[tuple[int, str], list[CodeType]]:
    found: dict[tuple[int, str], list[CodeType]] = {}
    for code in codes:
        found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
    return found


def attach_codes(definitions: dict[str, Definition], top: list[CodeType]) -> None:
    inside: dict[int | None, dict[tuple[int, str], list[CodeType]]] = {None: _by_place(top)}  # of each owner's code, by id
    for definition in definitions.values():  # owners come before what is in them
        outer = definition.owner.code if definition.owner is not None else None
        if outer is not None and id(outer) not in inside:
            inside[id(outer)] = _by_place(inner_codes(outer))
        name = getattr(definition.node, "name", "<lambda>")
        lost = definition.owner is not None and outer is None
        matches = [] if lost else inside[None if outer is None else id(outer)].get((definition.first_line, name), [])
        # Two lambdas on one line cannot be told apart; dead code (after a `return`) is compiled to nothing.
        definition.code = matches[0] if len(matches) == 1 else None
