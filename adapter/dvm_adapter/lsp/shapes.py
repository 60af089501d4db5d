"""Shapes and dtypes of a captured function's variables from its source alone: what annotations, constructors and rules tell.

A statement's value is what holds on every way to it; a loop's body is gone through until nothing changes. What is not known stays
unknown: no guess is shown. Products and broadcasts that cannot work are found on the way.
"""
from __future__ import annotations

import ast
import collections
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import rules
from .document import Function, dotted
from .tensor_type import DTYPES, NOTHING, UNKNOWN, Mismatch, TensorType, annotated, join, matmul

Variables = dict[str, Any]
_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor)
_ROUNDS = 4  # of a loop's body, before what still changes is unknown
_DEEPEST = 60  # nested expressions


@dataclass
class Found:
    """assigned: by (line, end column in bytes, name) of a target the tensor it got. errors: by place (node, text)."""

    assigned: dict[tuple[int, int, str], TensorType] = field(default_factory=dict)
    errors: dict[tuple[int, int], tuple[ast.expr, str]] = field(default_factory=dict)


def deduce(function: Function, surroundings: Variables | None = None, imported: Collection[str] = ()) -> Found:
    """What the source tells of one function. imported: plain names that modules have given."""
    found = Found()
    walker = _Walker(found, imported)
    walker.variables = dict(surroundings or {})
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        walker.variables[argument.arg] = _annotation(argument.annotation)
    walker.block(function.body)
    return found


def constants(tree: ast.Module) -> Variables:
    """Numbers and tensors that a module's top level gives a name once."""
    walker = _Walker(Found())
    times = collections.Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            walker.variables[node.targets[0].id] = walker.value(node.value)
    return {name: value for name, value in walker.variables.items() if value is not None and times[name] == 1}


def _annotation(node: ast.expr | None) -> TensorType | None:
    return annotated(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


class _Walker:
    def __init__(self, found: Found, imported: Collection[str] = ()) -> None:
        self.found = found
        self.imported = imported
        self.variables: Variables = {}
        self.depth = 0

    # ---- statements
    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                made = self.value(value)
                for target in targets:
                    self.assign(target, made)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                made = self.value(value) if value is not None else None
                self.assign(target, _annotation(annotation) or made)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                made = self.operation(op, self.variables.get(name), self.value(value), value)
                self.assign(target, made)
            case ast.If(test=test, body=body, orelse=other):
                self.value(test)
                self.ways(lambda: self.block(body), lambda: self.block(other))
            case ast.For(target=target, iter=what, body=body, orelse=other):
                self.value(what)
                self.loop(lambda: self.round(target, body))
                self.block(other)
            case ast.While(test=test, body=body, orelse=other):
                self.loop(lambda: self.tested(test, body))
                self.block(other)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, None)
                self.block(body)
            case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=final):
                self.ways(lambda: self.block([*body, *other]), *(functools.partial(self.block, handler.body) for handler in handlers))
                self.block(final)
            case ast.Return(value=value) | ast.Expr(value=value):
                if value is not None:
                    self.value(value)
            case ast.Assert(test=test):
                self.value(test)
            case _:
                for name in _bound(node):
                    self.variables.pop(name, None)

    def round(self, target: ast.expr, body: Sequence[ast.stmt]) -> None:
        self.assign(target, None)
        self.block(body)

    def tested(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        self.value(test)
        self.block(body)

    def ways(self, *ways: Callable[[], Any]) -> None:
        """Each way from the same start; afterwards what holds after all of them."""
        before, ends = self.variables, []
        for way in ways:
            self.variables = dict(before)
            way()
            ends.append(self.variables)
        self.variables = _joined(ends)

    def loop(self, body: Callable[[], Any]) -> None:
        for _ in range(_ROUNDS):
            before = dict(self.variables)
            self.ways(lambda: None, body)
            if self.variables == before:
                return
        changing = {name for name in self.variables if self.variables[name] != before.get(name)}
        self.variables.update(dict.fromkeys(changing))

    def assign(self, target: ast.expr, made: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.variables[name] = made
                key = target.lineno, target.end_col_offset or 0, name
                if isinstance(made, TensorType):
                    known = self.found.assigned.get(key)
                    self.found.assigned[key] = made if known is None else join(known, made)
                elif key in self.found.assigned:
                    self.found.assigned[key] = UNKNOWN
            case ast.Starred(value=value):
                self.assign(value, None)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if any(isinstance(part, ast.Starred) for part in parts):
                    made = None
                values = made if isinstance(made, tuple) and len(made) == len(parts) else [None] * len(parts)
                for part, value in zip(parts, values, strict=True):
                    self.assign(part, value)

    # ---- expressions
    def value(self, node: ast.expr) -> Any:
        """A TensorType, a number, a text, a tuple of such, or None."""
        if self.depth > _DEEPEST:
            return None
        self.depth += 1
        try:
            return self.expression(node)
        except Mismatch as error:
            self.found.errors[node.lineno, node.col_offset] = node, str(error)
            return None
        finally:
            self.depth -= 1

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return NOTHING if value is None else value if isinstance(value, (int, float, str)) else None
            case ast.Name(id=name):
                return self.variables.get(name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part) for part in parts)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(op, self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(op, self.value(left), self.value(right), node)
            case ast.Compare(left=left, comparators=[right]):
                return rules.FUNCTIONS["less"](rules.Arguments((self.value(left), self.value(right)), {})) if _tensors(
                    self.value(left), self.value(right)) else None
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript(value=value, slice=index):
                return self.element(self.value(value), index)
            case ast.Call():
                return self.call(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                self.value(test)
                return _both(self.value(body), self.value(other))
            case ast.NamedExpr(target=target, value=value):
                made = self.value(value)
                self.assign(target, made)
                return made
        return None

    def unary(self, op: ast.unaryop, made: Any) -> Any:
        if isinstance(made, (int, float)) and isinstance(op, ast.USub):
            return -made
        return made if isinstance(made, TensorType) and not isinstance(op, ast.Not) else None

    def operation(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        if not _tensors(left, right):
            return _numbers(op, left, right)
        if isinstance(op, ast.MatMult):
            return matmul(left, right) if isinstance(left, TensorType) and isinstance(right, TensorType) else UNKNOWN
        if isinstance(op, _BINARY):
            made = rules.binary(left, right)
            return rules.floating(rules.Arguments((made,), {})) if isinstance(op, ast.Div) else made
        return UNKNOWN

    def attribute(self, node: ast.Attribute) -> Any:
        if dotted(node) and dotted(node)[-1] in DTYPES and dotted(node)[0] not in self.variables:
            return node.attr  # ms.float32
        owner = self.value(node.value)
        if not isinstance(owner, TensorType):
            return None
        if node.attr in ("T", "mT"):
            return owner.reshaped(owner.dims and (owner.dims[::-1] if node.attr == "T" else (*owner.dims[:-2], *owner.dims[-2:][::-1])))
        if node.attr == "shape":
            return owner.dims
        if node.attr == "ndim":
            return None if owner.dims is None else len(owner.dims)
        return None

    def call(self, node: ast.Call) -> Any:
        values = tuple(self.value(argument) for argument in node.args if not isinstance(argument, ast.Starred))
        named = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        if len(values) != len(node.args) or len(named) != len(node.keywords):
            return None  # *args, **kwargs
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if isinstance(owner, TensorType):
                rule = rules.METHODS.get(node.func.attr)
                return rules.applied(rule, rules.Arguments((owner, *values), named)) if rule else UNKNOWN
            qualified = bool(dotted(node.func)) and owner is None and dotted(node.func)[0] not in self.variables
            rule = rules.QUALIFIED.get(node.func.attr) if qualified else None
        else:
            own = not isinstance(node.func, ast.Name) or node.func.id in self.variables or node.func.id not in self.imported
            rule = None if own else rules.FUNCTIONS.get(dotted(node.func)[0])
        name = dotted(node.func)
        if name[-1:] in (("tensor",), ("Tensor",)) and values and isinstance(values[0], TensorType):
            return values[0]
        return None if rule is None or name[0] == "self" else rules.applied(rule, rules.Arguments(values, named))

    def element(self, owner: Any, index: ast.expr) -> Any:
        if isinstance(owner, tuple) and isinstance(index, (ast.Constant, ast.UnaryOp)):
            at = self.value(index)
            return owner[at] if isinstance(at, int) and -len(owner) <= at < len(owner) else None
        if not isinstance(owner, TensorType):
            return None
        if owner.dims is None:
            return owner
        parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        return owner.reshaped(self.indexed(owner, parts))

    def indexed(self, owner: TensorType, parts: list[ast.expr]) -> tuple[Any, ...] | None:
        dims = list(owner.dims or ())
        takes = sum(not _is(part, None) and not _is(part, ...) for part in parts)
        if takes > len(dims):
            raise Mismatch(f"{takes} indices of {owner}, which has {len(dims)} dimensions")
        made: list[Any] = []
        for part in parts:
            if _is(part, None):
                made.append(1)
            elif _is(part, ...):
                for _ in range(len(dims) - takes):
                    made.append(dims.pop(0))
            elif isinstance(part, ast.Slice):
                made.append(self.sliced(dims.pop(0), part))
                takes -= 1
            else:
                at, extent = self.value(part), dims.pop(0)
                takes -= 1
                if not isinstance(at, int) or isinstance(at, bool):
                    return None  # an array of indices
                if isinstance(extent, int) and not -extent <= at < extent:
                    raise Mismatch(f"index {at} of {owner}: that dimension has {extent}")
        return tuple([*made, *dims])

    def sliced(self, extent: Any, part: ast.Slice) -> Any:
        bounds = [None if bound is None else self.value(bound) for bound in (part.lower, part.upper, part.step)]
        if part.lower is None and part.upper is None and part.step is None:
            return extent
        given = [bound for bound, node in zip(bounds, (part.lower, part.upper, part.step), strict=True) if node is not None]
        if not isinstance(extent, int) or not all(isinstance(bound, int) for bound in given) or bounds[2] == 0:
            return None
        return len(range(*slice(*bounds).indices(extent)))


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names a statement that is not followed may give another value."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
        elif isinstance(part, ast.alias):
            yield part.asname or part.name.partition(".")[0]
        elif isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name:
            yield part.name


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _tensors(*values: Any) -> bool:
    return any(isinstance(value, TensorType) for value in values)


def _numbers(op: ast.operator, left: Any, right: Any) -> Any:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    try:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.FloorDiv():
                return left // right
            case ast.Div():
                return left / right
            case ast.Mod():
                return left % right
    except (ArithmeticError, ValueError):
        return None
    return None


def _both(a: Any, b: Any) -> Any:
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return join(a, b)
    return a if a == b and type(a) is type(b) else None


def _joined(ends: Sequence[Variables]) -> Variables:
    first, *others = ends
    made = dict(first)
    for other in others:
        made = {name: _both(made.get(name), other.get(name)) for name in {**made, **other}}
    return made

