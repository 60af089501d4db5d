"""Functions that are formulas over instructions, right over their whole range: nothing overflows on the way to a result that does not.

Each takes the emitter and a float32 or float64 value. Their gradients (vjp_rules.GROUPS) are formulas of the operand and not the
chain of their instructions, whose inner gradients overflow where the function is smooth.
"""
from __future__ import annotations

import math
from typing import Any

from .emit import F32

_TINY, _HUGE = 1e-8, 1e9  # below, x ** 3 is nothing beside x; above, 1 is nothing beside x ** 2: in float64 too

# erfc(x) = exp(-x * x) * t * P(t) with t = 1 / (1 + x / 2), fitted over x from 0.5 to where the result underflows; highest power first.
_TAIL_F32 = (-0.06192076345, 0.2986964062, -0.5156456734, 0.3087515218, -0.04607196745, 0.2101060765, 0.2414404797, 0.2825755087,
             0.2820765121)
_TAIL_F64 = (-0.009694032126234849, 0.15899003905653836, -0.9291526635155115, 2.9351154071621326, -5.808041057270613, 7.6651415977224735,
             -6.911093458948749, 4.319735079342193, -1.9963626271196535, 0.7918255090769725, -0.2111412643818944, -0.00866775949572364,
             -0.06417835666109473, -0.0034734457551812868, 0.08365983089411105, 0.1763150397432534, 0.24683268359205188,
             0.28209479872203375, 0.28209479168991214)


def _exponentials(c: Any, size: int) -> tuple[int, int]:
    # exp(size) / 2 and exp(-size) / 2. In two factors: cosh and sinh go on where exp(size) has ended.
    root = c.exp(c.mul(size, 0.5))
    return c.mul(c.mul(root, 0.5), root), c.div(c.div(0.5, root), root)


def sinh(c: Any, x: int) -> int:
    size, less_one = c.abs(x), c.expm1(x)
    near = c.mul(c.add(less_one, c.div(less_one, c.add(less_one, 1.0))), 0.5)
    return c.select(c.less(size, 1.0), near, c.mul(c.sign(x), c.sub(*_exponentials(c, size))))


def cosh(c: Any, x: int) -> int:
    return c.add(*_exponentials(c, c.abs(x)))


def _odd(c: Any, x: int, size: int, result: int) -> int:
    return c.select(c.less(size, _TINY), x, c.mul(c.sign(x), result))


def asinh(c: Any, x: int) -> int:
    size = c.abs(x)
    inverse = c.reciprocal(size)
    near = c.log1p(c.add(size, c.div(size, c.add(c.sqrt(c.add(c.mul(inverse, inverse), 1.0)), inverse))))
    return _odd(c, x, size, c.select(c.greater(size, _HUGE), c.add(c.log(size), math.log(2)), near))


def acosh(c: Any, x: int) -> int:
    above = c.sub(x, 1.0)
    near = c.log1p(c.add(above, c.mul(c.sqrt(above), c.sqrt(c.add(x, 1.0)))))
    return c.select(c.greater(x, _HUGE), c.add(c.log(x), math.log(2)), near)


def atanh(c: Any, x: int) -> int:
    size = c.abs(x)
    return _odd(c, x, size, c.mul(c.log1p(c.div(c.mul(size, 2.0), c.sub(1.0, size))), 0.5))


def circle(c: Any, x: int) -> int:
    """sqrt(1 - x * x)"""
    return c.sqrt(c.mul(c.sub(1.0, x), c.add(x, 1.0)))


def hyperbola(c: Any, x: int) -> int:
    """sqrt(1 + x * x)"""
    size = c.abs(x)
    return c.select(c.greater(size, _HUGE), size, c.sqrt(c.add(c.mul(x, x), 1.0)))


def asin(c: Any, x: int) -> int:
    return c.atan(c.div(x, circle(c, x)))


def acos(c: Any, x: int) -> int:
    return c.mul(c.atan(c.sqrt(c.div(c.sub(1.0, x), c.add(x, 1.0)))), 2.0)


def erfc(c: Any, x: int) -> int:
    part = c.reciprocal(c.add(c.mul(c.maximum(x, 0.5), 0.5), 1.0))
    highest, *others = _TAIL_F32 if c.dtype(x) == F32 else _TAIL_F64
    tail = c.add(c.mul(part, highest), others[0])
    for factor in others[1:]:
        tail = c.add(c.mul(tail, part), factor)
    tail = c.mul(c.mul(tail, part), bell(c, x))
    return c.select(c.greater(x, 0.5), tail, c.sub(1.0, c.erf(x)))


def bell(c: Any, x: int) -> int:
    """exp(-x * x)"""
    return c.exp(c.neg(c.mul(x, x)))


def log_add_exp(c: Any, a: int, b: int) -> int:
    """log(exp a + exp b)"""
    larger = c.maximum(a, b)
    return c.select(c.equal(a, b), c.add(larger, math.log(2)), c.add(larger, c.log1p(c.exp(c.neg(c.abs(c.sub(a, b)))))))
