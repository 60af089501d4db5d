"""Gradients of our instructions: one line each, one formula per operand.

A formula gets the emitter `e`, the gradient `g` of the result and the node `n`: n.a, n.b, n.c operands (a value, or a float if it is
an immediate), n.r the result, n.attrs, n.shape the result's shape. What it returns is summed down to the operand's shape where the
instruction broadcast it. None instead of a formula: no gradient goes that way. Instructions in CONSTANT have none at all.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import functions
from .emit import CODE, F32, HALVES, I64, Emitter
from .windows import transposed


@dataclass(slots=True)
class Node:
    """An instruction, or a group of them, as a rule sees it."""

    operands: tuple[Any, ...]  # value ids, floats where the instruction has an immediate
    r: int  # the result
    attrs: tuple[Any, ...]
    shape: tuple[int, ...]  # of the result
    saved: tuple[int, ...] = ()  # groups: inner values their rule reads

    @property
    def a(self) -> Any:
        return self.operands[0]

    @property
    def b(self) -> Any:
        return self.operands[1]

    @property
    def c(self) -> Any:
        return self.operands[2]


Formula = Callable[[Emitter, int, Node], "int | None"]
Rule = tuple["Formula | None", ...]


# ---- pieces the table uses -----------------------------------------------------------------------------------------------------------

def _zero(e: Emitter, g: int) -> int:
    return e.full(0.0, (), e.dtype(g))


def _where(e: Emitter, condition: int, g: int) -> int:
    return e.select(condition, g, _zero(e, g))  # not g * condition: inf * 0 is NaN


def _where_not(e: Emitter, condition: int, g: int) -> int:
    return e.select(condition, _zero(e, g), g)


def _pow_base(e: Emitter, g: int, n: Node) -> int | None:
    if not isinstance(n.b, float):
        return e.mul(g, e.mul(n.b, e.pow(n.a, e.sub(n.b, 1.0))))
    if n.b == 0.0:
        return None
    if n.b == 2.0:
        return e.mul(e.mul(g, 2.0), n.a)
    return e.mul(e.mul(g, float(n.b)), e.pow(n.a, n.b - 1.0))


def _pow_exponent(e: Emitter, g: int, n: Node) -> int:
    log = e.log(n.a) if not isinstance(n.a, float) else math.log(n.a) if n.a > 0 else math.nan
    return e.mul(e.mul(g, n.r), log)


def _expand(e: Emitter, g: int, n: Node) -> int:
    # The gradient of a reduction, with the reduced axes back as 1.
    keepdims, *axes = n.attrs
    if keepdims:
        return g
    return e.reshape(g, tuple(1 if axis in axes else extent for axis, extent in enumerate(e.shape(n.a))))


def _extent(e: Emitter, n: Node) -> int:
    return max(1, math.prod(e.shape(n.a)[axis] for axis in n.attrs[1:]))  # of nothing: there is no element to give a share to


def _share(e: Emitter, g: int, n: Node) -> int:
    # In float32 for halves, which hold neither every extent nor one over it.
    dtype = e.dtype(g)
    return e.cast(e.mul(e.cast(g, F32 if dtype in HALVES else dtype), 1 / _extent(e, n)), dtype)


def _extreme(e: Emitter, g: int, n: Node) -> int:
    # Elements that tie share the gradient.
    result = n.r if n.attrs[0] else e.reshape(n.r, tuple(1 if axis in n.attrs[1:] else d for axis, d in enumerate(e.shape(n.a))))
    ties = e.equal(n.a, result)
    count = e.sum(e.cast(ties, e.dtype(g)), n.attrs[1:], keepdims=True)
    return _where(e, ties, e.div(_expand(e, g, n), count))


def _product(e: Emitter, g: int, n: Node) -> int:
    # r / a, but where a is 0: there the product of the others, unless another one is 0 too.
    axes = n.attrs[1:]
    zero = e.equal(n.a, 0.0)
    zeros = e.sum(e.cast(zero, e.dtype(g)), axes, keepdims=True)
    others = e.prod(e.select(zero, e.full(1.0, (), e.dtype(g)), n.a), axes, keepdims=True)
    share = e.select(zero, _where(e, e.equal(zeros, 1.0), others), _where(e, e.equal(zeros, 0.0), e.div(others, n.a)))
    return e.mul(_expand(e, g, n), share)


def _scattered(e: Emitter, g: int, n: Node) -> int:
    # SCATTER's new slices: one that another was written over gets nothing.
    shape, axis = e.shape(n.b), n.attrs[0]
    position = e.reshape(e.iota((math.prod(shape),), 0, I64), shape)
    last = e.gather(e.scatter(e.full(0.0, (n.shape[axis],), I64), n.b, position, 0), n.b, 0)
    stays = e.reshape(e.equal(last, position), shape + (1,) * (len(n.shape) - 1 - axis))
    return _where(e, stays, e.gather(g, n.b, axis))


def _scattered_elements(e: Emitter, g: int, n: Node) -> int:
    shape, axis = e.shape(n.b), n.attrs[0]
    position = e.iota(shape, axis, I64)
    last = e.gather_elements(e.scatter_elements(e.full(0.0, n.shape, I64), n.b, position, axis), n.b, axis)
    return _where(e, e.equal(last, position), e.gather_elements(g, n.b, axis))


def _matmul_a(e: Emitter, g: int, n: Node) -> int:
    transpose_a, transpose_b = map(bool, n.attrs)
    return e.matmul(n.b, g, transpose_b, True) if transpose_a else e.matmul(g, n.b, False, not transpose_b)


def _matmul_b(e: Emitter, g: int, n: Node) -> int:
    transpose_a, transpose_b = map(bool, n.attrs)
    return e.matmul(g, n.a, True, transpose_a) if transpose_b else e.matmul(n.a, g, not transpose_a, False)


def _max_pool(e: Emitter, g: int, n: Node) -> int:
    return e.pool("MAX_POOL2D_GRAD", (n.a, g), n.attrs, e.shape(n.a))


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def concat_part(e: Emitter, g: int, n: Node, index: int) -> int:
    """Gradient of CONCAT's operand number `index`."""
    axis = n.attrs[0]
    start = sum(e.shape(operand)[axis] for operand in n.operands[:index])
    shape = e.shape(n.operands[index])
    return e.slice(g, tuple(v for i in range(len(shape)) for v in (start if i == axis else 0, 1)), shape)


# ---- the table -----------------------------------------------------------------------------------------------------------------------

_TABLE: dict[str, Rule] = {
    "ADD": (lambda e, g, n: g, lambda e, g, n: g),
    "SUB": (lambda e, g, n: g, lambda e, g, n: e.neg(g)),
    "MUL": (lambda e, g, n: e.mul(g, n.b), lambda e, g, n: e.mul(g, n.a)),
    "DIV": (lambda e, g, n: e.div(g, n.b), lambda e, g, n: e.neg(e.div(e.mul(g, n.r), n.b))),
    "POW": (_pow_base, _pow_exponent),
    # A tie goes to the first operand, as in MindSpore; relu is MAXIMUM(0, a), whose gradient at 0 is 0.
    "MAXIMUM": (lambda e, g, n: _where(e, e.greater_equal(n.a, n.b), g), lambda e, g, n: _where(e, e.less(n.a, n.b), g)),
    "MINIMUM": (lambda e, g, n: _where(e, e.less_equal(n.a, n.b), g), lambda e, g, n: _where(e, e.greater(n.a, n.b), g)),
    "NEG": (lambda e, g, n: e.neg(g),),
    "ABS": (lambda e, g, n: e.mul(g, e.sign(n.a)),),
    "EXP": (lambda e, g, n: e.mul(g, n.r),),
    "LOG": (lambda e, g, n: e.div(g, n.a),),
    "LOG1P": (lambda e, g, n: e.div(g, e.add(n.a, 1.0)),),
    "EXPM1": (lambda e, g, n: e.mul(g, e.add(n.r, 1.0)),),
    "SQRT": (lambda e, g, n: e.div(e.mul(g, 0.5), n.r),),
    "RSQRT": (lambda e, g, n: e.mul(e.mul(g, -0.5), e.mul(n.r, e.mul(n.r, n.r))),),
    "RECIPROCAL": (lambda e, g, n: e.neg(e.mul(g, e.mul(n.r, n.r))),),
    "TANH": (lambda e, g, n: e.mul(g, e.sub(1.0, e.mul(n.r, n.r))),),
    "ERF": (lambda e, g, n: e.mul(e.mul(g, 2 / math.sqrt(math.pi)), e.exp(e.neg(e.mul(n.a, n.a)))),),
    "SIGMOID": (lambda e, g, n: e.mul(g, e.mul(n.r, e.sub(1.0, n.r))),),
    "SIN": (lambda e, g, n: e.mul(g, e.cos(n.a)),),
    "COS": (lambda e, g, n: e.neg(e.mul(g, e.sin(n.a))),),
    "TAN": (lambda e, g, n: e.mul(g, e.add(e.mul(n.r, n.r), 1.0)),),
    "ATAN": (lambda e, g, n: e.div(g, e.add(e.mul(n.a, n.a), 1.0)),),
    "FMOD": (lambda e, g, n: g, lambda e, g, n: e.neg(e.mul(g, e.trunc(e.div(n.a, n.b))))),
    "REMAINDER": (lambda e, g, n: g, lambda e, g, n: e.neg(e.mul(g, e.floor(e.div(n.a, n.b))))),
    "COPY": (lambda e, g, n: g,),
    "CAST": (lambda e, g, n: e.cast(g, e.dtype(n.a)),),
    "SELECT": (None, lambda e, g, n: _where(e, n.a, g), lambda e, g, n: _where_not(e, n.a, g)),
    "SUM": (lambda e, g, n: e.broadcast(_expand(e, g, n), e.shape(n.a)),),
    "MEAN": (lambda e, g, n: e.broadcast(_expand(e, _share(e, g, n), n), e.shape(n.a)),),
    "MAX": (_extreme,),
    "MIN": (_extreme,),
    "PROD": (_product,),
    "MATMUL": (_matmul_a, _matmul_b),
    "CONV2D": (lambda e, g, n: transposed(e, g, n.b, n.attrs, e.shape(n.a)),
               lambda e, g, n: e.conv2d_weight(n.a, g, n.attrs, e.shape(n.b))),
    "CONV2D_WEIGHT": (lambda e, g, n: transposed(e, n.b, g, n.attrs, e.shape(n.a)),
                      lambda e, g, n: e.conv2d(n.a, g, n.attrs, e.shape(n.b))),
    "MAX_POOL2D": (lambda e, g, n: _max_pool(e, g, n) if len(n.operands) == 1 else None, lambda e, g, n: _max_pool(e, g, n)),
    "MAX_POOL2D_GRAD": (None, lambda e, g, n: e.pool("MAX_POOL2D", (n.a, g), n.attrs, e.shape(n.b))),
    "AVG_POOL2D": (lambda e, g, n: e.pool("AVG_POOL2D_GRAD", (g,), n.attrs, e.shape(n.a)),),
    "AVG_POOL2D_GRAD": (lambda e, g, n: e.pool("AVG_POOL2D", (g,), n.attrs, e.shape(n.a)),),
    "RESHAPE": (lambda e, g, n: e.reshape(g, e.shape(n.a)),),
    "TRANSPOSE": (lambda e, g, n: e.transpose(g, _inverse(n.attrs)),),
    "SLICE": (lambda e, g, n: e.unslice(g, n.attrs, e.shape(n.a)),),
    "UNSLICE": (lambda e, g, n: e.slice(g, n.attrs, e.shape(n.a)),),
    "BROADCAST": (lambda e, g, n: g,),
    "GATHER": (lambda e, g, n: e.scatter_add(g, n.b, n.attrs[0], e.shape(n.a)), None),
    "SCATTER_ADD": (lambda e, g, n: e.gather(g, n.b, n.attrs[0]), None),
    "PAD": (lambda e, g, n: e.slice(g, tuple(v for before in n.attrs for v in (before, 1)), e.shape(n.a)),),
    "CUMSUM": (lambda e, g, n: e.cumsum(g, n.attrs[0], n.attrs[1], not n.attrs[2]),),
    "SORT": (lambda e, g, n: e.scatter_add_elements(g, e.argsort(n.a, *n.attrs), n.attrs[0], n.shape),),
    "GATHER_ELEMENTS": (lambda e, g, n: e.scatter_add_elements(g, n.b, n.attrs[0], e.shape(n.a)), None),
    "SCATTER_ADD_ELEMENTS": (lambda e, g, n: e.gather_elements(g, n.b, n.attrs[0]), None),
    "SCATTER": (lambda e, g, n: e.scatter(g, n.b, e.full(0.0, e.shape(n.c), e.dtype(g)), n.attrs[0]), None, _scattered),
    "SCATTER_ELEMENTS": (lambda e, g, n: e.scatter_elements(g, n.b, e.full(0.0, e.shape(n.c), e.dtype(g)), n.attrs[0]), None,
                         _scattered_elements),
    "CONCAT": (),  # one formula for any number of operands: concat_part
}
RULES: dict[int, Rule] = {CODE[name]: rule for name, rule in _TABLE.items()}
CONCAT = CODE["CONCAT"]

CONSTANT = frozenset(CODE[name] for name in (
    "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "FLOOR", "CEIL",
    "ROUND", "TRUNC", "IS_FINITE", "IS_NAN", "IS_INF", "SIGN", "ONE_HOT", "FULL", "IOTA", "BIT_NOT", "BIT_AND", "BIT_OR", "BIT_XOR",
    "SHIFT_LEFT", "SHIFT_RIGHT", "ARGMAX", "ARGMIN", "ARGSORT", "TOPK", "RANDOM"))

# Instructions cheap enough to be repeated in the backward program instead of being kept in memory from the forward one.
COSTLY = frozenset(CODE[name] for name in ("ONE_HOT", "ARGMAX", "ARGMIN", "ARGSORT", "TOPK", "RANDOM"))
CHEAP = CONSTANT - COSTLY | frozenset(CODE[name] for name in (
    "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "NEG", "ABS", "COPY", "CAST", "SELECT"))


# ---- groups: several instructions with one rule, shorter and more accurate than the chain of theirs ----------------------------------

def _softmax(e: Emitter, g: int, n: Node) -> int:
    return e.mul(e.sub(g, e.sum(e.mul(g, n.r), n.attrs, keepdims=True)), n.r)


def _log_softmax(e: Emitter, g: int, n: Node) -> int:
    return e.sub(g, e.mul(e.exp(n.r), e.sum(g, n.attrs, keepdims=True)))


def _layer_norm_x(e: Emitter, g: int, n: Node) -> int:
    normal, inverse_deviation = n.saved
    h = e.mul(g, n.b) if n.b >= 0 else g
    across = e.mul(normal, e.mean(e.mul(h, normal), n.attrs, keepdims=True))
    return e.mul(inverse_deviation, e.sub(e.sub(h, e.mean(h, n.attrs, keepdims=True)), across))


def _gelu_tanh(e: Emitter, g: int, n: Node) -> int:
    # y = x/2 (1 + t), t = tanh(k (x + m x^3))  =>  dy/dx = (1 + t + x (1 - t^2) k (1 + 3 m x^2)) / 2
    k, m = n.attrs
    (t,) = n.saved
    x = e.maximum(e.minimum(n.a, 100.0), -100.0)  # beyond, 1 - t^2 is 0, and 0 times an overflow would be NaN
    slope = e.mul(e.mul(e.sub(1.0, e.mul(t, t)), e.add(e.mul(e.mul(x, x), 3 * k * m), k)), x)
    return e.mul(g, e.mul(e.add(e.add(t, 1.0), slope), 0.5))


def _shared(wins: str, other: bool) -> Formula:
    # The larger (or smaller) operand gets the gradient, each of two equal ones half of it, as in MindSpore.
    def formula(e: Emitter, g: int, n: Node) -> int:
        mine, theirs = (n.b, n.a) if other else (n.a, n.b)
        return _where(e, getattr(e, wins)(mine, theirs), e.select(e.equal(mine, theirs), e.mul(g, 0.5), g))
    return formula


def _log_add_exp(other: bool) -> Formula:
    def formula(e: Emitter, g: int, n: Node) -> int:
        mine, theirs = (n.b, n.a) if other else (n.a, n.b)
        return e.select(e.equal(mine, theirs), e.mul(g, 0.5), e.mul(g, e.sigmoid(e.sub(mine, theirs))))  # equal: may be infinite
    return formula


def _xlogy_a(e: Emitter, g: int, n: Node) -> int:
    return _where_not(e, e.logical_and(e.equal(n.a, 0.0), e.less_equal(n.b, 0.0)), e.mul(g, e.log(n.b)))


GROUPS: dict[str, Rule] = {
    "sinh": (lambda e, g, n: e.mul(g, functions.cosh(e, n.a)),),
    "cosh": (lambda e, g, n: e.mul(g, functions.sinh(e, n.a)),),
    "asinh": (lambda e, g, n: e.div(g, functions.hyperbola(e, n.a)),),
    "acosh": (lambda e, g, n: e.div(g, e.mul(e.sqrt(e.sub(n.a, 1.0)), e.sqrt(e.add(n.a, 1.0)))),),
    "atanh": (lambda e, g, n: e.div(g, e.mul(e.sub(1.0, n.a), e.add(n.a, 1.0))),),
    "asin": (lambda e, g, n: e.div(g, functions.circle(e, n.a)),),
    "acos": (lambda e, g, n: e.neg(e.div(g, functions.circle(e, n.a))),),
    "erfc": (lambda e, g, n: e.mul(e.mul(g, -2 / math.sqrt(math.pi)), functions.bell(e, n.a)),),
    "log_add_exp": (_log_add_exp(False), _log_add_exp(True)),
    "xlogy": (_xlogy_a, lambda e, g, n: _where_not(e, e.equal(n.a, 0.0), e.mul(g, e.div(n.a, n.b)))),
    "larger": (_shared("greater_equal", False), _shared("greater_equal", True)),
    "smaller": (_shared("less_equal", False), _shared("less_equal", True)),
    "softplus": (lambda e, g, n: e.mul(g, e.sigmoid(n.a)),),
    "softmax": (_softmax,),  # attrs: axes
    "log_softmax": (_log_softmax,),  # attrs: axes
    "layer_norm": (_layer_norm_x, lambda e, g, n: e.mul(g, n.saved[0]), lambda e, g, n: g),  # operands: x, scale or -1, shift or -1
    "gelu_tanh": (_gelu_tanh,),  # attrs: k, m
}
