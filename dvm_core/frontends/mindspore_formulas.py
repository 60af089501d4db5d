"""Lowerings of MindSpore's ops that are formulas over other instructions: functions, norms, variances."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import functions
from .emit import BF16, BOOL, CODE, F16, F32, F64, FLOATS, I64
from .lowering import LOWER, Lowering, Unlowerable, given_dtype, lowers, normal_axes, unify
from .vjp_rules import GROUPS

_IS_FINITE = CODE["IS_FINITE"]
_LARGEST = {F32: 3.4028234663852886e38, F64: 1.7976931348623157e308, F16: 65504.0, BF16: 3.3895313892515355e38}

# ---- functions -----------------------------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Any] = {
    "Exp2": lambda c, x: c.pow(2.0, x),
    "Log2": lambda c, x: c.mul(c.log(x), 1 / math.log(2)),
    "Log10": lambda c, x: c.mul(c.log(x), 1 / math.log(10)),
    "Sinh": functions.sinh,
    "Cosh": functions.cosh,
    "Asinh": functions.asinh,
    "Acosh": functions.acosh,
    "Atanh": functions.atanh,
    "Asin": functions.asin,
    "ACos": functions.acos,
    "Erfc": functions.erfc,
}


def _function(name: str) -> Lowering:  # of one tensor, integers as float32
    formula, rule = _FUNCTIONS[name], name.lower()

    @lowers(name, once=True)
    def lower(c: Any, x: Any, *_: Any) -> int:
        value = c.floating(c.value(x))
        result = formula(c, value)
        return c.group(rule, result, (value,)) if rule in GROUPS else result
    return lower


for _name in _FUNCTIONS:
    _function(_name)
LOWER.update({new: LOWER[old] for new, old in {"AsinhExt": "Asinh", "AcoshExt": "Acosh", "AsinExt": "Asin", "AcosExt": "ACos"}.items()})


@lowers("IsNegInf")
def _is_negative_infinity(c: Any, x: Any) -> int:
    return c.equal(c.value(x), -math.inf)


@lowers("Frac")
def _frac(c: Any, x: Any) -> int:
    value = c.value(x)
    return c.sub(value, c.trunc(value))


@lowers("Xlogy")
def _xlogy(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.operand(a), c.operand(b), both=True)
    a, b = c.floating(a), c.floating(b)
    return c.group("xlogy", c.select(c.equal(a, 0.0), c.full(0.0, (), c.dtype(a)), c.mul(a, c.log(b))), (a, b))


@lowers("LogAddExp")
def _log_add_exp(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.value(a), c.value(b))
    return c.group("log_add_exp", functions.log_add_exp(c, a, b), (a, b))


@lowers("IsClose")
def _is_close(c: Any, a: Any, b: Any, relative: float = 1e-5, absolute: float = 1e-8, nan_is_nan: bool = False) -> int:
    a, b = unify(c, c.value(a), c.value(b))
    near = c.less_equal(c.abs(c.sub(a, b)), c.add(c.mul(c.abs(b), float(relative)), float(absolute)))
    near = c.logical_or(c.equal(a, b), c.logical_and(near, c.op(_IS_FINITE, (b,))))
    return c.logical_or(near, c.logical_and(c.not_equal(a, a), c.not_equal(b, b))) if nan_is_nan else near


@lowers("NanToNum")
def _nan_to_num(c: Any, x: Any, nan: Any = None, top: Any = None, bottom: Any = None) -> int:
    value = c.value(x)
    if c.dtype(value) not in FLOATS:
        return c.copy(value)
    largest = _LARGEST[c.dtype(value)]
    for test, given, usual in ((c.not_equal(value, value), nan, 0.0), (c.equal(value, math.inf), top, largest),
                               (c.equal(value, -math.inf), bottom, -largest)):
        value = c.select(test, c.full(usual if given is None else float(given), (), c.dtype(value)), value)
    return value


# ---- of several tensors --------------------------------------------------------------------------------------------------------------

def _weighed(c: Any, base: Any, change: int, scale: Any) -> int:
    scale = c.operand(scale)
    return c.add(*unify(c, base, change if scale == 1.0 and scale.__class__ is not int else c.mul(*unify(c, change, scale))))


@lowers("Addcmul", "AddcmulExt")
def _addcmul(c: Any, base: Any, a: Any, b: Any, scale: Any = 1.0) -> int:
    return _weighed(c, c.value(base), c.mul(*unify(c, c.value(a), c.value(b))), scale)


@lowers("Addcdiv", "AddcdivExt")
def _addcdiv(c: Any, base: Any, a: Any, b: Any, scale: Any = 1.0) -> int:
    a, b = unify(c, c.value(a), c.value(b))
    return _weighed(c, c.value(base), c.div(c.floating(a), c.floating(b)), scale)


@lowers("Lerp", "LerpScalar")
def _lerp(c: Any, a: Any, b: Any, weight: Any) -> int:
    a, b = unify(c, c.value(a), c.value(b))
    return c.add(a, c.mul(*unify(c, c.sub(b, a), c.operand(weight))))


@lowers("Outer")
def _outer(c: Any, a: Any, b: Any) -> int:
    a, b = unify(c, c.value(a), c.value(b))
    return c.mul(c.reshape(a, (*c.shape(a), 1)), b)


# ---- over axes -----------------------------------------------------------------------------------------------------------------------

def _variance(c: Any, x: Any, axes: Any, correction: Any, keepdims: bool) -> tuple[int, int]:
    # (variance, mean)
    value = c.floating(c.value(x))
    shape = c.shape(value)
    axes = normal_axes(axes, len(shape))
    count = math.prod(shape[axis] for axis in axes)
    mean = c.mean(value, axes, True)
    centred = c.sub(value, mean)
    total = c.sum(c.mul(centred, centred), axes, bool(keepdims))
    flat = c.shape(total)
    return c.div(total, float(max(count - int(correction), 0))), mean if keepdims else c.reshape(mean, flat)


@lowers("Var", once=True)
def _var(c: Any, x: Any, axes: Any = None, correction: int = 1, keepdims: bool = False) -> int:
    return _variance(c, x, axes, correction, keepdims)[0]


def _root(c: Any, total: int, take: Callable[[int], int]) -> int:
    # Its gradient is 0 where the total is: of all the slopes there, the one that leaves a constant tensor where it is.
    if not c.gradients:
        return take(total)
    nothing = c.equal(total, 0.0)
    root = take(c.select(nothing, c.full(1.0, (), c.dtype(total)), total))
    return c.select(nothing, c.full(0.0, (), c.dtype(total)), root)


@lowers("Std", once=True)
def _std(c: Any, x: Any, axes: Any = None, correction: int = 1, keepdims: bool = False) -> int:
    return _root(c, _variance(c, x, axes, correction, keepdims)[0], c.sqrt)


@lowers("VarMean")
def _var_mean(c: Any, x: Any, axes: Any = None, correction: int = 1, keepdims: bool = False) -> tuple[int, int]:
    return _variance(c, x, axes, correction, keepdims)


@lowers("StdMean")
def _std_mean(c: Any, x: Any, axes: Any = None, correction: int = 1, keepdims: bool = False) -> tuple[int, int]:
    variance, mean = _variance(c, x, axes, correction, keepdims)
    return _root(c, variance, c.sqrt), mean


@lowers("ReduceStd")
def _reduce_std(c: Any, x: Any, axes: Any = (), unbiased: bool = True, keepdims: bool = False) -> tuple[int, int]:
    variance, mean = _variance(c, x, axes, int(unbiased), keepdims)
    return _root(c, variance, c.sqrt), mean


@lowers("LinalgVectorNorm", "Norm")
def _vector_norm(c: Any, x: Any, order: float = 2, axes: Any = None, keepdims: bool = False, dtype: Any = None) -> int:
    value = c.floating(c.value(x))
    if dtype is not None:
        value = c.cast(value, given_dtype(dtype))
    axes, keepdims = normal_axes(axes, len(c.shape(value))), bool(keepdims)
    if order == 0:
        return c.sum(c.cast(c.not_equal(value, 0.0), c.dtype(value)), axes, keepdims)
    if order == 2:
        return _root(c, c.sum(c.mul(value, value), axes, keepdims), c.sqrt)
    size = c.abs(value)
    if math.isinf(order):
        return (c.max if order > 0 else c.min)(size, axes, keepdims)
    if order == 1:
        return c.sum(size, axes, keepdims)
    return _root(c, c.sum(c.pow(size, float(order)), axes, keepdims), lambda total: c.pow(total, 1 / order))


@lowers("LpNormV2", once=True)
def _lp_norm(c: Any, x: Any, order: float = 2, axes: Any = None, keepdims: bool = False, epsilon: float = 1e-12) -> int:
    if epsilon > 1e-12:
        raise Unlowerable
    return _vector_norm(c, x, order, axes, keepdims)


@lowers("CountNonZero")
def _count_non_zero(c: Any, x: Any, axes: Any = None) -> int:
    value = c.value(x)
    found = value if c.dtype(value) == BOOL else c.not_equal(value, 0.0)
    return c.sum(c.cast(found, I64), normal_axes(axes, len(c.shape(value))))
