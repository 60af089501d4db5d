"""Constants of a program's text: which expressions are one, and which ones two versions of a function differ in."""
from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Expressions whose value depends on nothing but the text. Names, calls and attributes are not among them.
_CONSTANT_NODES = (
    ast.Expression, ast.Constant, ast.UnaryOp, ast.UAdd, ast.USub, ast.Not, ast.Invert, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.FloorDiv, ast.Mod, ast.Pow, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Load,
)
_LARGEST_POWER = 1024  # `9 ** 9 ** 9` is a constant, too, but not one to compute for a look
_MOST_BITS = 1 << 14  # of an integer that is computed; `(9 ** 999) ** 999` has more


class NotConstant(ValueError):
    """The expression's value is not known from the text alone."""


def value_of(node: ast.expr) -> Any:
    """The value of a constant expression (numbers, strings, None, arithmetic and containers of them). Raises NotConstant."""
    parts = list(ast.walk(node))
    if not all(isinstance(part, _CONSTANT_NODES) for part in parts):
        raise NotConstant(ast.unparse(node))
    for part in parts:
        if isinstance(part, ast.BinOp) and not _small(part):
            raise NotConstant(ast.unparse(node))
    try:
        return eval(compile(ast.Expression(node), "<constant>", "eval"), {"__builtins__": {}})
    except Exception as error:  # division by zero, unhashable set member, ...
        raise NotConstant(f"{ast.unparse(node)}: {error}") from None


def _small(node: ast.BinOp) -> bool:
    """Whether the operation's result is small, whatever its parts are made of."""
    if isinstance(node.op, (ast.Mult, ast.Mod)):  # repeating a text or a list may be huge, and so may `"%99999999d" % 1`
        parts = list(ast.walk(node))
        if any(isinstance(part, (ast.List, ast.Tuple)) or isinstance(getattr(part, "value", None), (str, bytes)) for part in parts):
            return False
    return _bits(node) <= _MOST_BITS


def _bits(node: ast.AST) -> float:
    """No fewer bits than an integer value of the expression has; infinity for a power that is not to be computed."""
    if isinstance(node, ast.Constant):
        return node.value.bit_length() if isinstance(node.value, int) else 1
    if isinstance(node, ast.UnaryOp):
        return _bits(node.operand) + 1
    if not isinstance(node, ast.BinOp):
        return 1
    left, right = _bits(node.left), _bits(node.right)
    if isinstance(node.op, ast.Pow):
        exponent = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
        number = exponent.value if isinstance(exponent, ast.Constant) else None
        if not isinstance(number, (int, float)) or abs(number) > _LARGEST_POWER:
            return math.inf
        return left * max(1, abs(number))
    return left + right if isinstance(node.op, ast.Mult) else max(left, right) + 1


def is_constant(node: ast.expr | None) -> bool:
    if node is None:
        return False
    try:
        value_of(node)
    except NotConstant:
        return False
    return True


@dataclass(frozen=True)
class Replaced:
    """One constant written differently in two versions of the same code."""
    old: str
    new: str
    line: int  # in the new text


def replaced(old: ast.AST, new: ast.AST) -> list[Replaced] | None:
    """The constants in which two trees differ, None if they differ in more than that. A sign counts as part of its number."""
    found: list[Replaced] = []
    return found if _compare(old, new, found) else None


def _literal(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        node = node.operand
    return isinstance(node, ast.Constant)


def _compare(old: ast.AST, new: ast.AST, found: list[Replaced]) -> bool:
    if _literal(old) and _literal(new):
        before, after = ast.unparse(old), ast.unparse(new)
        if before != after:
            found.append(Replaced(before, after, getattr(new, "lineno", 0)))
        return True
    if type(old) is not type(new):
        return False
    pairs = zip(_fields(old), _fields(new), strict=True)
    return all(_same_field(a, b, found) for a, b in pairs)


def _fields(node: ast.AST) -> Iterator[Any]:
    for name in node._fields:
        yield getattr(node, name, None)


def _same_field(old: Any, new: Any, found: list[Replaced]) -> bool:
    if isinstance(old, ast.AST) and isinstance(new, ast.AST):
        return _compare(old, new, found)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_same_field(a, b, found) for a, b in zip(old, new, strict=True))
    return type(old) is type(new) and old == new
