"""What the user calls a value: the variable it was assigned to, else the expression that made it."""
from __future__ import annotations

import ast
import functools
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _core
from ..frontends import names
from .places import Place, Texts

_NUMBER = re.compile(r"%(i?)([0-9]{1,9})")
# The same inside an expression: not where `%` is the operator, nor inside a text.
_IN_EXPRESSION = re.compile(r"""("[^"]*"|'[^']*')|((?:^|[-+*/%(\[{,:<>=!&|^~@]|\b(?:and|or|not|in|is|if|else))\s*)%(i?)([0-9]{1,9})\b""")
_SPELLED = re.compile(r"\b_value_(i?)([0-9]{1,9})\b")
_LONGEST = 40  # characters of an expression that stands for a name


def of_program(program: Any) -> dict[int, str]:
    """Instruction index -> the variable's name, for those values that were given one."""
    return _of_number(program.id)


@functools.lru_cache(maxsize=1024)
def _of_number(number: int) -> dict[int, str]:
    # Once per program: its places never change, while the text on disk may.
    program = _core.program(number)
    return {**names.names_for_program(program), **{i.index: i.value_name for i in program.instructions if i.value_name}}


def of_places(places: list[int]) -> dict[int, str]:
    """The same for values in the order they were recorded."""
    return names.names_for_places(places)


def number(local: int, inputs: int) -> str:
    """`%i0`, `%4`: the value of a program that has so many inputs, as the program's text calls it."""
    return f"%i{local}" if local < inputs else f"%{local - inputs + 1}"


def spelled(expression: str) -> str:
    """An expression with its `%4` as names Python can parse."""
    return _IN_EXPRESSION.sub(lambda m: m[1] or f"{m[2]}_value_{m[3]}{m[4]}", expression)


def unspelled(expression: str) -> str:
    return _SPELLED.sub(r"%\1\2", expression)


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def local(text: str, inputs: int) -> int:
    """What `number` was given for this text, -1 if it is no such name."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return -1
    found = int(match[2]) if match[1] else inputs + int(match[2]) - 1
    return found if (found < inputs) == bool(match[1]) else -1


def expression(where: Place, texts: Texts) -> str:
    """The expression's own text in parentheses, "" if it is long, of several lines or unknown."""
    if not where.path or where.backward or where.end_line not in (0, where.line) or not 0 < where.column < where.end_column:
        return ""
    text = texts.raw_line(where.path, where.line)
    units = text.encode("utf-16-le")  # columns count UTF-16 code units
    part = units[2 * (where.column - 1):2 * (where.end_column - 1)].decode("utf-16-le", "ignore").strip()
    return f"({part})" if 0 < len(part) <= _LONGEST else ""


_NO_MODELS = frozenset((type(None), bool, int, float, str, bytes, tuple, list, dict, set, type, types.ModuleType, types.FunctionType,
                        types.BuiltinFunctionType, types.MethodType))  # types of most variables
_CHILDREN = ("_params", "_parameters", "_cells", "_modules", "_buffers")  # where MindSpore and PyTorch keep what `self.name` finds


def attribute(owner: Any, name: str) -> Any:
    """`owner.name` read without running any of its code; None if it is computed."""
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    if name in own:
        return own[name]
    for children in _CHILDREN:
        found = own.get(children)
        if isinstance(found, dict) and name in found:
            return found[name]
    return None


def parameters(variables: dict[str, Any], most: int = 5000) -> Iterator[tuple[str, Any]]:
    """(path, tensor) of the parameters of all models that a frame can name, such as `net.fc1.weight`."""
    # An optimizer holds the model's parameters as well and comes last: a frame lists variables of its closures after all others.
    named = sorted(((name, value) for name, value in variables.items() if value.__class__ not in _NO_MODELS and _children(value)),
                   key=lambda item: _is_optimizer(item[1]))
    todo = named[::-1]
    seen: set[int] = set()
    while todo and len(seen) < most:
        path, owner = todo.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for children in _children(owner):
            for name, child in list(children.items()):
                if _children(child):
                    todo.append((f"{path}.{name}", child))
                elif child is not None:
                    yield f"{path}.{name}", child


def _is_optimizer(owner: Any) -> bool:
    return any(base.__name__ == "Optimizer" for base in type(owner).__mro__)


def _children(owner: Any) -> list[dict[str, Any]]:
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return []
    return [own[name] for name in _CHILDREN if isinstance(own.get(name), dict)] if type(own) is dict else []


def chains(tree: Any, variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(text, value) of the names and `a.b.c` chains in an expression's tree that start at one of the variables."""
    for text, root, path in _chains(tree):
        if root in variables:
            value = variables[root]
            for part in path:
                value = attribute(value, part)
            if value is not None or not path:
                yield text, value


@functools.lru_cache(maxsize=256)
def _chains(tree: Any) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """(text, name it starts at, attributes) of each."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.append((node.id, node.id, ()))
        elif isinstance(node, ast.Attribute):
            path, root = [node.attr], node.value
            while isinstance(root, ast.Attribute):
                path.insert(0, root.attr)
                root = root.value
            if isinstance(root, ast.Name):
                found.append((".".join([root.id, *path]), root.id, tuple(path)))
    return tuple(found)
