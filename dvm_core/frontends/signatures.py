"""Structure, shapes and dtypes of what a captured call is given and gives: calls are compared by them.

Nested tuples: ("tensor", dtype, shape) for a tensor; the type's name and the parts of a list or tuple; "dict" and an
("item", key, signature) for each of its items; the type's name and the value, or the name alone, for anything else."""
from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


def words(signature: Any) -> str:
    """A signature as a user reads it."""
    if _is_tensor(signature):
        return f"{signature[1]}[{','.join(map(str, signature[2]))}]"
    if _is_item(signature):
        return f"{signature[1]}: {words(signature[2])}"
    if isinstance(signature, tuple) and signature[:1] and signature[0] in ("tuple", "list", "dict"):
        return f"{signature[0]}({', '.join(words(item) for item in signature[1:])})"
    return str(signature[-1] if isinstance(signature, tuple) and signature else signature)


def signature(value: Any, describe: Callable[[Any], Hashable | None], values: bool = True) -> Hashable:
    """That of arguments or results. describe: ("tensor", dtype, shape) of a tensor, None for anything else. values: whether plain Python
    numbers and strings count with their value, or only their type."""
    found = describe(value)
    if found is not None:
        return found
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *(signature(item, describe, values) for item in value))
    if hasattr(type(value), "__dataclass_fields__") and not isinstance(value, dict):
        parts = ((name, getattr(value, name, None)) for name in type(value).__dataclass_fields__)
        return (type(value).__name__, *(("item", name, signature(item, describe, values)) for name, item in parts))
    if isinstance(value, dict):
        return ("dict", *(("item", str(key), signature(item, describe, values)) for key, item in value.items()))
    if values and isinstance(value, (bool, int, float, str, type(None))):
        return (type(value).__name__, value)
    return (type(value).__name__,)


def owner(args: tuple[Any, ...], inputs: Any) -> int:
    """The id of the object that a method was called for, as far as can be told from its arguments: one of another width has other results.
    inputs: (signature of args, ...)."""
    first = inputs[0][1:2]
    return id(args[0]) if first and len(first[0]) == 1 else 0


def without_sizes(signature: Hashable) -> Hashable:
    """The same for tensors of other sizes, but as many axes, and for other numbers."""
    if _is_tensor(signature):
        return (*signature[:2], len(signature[2]))  # type: ignore[index]
    if _is_item(signature):
        return (*signature[:2], without_sizes(signature[2]))  # type: ignore[index]
    if isinstance(signature, tuple) and len(signature) == 2 and signature[0] in ("int", "float") and isinstance(signature[1], (int, float)):
        return signature[:1]
    return tuple(map(without_sizes, signature)) if isinstance(signature, tuple) else signature


def _is_tensor(signature: Any) -> bool:
    return isinstance(signature, tuple) and len(signature) == 3 and signature[0] == "tensor" and isinstance(signature[2], tuple)


def _is_item(signature: Any) -> bool:
    return isinstance(signature, tuple) and len(signature) == 3 and signature[0] == "item" and isinstance(signature[1], str)
