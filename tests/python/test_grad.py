"""Gradient rules against float64 differences of independent NumPy functions."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_programs import Step
from gradient_reference import differences, weights
from window_reference import WINDOWS

from dvm_core import _core
from dvm_core.frontends import grad, vjp_rules
from dvm_core.frontends.emit import BOOL, CODE, F32, I32, I64
from dvm_core.frontends.plan import Plan, replay
from dvm_core.frontends.tape import Input, Tape

CODES = {np.dtype("float32"): F32, np.dtype("int32"): I32, np.dtype("int64"): I64, np.dtype("bool"): BOOL}


class Recorded(Tape):
    """The smallest front end: a tape over NumPy arrays."""

    def __init__(self) -> None:
        super().__init__(_core.Graph("test"))
        self.place = _core.place(__file__, 1)

    def input(self, array: np.ndarray, needs: bool) -> int:
        return self.add_input(array.ctypes.data, array.shape, CODES[array.dtype], None, array, needs_grad=needs)

    def derive(self, outputs: list[int]) -> Plan:
        leaves = [value for value, entry in enumerate(self.entries) if isinstance(entry, Input) and entry.needs_grad]
        return grad.derive(self, outputs, leaves)

    def replay(self, plan: Plan, seeds: list[np.ndarray], imms: dict[int, tuple[float, ...]] | None = None) -> list[np.ndarray | None]:
        def add(seed: np.ndarray) -> int:
            return self.graph.input(seed.ctypes.data, seed.shape, F32, None, seed)

        ids = replay(self.graph, plan, seeds, imms or self.imms, lambda step: None, add)
        self.graph.flush([i for i in ids if i >= 0])
        return [np.array(self.graph.array(i)) if i >= 0 else None for i in ids]


def gradients(record: Callable[..., int], arrays: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray | None], Recorded, Plan]:
    """Result, gradients of sum(result * weights) with weights 1, 2, 3 ..., tape and plan."""
    tape = Recorded()
    values = [tape.input(array, array.dtype == np.float32) for array in arrays]
    out = record(tape, *values)
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    result = np.array(tape.graph.array(out))
    return result, tape.replay(plan, [weights(result.shape)]), tape, plan


def some(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(math.prod(shape) + seed)
    return random.uniform(low, high, shape).astype(np.float32)


erf = np.vectorize(math.erf, otypes=[np.float64])
softmax = lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)  # noqa: E731
X, Y, POSITIVE = some(3, 4), some(3, 4, seed=9), some(3, 4, low=0.3)
INDEX = np.array([[0, 2], [2, 1]], np.int64)
MASK = X > 0.2
SMALL = some(3, 4, low=0.8, high=1.0)
ZERO = np.where(np.eye(3, 4, 1) > 0, 0, X).astype(np.float32)[:1]

# name: what is recorded, the same in NumPy, the operands
CASES: dict[str, tuple[Callable[..., int], Callable[..., np.ndarray], list[np.ndarray]]] = {
    "add broadcasts both ways": (lambda e, a, b: e.add(a, b), np.add, [some(3, 1), some(1, 4)]),
    "add one value twice": (lambda e, a: e.add(a, a), lambda a: a + a, [X]),
    "sub to a lower rank": (lambda e, a, b: e.sub(a, b), np.subtract, [some(2, 3, 4), some(4)]),
    "mul": (lambda e, a, b: e.mul(a, b), np.multiply, [X, Y]),
    "mul by an immediate": (lambda e, a: e.mul(a, 3.5), lambda a: a * 3.5, [X]),
    "div": (lambda e, a, b: e.div(a, b), np.divide, [X, POSITIVE]),
    "immediate over value": (lambda e, a: e.div(2.0, a), lambda a: 2 / a, [POSITIVE]),
    "pow": (lambda e, a, b: e.pow(a, b), np.power, [POSITIVE, Y]),
    "pow to an immediate": (lambda e, a: e.pow(a, 3.0), lambda a: a ** 3, [X]),
    "immediate to a pow": (lambda e, a: e.pow(1.5, a), lambda a: 1.5 ** a, [X]),
    "maximum": (lambda e, a, b: e.maximum(a, b), np.maximum, [X, Y]),
    "minimum with an immediate": (lambda e, a: e.minimum(a, 0.5), lambda a: np.minimum(a, 0.5), [X]),
    "neg abs": (lambda e, a: e.neg(e.abs(a)), lambda a: -np.abs(a), [X]),
    "exp": (lambda e, a: e.exp(a), np.exp, [X]),
    "log": (lambda e, a: e.log(a), np.log, [POSITIVE]),
    "log1p": (lambda e, a: e.log1p(a), np.log1p, [POSITIVE]),
    "expm1": (lambda e, a: e.expm1(a), np.expm1, [X]),
    "tan": (lambda e, a: e.tan(e.mul(a, 0.6)), lambda a: np.tan(a * 0.6), [X]),
    "atan": (lambda e, a: e.atan(a), np.arctan, [X]),
    "fmod": (lambda e, a, b: e.fmod(a, b), np.fmod, [some(3, 4, low=2.1, high=2.9), SMALL]),
    "remainder": (lambda e, a, b: e.remainder(a, b), np.remainder, [some(3, 4, low=-2.9, high=-2.1), SMALL]),
    "remainder of an immediate": (lambda e, a: e.remainder(5.5, a), lambda a: 5.5 % a, [SMALL]),
    "sign has none, its argument has": (lambda e, a: e.mul(e.sign(a), a), np.abs, [X]),
    "prod": (lambda e, a: e.prod(a, (1,)), lambda a: a.prod(1), [X]),
    "prod over a zero": (lambda e, a: e.prod(a, (0, 1), True), lambda a: a.prod(keepdims=True), [ZERO]),
    "prod over two zeros": (lambda e, a: e.prod(a, (1,)), lambda a: a.prod(1), [np.where(np.arange(4) < 2, 0, ZERO)]),
    "pad": (lambda e, a: e.pad(a, (1, 0), (5, 7), 3.0), lambda a: np.pad(a, ((1, 1), (0, 3)), constant_values=3.0), [X]),
    "cumsum": (lambda e, a: e.cumsum(a, 1), lambda a: a.cumsum(1), [X]),
    "cumsum backwards and exclusive": (lambda e, a: e.cumsum(a, 0, True, True), lambda a: a[::-1].cumsum(0)[::-1] - a, [X]),
    "sort": (lambda e, a: e.sort(a, 1), lambda a: np.sort(a, 1), [X]),
    "sort descending along the first axis": (lambda e, a: e.sort(a, 0, True), lambda a: -np.sort(-a, 0), [X]),
    "topk": (lambda e, a: e.gather_elements(a, e.topk(a, 1, 2), 1), lambda a: -np.sort(-a, 1)[:, :2], [X]),
    "gather_elements with repeats": (lambda e, a, i: e.gather_elements(a, i, 1), lambda a, i: np.take_along_axis(a, i, 1),
                                     [X[:2].copy(), INDEX]),
    "scatter_add_elements": (lambda e, a, i: e.scatter_add_elements(a, i, 1, (2, 5)), lambda a, i: _add_elements(a, i),
                             [some(2, 2), INDEX]),
    "scatter over one another": (lambda e, a, i, b: e.scatter(a, i, b, 0), lambda a, i, b: _put(a, i.ravel(), b.reshape(4, 4)),
                                 [X, INDEX, some(2, 2, 4)]),
    "scatter_elements over one another": (lambda e, a, i, b: e.scatter_elements(a, i, b, 1), lambda a, i, b: _put_elements(a, i, b),
                                          [some(2, 4), np.array([[1, 1], [0, 3]]), some(2, 2)]),
    "sqrt": (lambda e, a: e.sqrt(a), np.sqrt, [POSITIVE]),
    "rsqrt": (lambda e, a: e.rsqrt(a), lambda a: a ** -0.5, [POSITIVE]),
    "reciprocal": (lambda e, a: e.reciprocal(a), lambda a: 1 / a, [POSITIVE]),
    "tanh": (lambda e, a: e.tanh(a), np.tanh, [X]),
    "erf": (lambda e, a: e.erf(a), erf, [X]),
    "sigmoid": (lambda e, a: e.sigmoid(a), lambda a: 1 / (1 + np.exp(-a)), [X]),
    "sin cos": (lambda e, a: e.mul(e.sin(a), e.cos(a)), lambda a: np.sin(a) * np.cos(a), [X]),
    "copy": (lambda e, a: e.copy(a), np.array, [X]),
    "select": (lambda e, m, a, b: e.select(m, a, b), np.where, [MASK, X, Y]),
    "select of a constant": (lambda e, m, a: e.select(m, e.full(1.0, (), F32), a), lambda m, a: np.where(m, 1.0, a), [MASK, X]),
    "floor has none, its argument has": (lambda e, a: e.add(e.floor(a), a), lambda a: np.floor(a) + a, [X]),
    "sum of an axis": (lambda e, a: e.sum(a, (1,)), lambda a: a.sum(1), [some(2, 3, 4)]),
    "sum of axes apart": (lambda e, a: e.sum(a, (0, 2)), lambda a: a.sum((0, 2)), [some(2, 3, 4)]),
    "mean with kept axes": (lambda e, a: e.mean(a, (0, 1), True), lambda a: a.mean((0, 1), keepdims=True), [some(2, 3, 4)]),
    "mean of everything": (lambda e, a: e.mean(a, (0, 1)), lambda a: a.mean(), [X]),
    "max": (lambda e, a: e.max(a, (1,)), lambda a: a.max(1), [X]),
    "min with kept axes": (lambda e, a: e.min(a, (0,), True), lambda a: a.min(0, keepdims=True), [X]),
    "matmul": (lambda e, a, b: e.matmul(a, b), np.matmul, [some(3, 4), some(4, 5)]),
    "matmul transposed a": (lambda e, a, b: e.matmul(a, b, True), lambda a, b: a.T @ b, [some(4, 3), some(4, 5)]),
    "matmul transposed b": (lambda e, a, b: e.matmul(a, b, False, True), lambda a, b: a @ b.T, [some(3, 4), some(5, 4)]),
    "matmul transposed both": (lambda e, a, b: e.matmul(a, b, True, True), lambda a, b: a.T @ b.T, [some(4, 3), some(5, 4)]),
    "matmul with broadcast batches": (lambda e, a, b: e.matmul(a, b), np.matmul, [some(2, 1, 3, 4), some(5, 4, 2)]),
    "reshape": (lambda e, a: e.mul(e.reshape(a, (2, 6)), e.reshape(a, (2, 6))), lambda a: a.reshape(2, 6) ** 2, [X]),
    "transpose": (lambda e, a: e.exp(e.transpose(a, (2, 0, 1))), lambda a: np.exp(a.transpose(2, 0, 1)), [some(2, 3, 4)]),
    "slice with a step": (lambda e, a: e.slice(a, (1, 1, 0, 2), (2, 2)), lambda a: a[1:, ::2], [X]),
    "slice backwards": (lambda e, a: e.slice(a, (2, -1, 3, -3), (3, 2)), lambda a: a[::-1, ::-3], [X]),
    "unslice": (lambda e, a: e.unslice(a, (1, 1, 0, 2), (4, 7)), lambda a: _unslice(a), [X]),
    "broadcast": (lambda e, a: e.mul(e.broadcast(a, (3, 4)), e.broadcast(a, (3, 4))), lambda a: np.broadcast_to(a, (3, 4)) ** 2, [some(4)]),
    "concat": (lambda e, a, b: e.concat((a, b, a), 1), lambda a, b: np.concatenate((a, b, a), 1), [X, some(3, 2)]),
    "gather with repeats": (lambda e, a, i: e.gather(a, i, 0), lambda a, i: a[i], [X, INDEX]),
    "gather of an inner axis": (lambda e, a, i: e.gather(a, i, 1), lambda a, i: np.take(a, i, 1), [X, INDEX]),
    "scatter_add": (lambda e, a, i: e.scatter_add(a, i, 0, (5, 4)), lambda a, i: _scatter(a, i), [some(2, 2, 4), INDEX]),
    "cast to an integer and back has none": (lambda e, a: e.mul(e.cast(e.cast(a, I32), F32), a), lambda a: np.trunc(a) * a, [X]),
    "a chain reads values again": (lambda e, a, b: e.mul(e.tanh(e.matmul(a, b)), e.matmul(a, b)),
                                   lambda a, b: np.tanh(a @ b) * (a @ b), [some(3, 4), some(4, 2)]),
}


# Windows: attributes of a convolution, and the shapes of image, weight and result. Strides that leave a rest, dilation, gaps, groups,
# one row of taps, padding wider than the taps, negative padding, no result at all.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "plain": ((1, 1, 0, 0, 1, 1, 1, 1, 1), (2, 3, 4, 5), (2, 3, 2, 3), (2, 2, 3, 3)),
    "strided with a rest": ((2, 3, 1, 1, 1, 1, 1, 1, 1), (1, 2, 6, 6), (2, 2, 3, 3), (1, 2, 3, 2)),
    "dilated in groups": ((1, 2, 2, 0, 2, 1, 1, 1, 2), (1, 4, 5, 5), (6, 2, 2, 2), (1, 6, 7, 2)),
    "depthwise": ((1, 1, 1, 1, 1, 1, 1, 1, 3), (2, 3, 3, 3), (3, 1, 3, 3), (2, 3, 3, 3)),
    "with gaps": ((1, 1, 1, 1, 1, 1, 2, 2, 1), (1, 2, 3, 2), (2, 2, 3, 3), (1, 2, 5, 3)),
    "strided 1 x 1": ((2, 2, 0, 0, 1, 1, 1, 1, 1), (1, 2, 5, 4), (3, 2, 1, 1), (1, 3, 3, 2)),
    "padding wider than the taps": ((1, 2, 3, -1, 1, 1, 1, 1, 1), (1, 1, 2, 6), (1, 1, 2, 2), (1, 1, 7, 2)),
}
for _name, (_attrs, _x, _w, _r) in CONVOLUTIONS.items():
    CASES[f"conv2d {_name}"] = (
        lambda e, a, b, attrs=_attrs, shape=_r: e.conv2d(a, b, attrs, shape),
        lambda a, b, attrs=_attrs, shape=_r: WINDOWS["CONV2D"](Step("", (), attrs, shape), a, b), [some(*_x), some(*_w)])
    CASES[f"conv2d_weight {_name}"] = (
        lambda e, a, g, attrs=_attrs, shape=_w: e.conv2d_weight(a, g, attrs, shape),
        lambda a, g, attrs=_attrs, shape=_w: WINDOWS["CONV2D_WEIGHT"](Step("", (), attrs, shape), a, g), [some(*_x), some(*_r)])
POOLS = {
    "MAX": [((2, 2, 2, 2, 0, 0, 1, 1), (2, 2)), ((3, 2, 1, 3, 1, 1, 1, 2), (5, 2)), ((2, 3, 3, 4, 0, 1, 1, 1), (2, 2))],
    "AVG": [((2, 2, 2, 2, 0, 0, 0, 0, 0, 0), (2, 2)), ((3, 2, 1, 3, 1, 1, 1, 1, 1, 0), (5, 2)), ((3, 3, 2, 2, 1, 1, 1, 1, 0, 0), (3, 3)),
            ((2, 2, 1, 1, 0, 0, 0, 0, 1, 7), (4, 4))],
}
for _kind, _cases in POOLS.items():
    for _i, (_attrs, _size) in enumerate(_cases):
        _op, _image, _out = f"{_kind}_POOL2D", (1, 2, 5, 5), (1, 2, *_size)
        CASES[f"{_op} {_i}"] = (
            lambda e, a, op=_op, attrs=_attrs, shape=_out: e.pool(op, (a,), attrs, shape),
            lambda a, op=_op, attrs=_attrs, shape=_out: WINDOWS[op](Step("", (), attrs, shape), a), [some(*_image)])
        if _kind == "AVG":
            CASES[f"{_op}_GRAD {_i}"] = (
                lambda e, a, op=_op, attrs=_attrs: e.pool(f"{op}_GRAD", (a,), attrs, (1, 2, 5, 5)),
                lambda a, op=_op, attrs=_attrs: WINDOWS[f"{op}_GRAD"](Step("", (), attrs, (1, 2, 5, 5)), a), [some(*_out)])


def test_a_pools_gradient_has_one_too() -> None:
    # The gradient of max pooling is linear in its second operand, with places that its first one gives.
    attrs, x = POOLS["MAX"][1][0], some(1, 2, 5, 5)
    grad_of = lambda g: WINDOWS["MAX_POOL2D_GRAD"](Step("", (), attrs, x.shape), x, g)  # noqa: E731
    g = some(1, 2, 5, 2)
    tape = Recorded()
    fixed, moving = tape.input(x, False), tape.input(g, True)
    out = tape.pool("MAX_POOL2D_GRAD", (fixed, moving), attrs, x.shape)
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    np.testing.assert_allclose(np.array(tape.graph.array(out)), grad_of(g.astype(np.float64)), rtol=1e-6, atol=1e-6)
    (found,) = tape.replay(plan, [weights(x.shape)])
    np.testing.assert_allclose(found, differences(grad_of, [g])[0], rtol=1e-4, atol=1e-5)


def _unslice(a: np.ndarray) -> np.ndarray:
    r = np.zeros((4, 7), a.dtype)
    r[1:4, 0:8:2] = a
    return r


def _scatter(a: np.ndarray, index: np.ndarray) -> np.ndarray:
    r = np.zeros((5, 4), a.dtype)
    np.add.at(r, index, a)
    return r


def _add_elements(a: np.ndarray, i: np.ndarray) -> np.ndarray:
    r = np.zeros((2, 5), a.dtype)
    np.add.at(r, (np.arange(2)[:, None], i), a)
    return r


def _put(a: np.ndarray, i: np.ndarray, b: np.ndarray) -> np.ndarray:
    r = a.copy()
    for at, row in zip(i, b, strict=True):
        r[at] = row
    return r


def _put_elements(a: np.ndarray, i: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([_put(*rows) for rows in zip(a, i, b, strict=True)])


@pytest.mark.parametrize("name", CASES)
def test_rule_matches_differences_in_float64(name: str) -> None:
    record, reference, arrays = CASES[name]
    result, found, _, _ = gradients(record, arrays)
    exact = reference(*[a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays])
    np.testing.assert_allclose(result, exact, rtol=2e-6, atol=2e-6)
    for ours, numeric in zip(found, differences(reference, arrays), strict=True):
        np.testing.assert_allclose(ours, numeric, rtol=1e-4, atol=1e-5)


def _soft(e: Recorded, a: int) -> int:
    shifted = e.exp(e.sub(a, e.max(a, (1,), True)))
    return e.group("softmax", e.div(shifted, e.sum(shifted, (1,), True)), (a,), (1,))


def _log_soft(e: Recorded, a: int) -> int:
    shifted = e.sub(a, e.max(a, (1,), True))
    return e.group("log_softmax", e.sub(shifted, e.log(e.sum(e.exp(shifted), (1,), True))), (a,), (1,))


def _norm(e: Recorded, a: int, scale: int = -1, shift: int = -1) -> int:
    centred = e.sub(a, e.mean(a, (1,), True))
    inverse = e.rsqrt(e.add(e.mean(e.mul(centred, centred), (1,), True), 1e-5))
    normal = result = e.mul(centred, inverse)
    result = e.add(e.mul(result, scale), shift) if scale >= 0 else e.copy(result)
    return e.group("layer_norm", result, (a, scale, shift), (1,), (normal, inverse))


def _norm64(a: np.ndarray, scale: Any = 1.0, shift: Any = 0.0) -> np.ndarray:
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * scale + shift


def _gelu(e: Recorded, a: int) -> int:
    k, m = math.sqrt(2 / math.pi), 0.044715
    t = e.tanh(e.mul(e.add(a, e.mul(e.mul(e.mul(a, a), a), m)), k))
    return e.group("gelu_tanh", e.mul(e.mul(a, 0.5), e.add(t, 1.0)), (a,), (k, m), (t,))


GROUPS: dict[str, tuple[Callable[..., int], Callable[..., np.ndarray], list[np.ndarray]]] = {
    "softmax": (_soft, softmax, [X]),
    "log_softmax": (_log_soft, lambda a: np.log(softmax(a)), [X]),
    "layer_norm": (_norm, _norm64, [X, some(4), some(4, seed=3)]),
    "layer_norm without scale": (_norm, _norm64, [X]),
    "gelu_tanh": (_gelu, lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))), [X]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_group_rule_matches_differences_in_float64(name: str) -> None:
    record, reference, arrays = GROUPS[name]
    result, found, _, _ = gradients(record, arrays)
    np.testing.assert_allclose(result, reference(*[a.astype(np.float64) for a in arrays]), rtol=1e-5, atol=2e-6)
    for ours, numeric in zip(found, differences(reference, arrays), strict=True):
        np.testing.assert_allclose(ours, numeric, rtol=1e-4, atol=2e-5)


def test_every_instruction_has_a_rule_or_is_declared_constant() -> None:
    assert set(CODE.values()) == set(vjp_rules.RULES) | vjp_rules.CONSTANT
    assert not set(vjp_rules.RULES) & vjp_rules.CONSTANT


def test_gradient_at_ties_and_kinks_follows_mindspore() -> None:
    at_zero = np.zeros((2, 2), np.float32)
    _, (relu,), _, _ = gradients(lambda e, a: e.maximum(0.0, a), [at_zero])
    assert not relu.any()  # relu's slope at 0 is 0
    tied = np.ones((1, 3), np.float32)
    _, (shared,), _, _ = gradients(lambda e, a: e.max(a, (1,)), [tied])
    np.testing.assert_allclose(shared, np.full((1, 3), weights((1,))[0] / 3))


def test_forward_keeps_what_backward_reads_and_repeats_what_is_cheap() -> None:
    # y = tanh(a @ b) * 2 + 1: the scaled and shifted values are not read by any rule, tanh's result is.
    _, _, tape, plan = gradients(lambda e, a, b: e.add(e.mul(e.tanh(e.matmul(a, b)), 2.0), 1.0), [some(3, 4), some(4, 2)])
    assert [tape.steps()[v].opcode for v in plan.saved] == [CODE["TANH"]]
    # y = relu(a @ b) * (a @ b + 1): relu's rule reads the first product, from which relu's result is repeated; the sum is kept.
    record = lambda e, a, b: e.mul(e.maximum(0.0, e.matmul(a, b)), e.add(e.matmul(a, b), 1.0))  # noqa: E731
    _, _, tape, plan = gradients(record, [some(3, 4), some(4, 2)])
    assert [tape.steps()[v].opcode for v in plan.saved] == [CODE["MATMUL"], CODE["ADD"]]


def test_views_are_repeated_not_kept() -> None:
    _, _, tape, plan = gradients(lambda e, a, b: e.matmul(e.transpose(e.exp(a), (1, 0)), b), [some(4, 3), some(4, 2)])
    assert [tape.steps()[v].opcode for v in plan.saved] == [CODE["EXP"]]


def test_plan_is_replayed_with_new_immediates() -> None:
    tape = Recorded()
    a = tape.input(X, True)
    out = tape.mul(tape.exp(a), 2.0)
    plan = tape.derive([out])
    tape.graph.flush({*plan.saved, out})
    (found,) = tape.replay(plan, [np.ones((3, 4), np.float32)], {**tape.imms, out: (5.0,)})
    np.testing.assert_allclose(found, 5 * np.exp(X.astype(np.float64)), rtol=1e-5)


def test_backward_places_carry_the_forward_line() -> None:
    tape = Recorded()
    a = tape.input(X, True)
    tape.place = _core.place("/user/model.py", 41, function="forward")
    out = tape.exp(tape.tanh(a))
    plan = tape.derive([out])
    assert plan.steps
    for step in plan.steps:
        file, line, *_, backward = _core.place_info(step[6])
        assert (file, line, backward) == ("/user/model.py", 41, True)


def test_inputs_that_want_no_gradient_get_none_and_cost_nothing() -> None:
    tape = Recorded()
    a, b = tape.input(X, True), tape.input(Y, False)
    plan = tape.derive([tape.mul(a, b)])
    assert [step[0] for step in plan.steps] == [CODE["MUL"]]
