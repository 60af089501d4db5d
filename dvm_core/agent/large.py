"""`abs(h).max()` where h is too large for `abs(h)` to be made: computed block by block, a reduction of elementwise operations."""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .blocks import blocks
from .bounds import MOST_ELEMENTS, Refused

ELEMENTWISE = frozenset("""abs ceil clip cos exp floor isfinite isinf isnan log log10 log1p log2 maximum minimum relu round sigmoid sign sin
    sqrt square tanh where cpu detach numpy asnumpy float""".split())
_NODES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
_ROUNDED = frozenset(("mean", "norm", "std", "sum", "var"))  # to the elements' own dtype, as NumPy does


class _Moments:
    """Mean and variance in float64, joined over blocks."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, part: np.ndarray) -> None:
        exact = part.astype(np.float64)
        mean, count = exact.mean(), self.count + exact.size
        away = mean - self.mean
        self.squares += float(np.square(exact - mean).sum() + away * away * (self.count * exact.size / count))
        self.mean += float(away * (exact.size / count))
        self.count = count


def _moments(parts: Iterable[np.ndarray]) -> _Moments:
    found = _Moments()
    for part in parts:
        found.add(part)
    return found


def _joined(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda parts: function(np.stack([function(part) for part in parts]))


def _sum(parts: Any) -> Any:
    return np.sum(np.stack([np.sum(part, dtype=np.float64 if part.dtype.kind == "f" else None) for part in parts]))


# What is asked of all elements -> its value from blocks of them.
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "max": _joined(np.max), "min": _joined(np.min), "any": _joined(np.any), "all": _joined(np.all), "sum": _sum,
    "nanmax": _joined(np.nanmax), "nanmin": _joined(np.nanmin), "count_nonzero": lambda parts: sum(int(np.count_nonzero(p)) for p in parts),
    "mean": lambda parts: _moments(parts).mean, "var": lambda parts: (m := _moments(parts)).squares / m.count,
    "std": lambda parts: np.sqrt((m := _moments(parts)).squares / m.count),
    "norm": lambda parts: np.sqrt(_sum(np.square(np.abs(part.astype(np.float64))) for part in parts)),
}


def reduction(call: ast.Call, prefixed: Callable[[ast.Attribute], bool]) -> tuple[str, ast.expr] | None:
    """What is reduced, and by which name, in `x.max()`, `max(x)` or `np.max(x)`; None for anything else. prefixed: is it `np.max`?"""
    target = call.func
    if call.keywords or any(isinstance(part, ast.Starred) for part in call.args):
        return None
    if isinstance(target, ast.Attribute) and not prefixed(target):
        return (target.attr, target.value) if target.attr in REDUCTIONS and not call.args else None
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return (name, call.args[0]) if name in REDUCTIONS and len(call.args) == 1 else None


class Leaves(ast.NodeTransformer):
    """Puts names in place of an expression's tensors. fetch: the elements of a name, of part of one, or of `grad(h)`, and how to decode
    them; None for what is no tensor."""

    def __init__(self, fetch: Callable[[ast.expr], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None]) -> None:
        self.tensors: dict[str, tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]] = {}
        self.suits = True  # elementwise throughout
        self._fetch = fetch

    def visit(self, node: ast.AST) -> Any:
        found = self._fetch(node) if isinstance(node, (ast.Name, ast.Subscript, ast.Call)) else None
        if found is not None:
            name = f"_tensor_{len(self.tensors)}"
            self.tensors[name] = found
            return ast.Name(name, ast.Load())
        if isinstance(node, ast.Call):
            target = node.func
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            self.suits = self.suits and name in ELEMENTWISE and not node.keywords
            if isinstance(target, ast.Attribute):
                target = ast.Attribute(self.visit(target.value), target.attr, target.ctx)
            return ast.Call(target, [self.visit(part) for part in node.args], node.keywords)
        self.suits = self.suits and isinstance(node, _NODES) and not isinstance(node, ast.MatMult)
        return self.generic_visit(node)

    @property
    def large(self) -> bool:
        return any(array.size > MOST_ELEMENTS for array, _ in self.tensors.values())


def reduced(name: str, leaves: Leaves, compute: Callable[[dict[str, np.ndarray]], Any]) -> Any:
    """The reduction by that name of what `compute` makes of each block. Raises Refused where tensors differ in shape."""
    shapes = {array.shape for array, _ in leaves.tensors.values() if array.size != 1}
    if len(shapes) != 1:
        raise Refused(f"tensors of shapes {', '.join(str(list(shape)) for shape in sorted(shapes))} are too large to be computed together; "
                      f"take a part")
    single = {key: decode(array) for key, (array, decode) in leaves.tensors.items() if array.size == 1}
    rest = {key: pair for key, pair in leaves.tensors.items() if key not in single}
    by_rows = not all(array.flags.c_contiguous for array, _ in rest.values())
    kinds: list[np.dtype] = []

    def parts() -> Iterator[np.ndarray]:
        for taken in zip(*(blocks(array, by_rows=by_rows) for array, _ in rest.values()), strict=True):
            part = {key: decode(block) for (key, (_, decode)), (_, block) in zip(rest.items(), taken, strict=True)}
            made = np.asarray(compute({**single, **part}))
            kinds[:] = [made.dtype]
            yield made

    value = REDUCTIONS[name](parts())
    return kinds[0].type(value) if name in _ROUNDED and kinds[0].kind == "f" else value
