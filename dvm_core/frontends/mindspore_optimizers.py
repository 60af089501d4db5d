"""Lowerings of the optimizers' updates, for an optimizer that is called inside a captured function.

Parameters and states stand for their new values from then on; numbers (rates, betas) are immediates wherever they are known.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .emit import F32, F64
from .lowering import Unlowerable, lowers

_PYTHON: dict[str, Callable[[float, float], float]] = {"sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def _number(c: Any, tensor: Any) -> Any:
    """A rate or factor: a float if it is known, else a value of rank 0."""
    number = c.operand(tensor)
    if number.__class__ is not int:
        return float(number)
    return c.reshape(number, ()) if c.shape(number) else number


def _counts(factor: Any) -> bool:
    # A value may be 0 at one call and not at the next; its id, a number too, says nothing.
    return factor.__class__ is int or factor != 0.0


def _of(c: Any, name: str, a: Any, b: Any) -> Any:
    if isinstance(a, float) and isinstance(b, float):
        return _PYTHON[name](a, b)
    return getattr(c, name)(a, b)


def _root(c: Any, a: Any) -> Any:
    return math.sqrt(a) if isinstance(a, float) else c.sqrt(a)


def _parameter(c: Any, tensor: Any) -> int:
    return _float(c, tensor, "parameter")


def _state(c: Any, tensor: Any) -> int:
    return _float(c, tensor, "optimizer")


def _float(c: Any, tensor: Any, cls: str) -> int:
    value = c.value(tensor)
    if c.dtype(value) not in (F32, F64):
        raise Unlowerable
    _core.log_class(tensor.data_ptr(), cls)
    return value


def _replace(c: Any, what: str, variable: Any, value: int, states: Iterable[tuple[Any, int]]) -> None:
    """The states and then the parameter stand for their new values."""
    for state, new in states:
        c.replace(state, new, what, "optimizer")
    c.replace(variable, value, what, "parameter")


def _moved(c: Any, state: int, rate: Any, towards: int) -> int:
    """rate * state + (1 - rate) * towards"""
    return c.add(c.mul(state, rate), c.mul(towards, _of(c, "sub", 1.0, rate)))


@lowers("ApplyMomentum")
def _momentum(c: Any, variable: Any, velocity: Any, rate: Any, gradient: Any, momentum: Any) -> Any:
    attrs = c.primitive.attrs
    if attrs.get("gradient_scale", 1.0) != 1.0:
        raise Unlowerable
    g, by, lr = c.value(gradient), _number(c, momentum), _number(c, rate)
    speed = c.add(c.mul(_state(c, velocity), by), g)
    step = c.add(g, c.mul(speed, by)) if attrs["use_nesterov"] else speed
    _replace(c, "ApplyMomentum", variable, c.sub(_parameter(c, variable), c.mul(step, lr)), [(velocity, speed)])
    return variable


@lowers("SGD")
def _sgd(c: Any, variable: Any, gradient: Any, rate: Any, velocity: Any, momentum: Any, fresh: Any) -> Any:
    attrs = c.primitive.attrs
    value, g, lr, by = _parameter(c, variable), c.value(gradient), _number(c, rate), _number(c, momentum)
    if attrs["weight_decay"]:
        g = c.add(g, c.mul(value, float(attrs["weight_decay"])))
    step, states = g, []
    if _counts(by):  # the first gradient is the velocity as it is
        old, new = _state(c, velocity), _state(c, fresh)
        speed = c.add(c.mul(old, by), c.mul(g, 1.0 - float(attrs["dampening"])))
        speed = c.select(c.greater(new, 0.0), g, speed)
        step = c.add(g, c.mul(speed, by)) if attrs["nesterov"] else speed
        states = [(velocity, speed), (fresh, c.full(0.0, c.shape(value), c.dtype(value)))]
        if by.__class__ is int:  # a value, which may be 0
            moves = c.broadcast(c.greater(by, 0.0), c.shape(value))
            step = c.select(moves, step, g)
            states = [(state, c.select(moves, after, before)) for (state, after), before in zip(states, (old, new), strict=True)]
    _replace(c, "SGD", variable, c.sub(value, c.mul(step, lr)), states)
    return variable


@lowers("Adam")
def _adam(c: Any, variable: Any, first: Any, second: Any, power_1: Any, power_2: Any, rate: Any, beta_1: Any, beta_2: Any, epsilon: Any,
          gradient: Any) -> tuple[Any, Any, Any]:
    g, b1, b2 = c.value(gradient), _number(c, beta_1), _number(c, beta_2)
    m = _moved(c, _state(c, first), b1, g)
    v = _moved(c, _state(c, second), b2, c.mul(g, g))
    left_1, left_2 = (_of(c, "sub", 1.0, _number(c, power)) for power in (power_1, power_2))
    lr = _of(c, "div", _of(c, "mul", _number(c, rate), _root(c, left_2)), left_1)
    step = _moved(c, m, b1, g) if c.primitive.attrs["use_nesterov"] else m
    new = c.sub(_parameter(c, variable), c.div(c.mul(step, lr), c.add(c.sqrt(v), _number(c, epsilon))))
    _replace(c, "Adam", variable, new, [(first, m), (second, v)])
    return variable, first, second


@lowers("AdamWeightDecay")
def _adam_weight_decay(c: Any, variable: Any, first: Any, second: Any, rate: Any, beta_1: Any, beta_2: Any, epsilon: Any, decay: Any,
                       gradient: Any, *_: Any) -> tuple[Any, Any, Any]:
    g, value, weight = c.value(gradient), _parameter(c, variable), _number(c, decay)
    m = _moved(c, _state(c, first), _number(c, beta_1), g)
    v = _moved(c, _state(c, second), _number(c, beta_2), c.mul(g, g))
    step = c.div(m, c.add(c.sqrt(v), _number(c, epsilon)))
    if _counts(weight):
        step = c.add(step, c.mul(value, weight))
    _replace(c, "AdamWeightDecay", variable, c.sub(value, c.mul(step, _number(c, rate))), [(first, m), (second, v)])
    return variable, first, second


@lowers("AddN")
def _add_n(c: Any, tensors: Any) -> int:
    values = [c.value(tensor) for tensor in tensors]
    total = values[0]
    for value in values[1:]:
        total = c.add(total, value)
    return total if len(values) > 1 else c.copy(total)
