"""Expressions over tensors: parsed, checked against a list of what is allowed, computed on NumPy views. Nothing of the program is called.

Allowed are names that the stop can see, constants, operators, comparisons, indexing, and the functions and methods listed below."""
from __future__ import annotations

import ast
import copy
import functools
import operator
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

import numpy as np
from dvm_wire import syntax
from dvm_wire.filters import NUMPY

from . import large
from .bounds import Refused, check_call, check_operands, check_result, gathered, refuse_large

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}

# Functions that only look. `np.`, `ops.`, `torch.` and the like may stand in front.
FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in NUMPY}
FUNCTIONS.update({
    "len": len, "float": float, "int": int, "bool": bool, "str": str, "repr": repr, "norm": np.linalg.norm, "sorted": sorted,
    "max": lambda a, *more, **how: max(a, *more) if more and np.ndim(a) == 0 else np.max(a, *more, **how),
    "min": lambda a, *more, **how: min(a, *more) if more and np.ndim(a) == 0 else np.min(a, *more, **how),
    "sigmoid": lambda a: 1 / (1 + np.exp(-np.asarray(a, np.float64))), "relu": lambda a: np.maximum(a, 0),
})
_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
# What modules name besides functions; a dtype is as good as its name.
CONSTANTS: dict[str, Any] = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "tau": 2 * np.pi, "newaxis": None,
                             **{name: name for name in _DTYPES}}
_PREFIXES = frozenset(("np", "numpy", "dvm", "ops", "mint", "ms", "mindspore", "torch", "F", "math"))
METHODS = frozenset("""all any argmax argmin argsort astype clip cumsum diagonal dot flatten item max mean min nonzero prod ravel reshape
    round squeeze std sum swapaxes tolist transpose var""".split())
AS_METHODS: dict[str, Callable[..., Any]] = {  # what frameworks' tensors have and NumPy's arrays have not, or spell otherwise
    "abs": np.abs, "exp": np.exp, "isinf": np.isinf, "isnan": np.isnan, "log": np.log, "norm": np.linalg.norm, "sqrt": np.sqrt,
    "asnumpy": lambda a: a, "cpu": lambda a: a, "detach": lambda a: a, "numpy": lambda a: a,
    "dim": lambda a: a.ndim, "numel": lambda a: a.size, "size": lambda a: a.shape, "t": lambda a: a.T,
    "permute": lambda a, *axes: np.transpose(a, axes), "view": lambda a, *shape: a.reshape(*shape),
}
ATTRIBUTES = frozenset(("shape", "dtype", "ndim", "size", "T", "nbytes", "strides", "itemsize", "real", "imag"))
_LONGEST = 80  # characters of a part that is named
_TEXT_METHODS = frozenset(("startswith", "endswith", "lower", "upper", "strip", "keys", "values", "items", "get"))


@functools.lru_cache(maxsize=256)
def parsed(expression: str) -> ast.expr:
    """An expression's tree, which nobody changes. Raises Refused."""
    try:
        return syntax.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"not an expression: {getattr(error, 'msg', error)}") from None


def check(node: ast.AST, names: Collection[str]) -> None:
    """Raises Refused for what is not allowed in an expression, whatever the values of the names will be."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and ast.unparse(node) in names:
        return
    if isinstance(node, ast.expr) and not hasattr(_Evaluator, "_" + type(node).__name__):
        raise Refused(f"`{ast.unparse(node)}` cannot be evaluated at a tensor line")
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        parts.remove(node.func)
        if isinstance(node.func, ast.Attribute) and not prefixed(node.func):
            parts.append(node.func.value)
            if node.func.attr not in METHODS | AS_METHODS.keys() | _TEXT_METHODS:
                raise _no_method(node.func.attr)
        elif not prefixed(node.func) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise _no_function(node.func)
    elif is_constant(node, ()):
        return
    elif isinstance(node, ast.Attribute) and node.attr not in ATTRIBUTES:
        raise _no_attribute(node.attr)
    for part in parts:
        check(part, names)


def is_constant(node: ast.AST, names: Container[str]) -> bool:
    """Whether it is a constant of a module, such as `np.pi`. names: of values, which may be called as modules are."""
    return (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _PREFIXES
            and node.value.id not in names and node.attr in CONSTANTS)


def prefixed(target: ast.AST, names: Container[str] = ()) -> bool:
    """Whether it is the dotted name of a function, such as `np.max`."""
    prefix = target
    while isinstance(prefix, ast.Attribute):
        prefix = prefix.value
    return (isinstance(target, ast.Attribute) and isinstance(prefix, ast.Name) and prefix.id in _PREFIXES and prefix.id not in names
            and target.attr in FUNCTIONS)


def _no_attribute(name: str) -> Refused:
    return Refused(f"`.{name}` is not among what a tensor line knows: {', '.join(sorted(ATTRIBUTES))}, and methods")


def _no_method(name: str) -> Refused:
    return Refused(f"`.{name}()` is not called at a tensor line; allowed: {', '.join(sorted({*METHODS, *AS_METHODS}))}")


def _no_function(target: ast.AST) -> Refused:
    return Refused(f"`{ast.unparse(target)}` is not called at a tensor line; allowed: {', '.join(sorted(FUNCTIONS))}")


def evaluate(expression: str, names: Mapping[str, Any], *, elementwise: bool = False) -> Any:
    """The value of an expression: an array, or a plain Python value. names: arrays and plain values; anything else is not to be in it.
    elementwise: `and`, `or`, `not`, `in` and `if` are asked of each element. Raises Refused."""
    tree = parsed(expression)
    try:
        with np.errstate(all="ignore"):
            return (_Elementwise if elementwise else _Evaluator)(names).value(tree)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None


class _Evaluator:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def value(self, node: ast.AST) -> Any:
        handler = getattr(self, "_" + type(node).__name__, None)
        if handler is None:
            raise Refused(f"`{ast.unparse(node)}` cannot be evaluated at a tensor line")
        try:
            result = handler(node)
        except (Refused, RecursionError, MemoryError):
            raise
        except Exception as error:  # the innermost part that fails is named
            raise Refused(f"`{_cut(ast.unparse(node))}`: {type(error).__name__}: {error}") from None
        if not isinstance(node, (ast.Name, ast.Constant)):
            check_result(node, result)
        return result

    def _Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _Name(self, node: ast.Name) -> Any:
        if node.id in self._names:
            return self._names[node.id]
        raise Refused(f"no tensor `{node.id}` here; there are {', '.join(sorted(self._names)[:12]) or 'none'}")

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        check_operands(node, value)
        return bool(not _truth(value)) if isinstance(node.op, ast.Not) else _UNARY[type(node.op)](value)

    def _BinOp(self, node: ast.BinOp) -> Any:
        handler = _BINARY.get(type(node.op))
        if handler is None:
            raise Refused(f"`{ast.unparse(node)}` cannot be evaluated at a tensor line")
        left, right = self.value(node.left), self.value(node.right)
        check_operands(node, left, right)
        return handler(left, right)

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if _truth(value) != isinstance(node.op, ast.And):
                break
        return value

    def _Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
                check_operands(node, left, right)
            step = _COMPARE[type(op)](left, right)
            result = step if result is True else np.logical_and(result, step)
            left = right
        return result

    def _IfExp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if _truth(self.value(node.test)) else node.orelse)

    def _Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.value(part) for part in node.elts)

    def _List(self, node: ast.List) -> Any:
        return [self.value(part) for part in node.elts]

    def _Subscript(self, node: ast.Subscript) -> Any:
        encoded = self._encoded(node.value)
        owner, index = self.value(node.value) if encoded is None else encoded[0], self.value(node.slice)
        if isinstance(owner, np.ndarray):
            refuse_large(node, gathered(owner, index))
        return owner[index] if encoded is None else encoded[1](np.asarray(owner[index]))

    def _encoded(self, node: ast.AST) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None:
        """The elements of a name, or of `grad(h)`, as they lie in memory, and what makes numbers of them; None for what is no tensor."""
        name = node.id if isinstance(node, ast.Name) else ast.unparse(node) if isinstance(node, ast.Call) else None
        find = getattr(self._names, "encoded", None)
        return find(name) if find is not None and name in self._names else None

    def _Slice(self, node: ast.Slice) -> Any:
        return slice(*(None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)))

    def _Attribute(self, node: ast.Attribute) -> Any:
        whole = ast.unparse(node)
        if whole in self._names:  # a value that is called `self.w`
            return self._names[whole]
        if is_constant(node, self._names):
            return CONSTANTS[node.attr]
        owner = self.value(node.value)
        if isinstance(owner, (np.ndarray, np.generic)) and node.attr in ATTRIBUTES:
            return getattr(owner, node.attr)
        raise _no_attribute(node.attr)

    def _Call(self, node: ast.Call) -> Any:
        whole = ast.unparse(node)
        if whole in self._names:  # a value that is called `grad(h)`
            return self._names[whole]
        if isinstance(node.func, ast.Name) and node.func.id == "grad":
            known = ", ".join(sorted(name for name in self._names if name.startswith("grad("))[:12])
            raise Refused(f"there is no `{whole}` here" + (f"; there are {known}" if known else ", nor another gradient"))
        found = self._of_large(node)
        if found is not None:
            return found
        function, owner = self._function(node)
        arguments = [self.value(part) for part in node.args]
        keywords = {part.arg: self.value(part.value) for part in node.keywords if part.arg}
        if any(part.arg is None for part in node.keywords) or "out" in keywords:
            raise Refused(f"`{ast.unparse(node)}` cannot be evaluated at a tensor line")
        operands = [*owner, *arguments, *keywords.values()]
        check_operands(node, *operands)
        check_call(node, operands, keywords)
        return function(*arguments, **keywords)

    def _of_large(self, node: ast.Call) -> Any:
        """The value of a reduction over elementwise operations on tensors too large to be computed in one piece; None if it is none."""
        asked = large.reduction(node, self._prefixed)
        if asked is None:
            return None
        leaves = large.Leaves(self._leaf)
        whole = leaves.visit(copy.deepcopy(asked[1]))
        if not leaves.large or not leaves.suits:
            return None
        return large.reduced(asked[0], leaves, lambda names: _Evaluator(names).value(whole))

    def _leaf(self, node: ast.expr) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None:
        if not isinstance(node, ast.Subscript):
            return self._encoded(node)
        encoded = self._encoded(node.value)
        if encoded is None:
            return None
        index = self.value(node.slice)
        return None if gathered(encoded[0], index) else (np.asarray(encoded[0][index]), encoded[1])

    def _prefixed(self, target: ast.Attribute) -> bool:
        return prefixed(target, self._names)

    def _function(self, node: ast.Call) -> tuple[Callable[..., Any], list[Any]]:
        """What is called, and the value it is a method of, if it is one."""
        target = node.func
        if isinstance(target, ast.Name) and target.id in FUNCTIONS:
            return FUNCTIONS[target.id], []
        if isinstance(target, ast.Attribute):
            if self._prefixed(target):
                return FUNCTIONS[target.attr], []
            owner = self.value(target.value)
            return self._method(owner, target.attr), [owner]
        raise _no_function(target)

    @staticmethod
    def _method(owner: Any, name: str) -> Callable[..., Any]:
        if isinstance(owner, (np.ndarray, np.generic)):
            if name in METHODS and hasattr(owner, name):
                return getattr(owner, name)
            if name in AS_METHODS:
                return lambda *a, **k: AS_METHODS[name](owner, *a, **k)
        elif type(owner) in (str, dict) and name in _TEXT_METHODS:
            return getattr(owner, name)
        raise _no_method(name)


class _Elementwise(_Evaluator):
    """Names are columns: every answer is one for each row."""

    def _BoolOp(self, node: ast.BoolOp) -> Any:
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return functools.reduce(join, [self.value(part) for part in node.values])

    def _UnaryOp(self, node: ast.UnaryOp) -> Any:
        return np.logical_not(self.value(node.operand)) if isinstance(node.op, ast.Not) else super()._UnaryOp(node)

    def _IfExp(self, node: ast.IfExp) -> Any:
        return np.where(self.value(node.test), self.value(node.body), self.value(node.orelse))

    def _Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return super()._Compare(node)
        left, right = self.value(node.left), self.value(node.comparators[0])
        if isinstance(left, str) and isinstance(right, np.ndarray):  # part of a text
            found = np.array([left in str(text) for text in right], bool)
        elif isinstance(right, tuple):
            found = np.array([item in right for item in np.atleast_1d(left).tolist()], bool)
        else:
            raise Refused(f"`{ast.unparse(node)}`: `in` takes a text and a column of texts, or a column and values in parentheses")
        return np.logical_not(found) if isinstance(node.ops[0], ast.NotIn) else found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _truth(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.size != 1:
        raise Refused(f"a tensor of shape {list(value.shape)} is neither true nor false; say .any() or .all()")
    return bool(value)


def is_plain(value: Any) -> bool:
    """Whether a Python value may be looked at in an expression: numbers, texts, and small containers of them."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes) or isinstance(value, np.generic):
        return True
    if type(value) in (tuple, list) and len(value) <= 64:
        return all(is_plain(item) for item in value)
    return type(value) is dict and len(value) <= 64 and all(type(k) is str and is_plain(v) for k, v in value.items())
