"""MindSpore ops that sort, scan, pad, write by index or draw, and formulas over other ops, against NumPy in float64."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, mint, nn, ops  # noqa: E402
from mindspore_kit import check_case, check_ours  # noqa: E402

import dvm_core as dvm  # noqa: E402

random = np.random.default_rng(14)
X = random.permutation(np.linspace(-2, 2, 24)).reshape(2, 3, 4).astype(np.float32)  # no ties
P = random.uniform(0.3, 2, (2, 3, 4)).astype(np.float32)
M = random.permutation(np.linspace(-2, 2, 12)).reshape(3, 4).astype(np.float32)
S = random.uniform(-2, 2, (2, 4)).astype(np.float32)
V = random.uniform(-2, 2, (3, 2)).astype(np.float32)
ROWS, PLACES = np.array([2, 0]), np.array([[0, 2], [1, 3], [3, 0]])
rows, places = Tensor(ROWS), Tensor(PLACES)
F = mint.nn.functional
N = np.array([[5, -3, 12, 7], [0, 9, -8, 1], [2, 2, -1, 6]], np.int32)


def put(axis: int, add: bool = False) -> Callable[..., np.ndarray]:
    def function(a: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = a.copy()
        np.put_along_axis(out, PLACES, v + np.take_along_axis(a, PLACES, axis) if add else v, axis)
        return out
    return function


def changed(change: Callable[..., None]) -> Callable[..., np.ndarray]:
    def function(a: np.ndarray, *others: np.ndarray) -> np.ndarray:
        out = a.copy()
        change(out, *others)
        return out
    return function


def assign(index: Any, scale: float = 1) -> Callable[..., Any]:
    """b[index] = s, on a copy."""
    def function(a: Any, s: Any = 0.5) -> Any:
        b = a * 1
        b[index] = s if scale == 1 else b[index] * scale
        return b
    return function


def in_place(change: Callable[..., Any]) -> Callable[..., Any]:
    def function(a: Any, *others: Any) -> Any:
        b = a * 1
        change(b, *others)
        return b
    return function


softplus = lambda x: np.log1p(np.exp(x))  # noqa: E731
relu6 = lambda x: np.clip(x + 3, 0, 6) / 6  # noqa: E731
COLUMNS = Tensor(np.array([1, 3]))

CASES: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray], list[np.ndarray]]] = {
    "sort": (lambda a: ops.sort(a)[0], lambda a: np.sort(a), [X]),
    "mint.sort": (lambda a: mint.sort(a, dim=1, descending=True)[0], lambda a: -np.sort(-a, 1), [X]),
    "topk": (lambda a: ops.topk(a, 2)[0], lambda a: -np.sort(-a)[..., :2], [X]),
    "mint.topk": (lambda a: mint.topk(a, 2, 1, largest=False)[0], lambda a: np.sort(a, 1)[:, :2], [X]),
    "max with positions": (lambda a: mint.max(a, 1)[0], lambda a: a.max(1), [X]),
    "cumsum": (lambda a: ops.cumsum(a, 1), lambda a: a.cumsum(1), [X]),
    "mint.cumsum": (lambda a: mint.cumsum(a, 0), lambda a: a.cumsum(0), [X]),
    "pad": (lambda a: ops.pad(a, [1, 2, 0, 1], value=3.0), lambda a: np.pad(a, ((0, 0), (0, 1), (1, 2)), constant_values=3), [X]),
    "pad that cuts": (lambda a: F.pad(a, (-1, 2), value=1.5),
                       lambda a: np.pad(a[..., 1:], ((0, 0), (0, 0), (0, 2)), constant_values=1.5), [X]),
    "nn.Pad": (lambda a: nn.Pad(((1, 0), (2, 1)))(a), lambda a: np.pad(a, ((1, 0), (2, 1))), [M]),
    "flip": (lambda a: mint.flip(a, (0, 2)), lambda a: a[::-1, :, ::-1], [X]),
    "roll": (lambda a: mint.roll(a, (1, -1), (0, 2)), lambda a: np.roll(a, (1, -1), (0, 2)), [X]),
    "roll flattened": (lambda a: mint.roll(a, 5), lambda a: np.roll(a, 5), [X]),
    "gather_elements": (lambda a: mint.gather(a, 1, places), lambda a: np.take_along_axis(a, PLACES, 1), [M]),
    "gather_nd": (lambda a: ops.gather_nd(a, Tensor([[0, 1], [1, 2]])), lambda a: a[[0, 1], [1, 2]], [X]),
    "scatter": (lambda a, v: mint.scatter(a, 1, places, v), put(1), [M, V]),
    "scatter a number": (lambda a: mint.scatter(a, 1, places, 2.5), lambda a: put(1)(a, np.full((3, 2), 2.5)), [M]),
    "scatter_add": (lambda a, v: mint.scatter_add(a, 1, places, v), put(1, True), [M, V]),
    "tensor_scatter_elements": (lambda a, v: ops.tensor_scatter_elements(a, places, v, 1), put(1), [M, V]),
    "tensor_scatter_elements add": (lambda a, v: ops.tensor_scatter_elements(a, places, v, 1, "add"), put(1, True), [M, V]),
    "tensor_scatter_update": (lambda a, s: ops.tensor_scatter_update(a, Tensor([[2], [0]]), s),
                              changed(lambda b, s: b.__setitem__(ROWS, s)), [M, S]),
    "tensor_scatter_add": (lambda a, s: ops.tensor_scatter_add(a, Tensor([[2], [2]]), s),
                           changed(lambda b, s: np.add.at(b, [2, 2], s)), [M, S]),
    "scatter_nd": (lambda s: ops.scatter_nd(Tensor([[1], [1]]), s, (3, 4)),
                   lambda s: np.stack([0 * s[0], s.sum(0), 0 * s[0]]), [S]),
    "index_fill": (lambda a: a.index_fill(1, Tensor([0, 3], ms.int32), 9.0),
                   changed(lambda b: b.__setitem__((slice(None), [0, 3]), 9)), [M]),
    "b[rows] = s": (assign(rows), changed(lambda b, s: b.__setitem__(ROWS, s)), [M, S]),
    "b[rows] = number": (lambda a: assign(rows)(a), changed(lambda b: b.__setitem__(ROWS, 0.5)), [M]),
    "b[rows, columns] = number": (lambda a: assign((rows, COLUMNS))(a), changed(lambda b: b.__setitem__((ROWS, [1, 3]), 0.5)), [M]),
    "b[:, rows] = number": (lambda a: assign((slice(None), rows))(a), changed(lambda b: b.__setitem__((slice(None), ROWS), 0.5)), [X]),
    "b[1:, rows, 0] = number": (lambda a: assign((slice(1, None), rows, 0))(a),
                                changed(lambda b: b.__setitem__((slice(1, None), ROWS, 0), 0.5)), [X]),
    "b[index, :, index] = number": (lambda a: assign((Tensor([1, 0]), slice(None), COLUMNS))(a),
                                    changed(lambda b: b.__setitem__(([1, 0], slice(None), [1, 3]), 0.5)), [X]),
    "b[rows] *= 3": (lambda a: assign(rows, 3)(a), changed(lambda b: b.__setitem__(ROWS, 3 * b[ROWS])), [M]),
    "b[mask of rows] = s": (assign(Tensor([True, False, True])), changed(lambda b, s: b.__setitem__([0, 2], s)), [M, S]),
    "scatter_": (in_place(lambda b, v: b.scatter_(1, places, v)), put(1), [M, V]),
    "scatter_add_": (in_place(lambda b, v: b.scatter_add_(1, places, v)), put(1, True), [M, V]),
    "index_add_": (in_place(lambda b, s: b.index_add_(0, rows, s, alpha=2)), changed(lambda b, s: np.add.at(b, ROWS, 2 * s)), [M, S]),
    "index_copy_": (in_place(lambda b, s: b.index_copy_(0, rows, s)), changed(lambda b, s: b.__setitem__(ROWS, s)), [M, S]),
    "index_put_": (in_place(lambda b, s: b.index_put_((rows,), s)), changed(lambda b, s: b.__setitem__(ROWS, s)), [M, S]),
    "index_put_ accumulates": (in_place(lambda b, s: b.index_put_((Tensor([1, 1]),), s, accumulate=True)),
                               changed(lambda b, s: np.add.at(b, [1, 1], s)), [M, S]),
    "masked_fill_": (in_place(lambda b: b.masked_fill_(b > 0, 1.0)), lambda a: np.where(a > 0, 1, a), [M]),
    "fmod": (lambda a: ops.fmod(a, 0.7), lambda a: np.fmod(a, 0.7), [X]),
    "remainder": (lambda a, b: mint.remainder(a, b), np.remainder, [X, P]),
    "number % tensor": (lambda b: mint.remainder(2.5, b), lambda b: 2.5 % b, [P]),
    "prod": (lambda a: ops.prod(a, 1), lambda a: a.prod(1), [X]),
    "mint.prod": (lambda a: mint.prod(a, -1, keepdim=True), lambda a: a.prod(-1, keepdims=True), [X]),
    "expm1 tan atan": (lambda a: mint.expm1(a) + mint.tan(a / 2) + mint.atan(a), lambda a: np.expm1(a) + np.tan(a / 2) + np.arctan(a), [X]),
    "log2 log10 exp2": (lambda a: mint.log2(a) + mint.log10(a) + mint.exp2(a), lambda a: np.log2(a) + np.log10(a) + 2 ** a, [P]),
    "sinh cosh": (lambda a: mint.sinh(a) * mint.cosh(a), lambda a: np.sinh(a) * np.cosh(a), [X]),
    "inverse hyperbolic": (lambda a: mint.asinh(a * 2) + mint.acosh(a + 1) + mint.atanh(a / 3),
                           lambda a: np.arcsinh(a * 2) + np.arccosh(a + 1) + np.arctanh(a / 3), [P]),
    "asin acos": (lambda a: mint.asin(a / 3) + 2 * mint.acos(a / 4), lambda a: np.arcsin(a / 3) + 2 * np.arccos(a / 4), [X]),
    "hardswish hardsigmoid": (lambda a: F.hardswish(a * 2) + F.hardsigmoid(a), lambda a: 2 * a * relu6(2 * a) + relu6(a), [X]),
    "mish selu logsigmoid": (lambda a: F.mish(a) + F.selu(a) + F.logsigmoid(a), lambda a: a * np.tanh(softplus(a)) - softplus(-a)
                             + 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a)), [X]),
    "softsign prelu": (lambda a, w: ops.softsign(a) + F.prelu(a, w[0, 0, :1]),
                       lambda a, w: a / (1 + abs(a)) + np.where(a > 0, a, a * w[0, 0, 0]), [X, P]),
    "glu": (lambda a: F.glu(a), lambda a: a[..., :2] / (1 + np.exp(-a[..., 2:])), [X]),
    "shrinks": (lambda a: F.softshrink(a) + F.hardshrink(a) + F.threshold(a, 0.1, 20.0),
                lambda a: np.sign(a) * np.maximum(abs(a) - 0.5, 0) + np.where(abs(a) > 0.5, a, 0) + np.where(a > 0.1, a, 20), [X]),
    "addcmul addcdiv": (lambda a, b: mint.addcmul(a, a, b, value=2) + mint.addcdiv(a, a, b),
                        lambda a, b: 2 * a + 2 * a * b + a / b, [X, P]),
    "lerp outer": (lambda a, b: mint.lerp(mint.outer(a[0], b[1]), mint.outer(a[1], b[0]), 0.25),
                   lambda a, b: 0.75 * np.outer(a[0], b[1]) + 0.25 * np.outer(a[1], b[0]), [M, S]),
    "logaddexp xlogy": (lambda a, b: mint.logaddexp(a, b) + mint.xlogy(a, b), lambda a, b: np.logaddexp(a, b) + a * np.log(b), [X, P]),
    "var std": (lambda a: mint.var(a, 1) + mint.std(a, (1,), correction=0), lambda a: a.var(1, ddof=1) + a.std(1), [X]),
    "ops.var ops.std": (lambda a: ops.var(a, 1) + ops.std(a, 1, 1), lambda a: a.var(1) + a.std(1, ddof=1), [X]),
    "norms": (lambda a: mint.norm(a, dim=1) + mint.norm(a, 1, 1) + mint.norm(a, 3, 1) + mint.norm(a, math.inf, 1),
              lambda a: np.sqrt((a * a).sum(1)) + abs(a).sum(1) + (abs(a) ** 3).sum(1) ** (1 / 3) + abs(a).max(1), [X]),
    "normalize": (lambda a: F.normalize(a, dim=1), lambda a: a / np.sqrt((a * a).sum(1, keepdims=True)), [X]),
    "nan_to_num": (lambda a: mint.nan_to_num(a / (a > 0)), lambda a: np.where(a > 0, a, -3.4028234663852886e38), [X]),
}


@pytest.mark.parametrize("name", CASES)
def test_op_matches_numpy_forward_and_backward(name: str) -> None:
    check_case(CASES[name], rtol=3e-4, atol=1e-4, gradients=name != "nan_to_num")


def test_every_case_ran_on_our_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    check_ours(CASES.values(), capsys)


n = Tensor(N)
INTEGERS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "positions of sort": (lambda a: mint.sort(a)[1], np.argsort(M, kind="stable")),
    "positions of ops.sort": (lambda a: ops.sort(a, 0, True)[1], np.argsort(-M, 0, kind="stable").astype(np.int32)),
    "argsort": (lambda a: mint.argsort(a, 0), np.argsort(M, 0)),
    "positions of topk": (lambda a: mint.topk(a, 2, 0)[1], np.argsort(-M, 0)[:2]),
    "argmax of all": (lambda a: mint.argmax(a), np.asarray(M.argmax())),
    "argmin with kept axis": (lambda a: mint.argmin(a, 1, keepdim=True), M.argmin(1)[:, None]),
    "cumsum of integers": (lambda a: mint.cumsum(n, 0), N.cumsum(0)),
    "bits": (lambda a: (n & 6) | (n ^ 3), (N & 6) | (N ^ 3)),
    "mint bits": (lambda a: mint.bitwise_xor(mint.bitwise_not(n), n), ~N ^ N),
    "shifts": (lambda a: ops.bitwise_left_shift(n, 2) + ops.bitwise_right_shift(n, 1), (N << 2) + (N >> 1)),
    "xor of bools": (lambda a: ops.logical_xor(a > 0, a > 1), (M > 0) ^ (M > 1)),
    "not a number": (lambda a: mint.isinf(a / 0) & ~ops.isnan(a), ~np.isnan(M)),
    "any along an axis": (lambda a: (a > 1.5).any(1), (M > 1.5).any(1)),
    "product of integers": (lambda a: mint.prod(n, 1), N.prod(1)),
    "is close": (lambda a: mint.isclose(a, a + 1e-7), np.ones(M.shape, bool)),
    "count": (lambda a: mint.count_nonzero(n, 1), np.count_nonzero(N, 1)),
    "where it is -inf": (lambda a: mint.isneginf(a / 0), M < 0),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_and_bool_results(name: str) -> None:
    expression, exact = INTEGERS[name]
    result = dvm.jit(lambda a: expression(a))(Tensor(M)).asnumpy()
    assert result.dtype == exact.dtype and result.shape == exact.shape
    np.testing.assert_array_equal(result, exact)


def test_an_index_out_of_range_is_an_error_at_the_users_line() -> None:
    wrong = Tensor(np.array([0, 7]))
    with pytest.raises(dvm.Error, match=r"test_mindspore_select.py:\d+.*SCATTER: index 7"):
        dvm.jit(lambda a: assign(wrong)(a))(Tensor(M)).asnumpy()


DROPOUTS: dict[str, Callable[[Any], Any]] = {
    "nn.Dropout": nn.Dropout(p=0.25).set_train(), "ops.dropout": lambda a: ops.dropout(a, 0.25),
    "mint dropout": lambda a: F.dropout(a, 0.25),
    "mint.nn.Dropout": mint.nn.Dropout(0.25).set_train(),
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_has_one_mask_forward_and_backward_and_a_seed_repeats_it(name: str) -> None:
    ones = Tensor(np.ones((64, 64), np.float32))

    def run() -> tuple[np.ndarray, np.ndarray]:
        captured = dvm.jit(lambda a: DROPOUTS[name](a))
        (_, result), gradient = ms.value_and_grad(lambda a: (lambda r: (r.sum(), r))(captured(a)), 0, None, has_aux=True)(ones)
        return result.asnumpy(), gradient.asnumpy()

    result, gradient = run()
    np.testing.assert_array_equal(result, gradient)  # ones: both are the scaled mask
    np.testing.assert_allclose(result[result != 0], 1 / 0.75, rtol=1e-6)
    assert 0.7 < (result != 0).mean() < 0.8
    assert (run()[0] != result).any()  # another step, another mask


def test_dropout_of_channels_drops_whole_ones() -> None:
    x = Tensor(np.ones((8, 16, 3, 3), np.float32))
    result = dvm.jit(lambda a: ops.dropout2d(a, 0.5))(x).asnumpy()
    each = result.reshape(8, 16, 9)
    assert (each == each[..., :1]).all() and set(np.unique(result)) == {0.0, 2.0}


def test_random_numbers_of_a_captured_function() -> None:
    u = dvm.jit(lambda a: mint.rand(200, 300) + a * 0)(Tensor(np.zeros((200, 300), np.float32))).asnumpy()
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    b = dvm.jit(lambda a: mint.bernoulli(a))(Tensor(np.full((200, 300), 0.2, np.float32))).asnumpy()
    assert set(np.unique(b)) == {0.0, 1.0} and abs(b.mean() - 0.2) < 0.01
