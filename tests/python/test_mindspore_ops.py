"""MindSpore ops inside a captured function against NumPy in float64: values, and gradients by differences."""
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

random = np.random.default_rng(4)
X = random.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
P = random.uniform(0.3, 2, (2, 3, 4)).astype(np.float32)
V = random.uniform(-2, 2, 4).astype(np.float32)
L = random.uniform(-2, 2, (3, 5)).astype(np.float32)
W = random.uniform(-1, 1, (5, 4)).astype(np.float32)
LABELS = np.array([1, 4, 0], np.int32)
INDEX = np.array([[0, 2], [2, 1]], np.int32)
MASK = X > 0.3
F = mint.nn.functional


def soft(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_soft(x: np.ndarray) -> np.ndarray:
    return np.log(soft(x))


def nll(x: np.ndarray) -> np.ndarray:
    return np.asarray(-log_soft(x)[np.arange(3), LABELS].mean())


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def normal(x: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


erf = np.vectorize(math.erf, otypes=[np.float64])
cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
labels, index, mask = Tensor(LABELS), Tensor(INDEX), Tensor(MASK)
one, zero = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

# name: MindSpore expression, the same in NumPy, float operands
CASES: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray], list[np.ndarray]]] = {
    "a + b broadcast": (lambda a, b: a + b, np.add, [X, V]),
    "1 - a": (lambda a: 1 - a, lambda a: 1 - a, [X]),
    "a * 3": (lambda a: a * 3, lambda a: a * 3, [X]),
    "a / 4": (lambda a: a / 4, lambda a: a / 4, [X]),
    "2 / a": (lambda a: 2 / a, lambda a: 2 / a, [P]),
    "a ** 2": (lambda a: a ** 2, np.square, [X]),
    "a ** 0.5": (lambda a: a ** 0.5, np.sqrt, [P]),
    "2 ** a": (lambda a: 2 ** a, lambda a: 2 ** a, [X]),
    "-a, abs": (lambda a: -abs(a), lambda a: -np.abs(a), [X]),
    "mint.add with alpha": (lambda a, b: mint.add(a, b, alpha=2), lambda a, b: a + 2 * b, [X, P]),
    "integer operand": (lambda a: a * labels.reshape(3, 1), lambda a: a * LABELS.reshape(3, 1), [X]),
    "exp log": (lambda a: ops.log(ops.exp(a) + 1), lambda a: np.log(np.exp(a) + 1), [X]),
    "log1p": (lambda a: ops.log1p(a), np.log1p, [P]),
    "sqrt rsqrt": (lambda a: ops.sqrt(a) * ops.rsqrt(a + 1), lambda a: np.sqrt(a) / np.sqrt(a + 1), [P]),
    "tanh": (lambda a: ops.tanh(a), np.tanh, [X]),
    "sigmoid": (lambda a: ops.sigmoid(a), lambda a: 1 / (1 + np.exp(-a)), [X]),
    "silu": (lambda a: ops.silu(a), lambda a: a / (1 + np.exp(-a)), [X]),
    "relu": (lambda a: ops.relu(a), lambda a: np.maximum(a, 0), [X]),
    "gelu": (lambda a: ops.gelu(a), lambda a: a * (1 + erf(a / math.sqrt(2))) / 2, [X]),
    "gelu tanh": (lambda a: ops.gelu(a, approximate="tanh"), gelu, [X]),
    "mint gelu": (lambda a: F.gelu(a), lambda a: a * (1 + erf(a / math.sqrt(2))) / 2, [X]),
    "softplus": (lambda a: F.softplus(a), lambda a: np.log1p(np.exp(a)), [X]),
    "elu": (lambda a: ops.elu(a), lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))), [X]),
    "maximum": (lambda a, b: ops.maximum(a, b), np.maximum, [X, P]),
    "clamp": (lambda a: ops.clamp(a, -1, 1), lambda a: np.clip(a, -1, 1), [X]),
    "clamp from below": (lambda a: mint.clamp(a, min=0.5), lambda a: np.maximum(a, 0.5), [X]),
    "where": (lambda a, b: ops.where(mask, a, b), lambda a, b: np.where(MASK, a, b), [X, P]),
    "where with a number": (lambda a: ops.where(a > 0, a, 0.5), lambda a: np.where(a > 0, a, 0.5), [X]),
    "masked_fill": (lambda a: a.masked_fill(mask, -3.0), lambda a: np.where(MASK, -3.0, a), [X]),
    "cast of a comparison": (lambda a: (a > 0).astype(ms.float32) * a, lambda a: (a > 0) * a, [X]),
    "stop_gradient": (lambda a: ops.stop_gradient(a) * 0 + a, lambda a: a, [X]),
    "sum": (lambda a: a.sum(), lambda a: np.asarray(a.sum()), [X]),
    "sum of axes": (lambda a: a.sum((0, 2), keepdims=True), lambda a: a.sum((0, 2), keepdims=True), [X]),
    "mean": (lambda a: a.mean(1), lambda a: a.mean(1), [X]),
    "ops.mean": (lambda a: ops.mean(a, axis=-1), lambda a: a.mean(-1), [X]),
    "max": (lambda a: a.max(axis=1), lambda a: a.max(1), [X]),
    "amax": (lambda a: ops.amax(a, -1, True), lambda a: a.max(-1, keepdims=True), [X]),
    "mint.min": (lambda a: mint.min(a, dim=0)[0], lambda a: a.min(0), [X]),
    "var": (lambda a: a.var(0), lambda a: a.var(0, ddof=0), [X]),
    "norm": (lambda a: ops.norm(a), lambda a: np.asarray(np.sqrt((a * a).sum())), [X]),
    "matmul with a transpose": (lambda a: a @ a.swapaxes(-1, -2), lambda a: a @ a.swapaxes(-1, -2), [X]),
    "matmul with a vector": (lambda a, b: ops.matmul(a, b), np.matmul, [X, V]),
    "bmm": (lambda a: ops.bmm(a, a.transpose(0, 2, 1)), lambda a: a @ a.transpose(0, 2, 1), [X]),
    "mint.linear": (lambda a, w, b: F.linear(a, w, b), lambda a, w, b: a @ w.T + b, [X, W, L[0].copy()]),
    "addmm": (lambda a, b, c: mint.addmm(a, b, c), lambda a, b, c: a + b @ c, [L @ W, L, W]),
    "softmax": (lambda a: ops.softmax(a, axis=-1), soft, [X]),
    "softmax of another axis": (lambda a: ops.softmax(a, axis=1), lambda a: soft(a, 1), [X]),
    "log_softmax": (lambda a: ops.log_softmax(a, axis=-1), log_soft, [X]),
    "logsumexp": (lambda a: mint.logsumexp(a, 1), lambda a: np.log(np.exp(a).sum(1)), [X]),
    "layer_norm": (lambda a, g, b: F.layer_norm(a, (4,), g, b), lambda a, g, b: normal(a) * g + b, [X, P[0, 0].copy(), V]),
    "layer_norm alone": (lambda a: F.layer_norm(a, (4,)), normal, [X]),
    "cross entropy": (lambda a: ops.cross_entropy(a, labels), nll, [L]),
    "mint cross entropy": (lambda a: F.cross_entropy(a, labels), nll, [L]),
    "sparse cross entropy": (lambda a: cross_entropy(a, labels), nll, [L]),
    "nll_loss": (lambda a: ops.nll_loss(ops.log_softmax(a, axis=-1), labels), nll, [L]),
    "cross entropy of one-hot labels": (lambda a: nn.SoftmaxCrossEntropyWithLogits()(a, ops.one_hot(labels, 5, one, zero)),
                                        lambda a: -log_soft(a)[np.arange(3), LABELS], [L]),
    "mse": (lambda a, b: ops.mse_loss(a, b), lambda a, b: np.asarray(((a - b) ** 2).mean()), [X, P]),
    "mint mse": (lambda a, b: F.mse_loss(a, b), lambda a, b: np.asarray(((a - b) ** 2).mean()), [X, P]),
    "bce with logits": (lambda a, b: F.binary_cross_entropy_with_logits(a, ops.stop_gradient(b)),
                        lambda a, b: np.asarray((np.log1p(np.exp(-np.abs(a))) + np.maximum(a, 0) - a * P / 2).mean()) + 0 * b.sum(),
                        [X, P / 2]),
    "reshape, transpose": (lambda a: a.reshape(6, 4).transpose(1, 0) * 2, lambda a: a.reshape(6, 4).T * 2, [X]),
    "view with -1": (lambda a: a.view(3, -1), lambda a: a.reshape(3, -1), [X]),
    "flatten": (lambda a: ops.flatten(a), lambda a: a.reshape(2, 12), [X]),
    "expand_dims, squeeze": (lambda a: (ops.expand_dims(a, 1) * 2).squeeze(1), lambda a: a * 2, [X]),
    "broadcast_to": (lambda a: ops.broadcast_to(a, (3, 4)) * 2, lambda a: np.broadcast_to(a, (3, 4)) * 2, [V]),
    "tile": (lambda a: ops.tile(a, (2, 1, 3)), lambda a: np.tile(a, (2, 1, 3)), [X]),
    "repeat_interleave": (lambda a: a.repeat_interleave(2, 0), lambda a: np.repeat(a, 2, 0), [X]),
    "concat": (lambda a, b: ops.concat((a, b), 1), lambda a, b: np.concatenate((a, b), 1), [X, P]),
    "stack": (lambda a, b: ops.stack((a, b), 1), lambda a, b: np.stack((a, b), 1), [X, P]),
    "mint.stack": (lambda a, b: mint.stack((a, b), -1), lambda a, b: np.stack((a, b), -1), [X, P]),
    "split": (lambda a: ops.split(a, 2, axis=2)[1] * 2, lambda a: a[..., 2:] * 2, [X]),
    "mint.split": (lambda a: mint.split(a, [1, 2], 1)[1], lambda a: a[:, 1:], [X]),
    "chunk": (lambda a: mint.chunk(a, 2, 2)[0], lambda a: a[..., :2], [X]),
    "unbind": (lambda a: mint.unbind(a, 1)[2], lambda a: a[:, 2], [X]),
    "gather": (lambda a: ops.gather(a, index, 1), lambda a: np.take(a, INDEX, 1), [X]),
    "embedding": (lambda w: F.embedding(index, w), lambda w: w[INDEX], [W]),
    "gather_elements": (lambda a: ops.gather_elements(a, 1, labels.reshape(3, 1)), lambda a: a[np.arange(3), LABELS][:, None], [L]),
    "tril": (lambda a: ops.tril(a), np.tril, [L]),
    "triu": (lambda a: mint.triu(a, 1), lambda a: np.triu(a, 1), [L]),
}


@pytest.mark.parametrize("name", CASES)
def test_op_matches_numpy_forward_and_backward(name: str) -> None:
    check_case(CASES[name], rtol=2e-4, atol=3e-5)


def test_every_case_ran_on_our_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    check_ours(CASES.values(), capsys)


INTEGERS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "argmax": (lambda a: a.argmax(-1), X.argmax(-1)),
    "comparison": (lambda a: a >= 0.5, X >= 0.5),
    "and, not": (lambda a: ops.logical_and(a > 0, ~(a > 1)), (X > 0) & ~(X > 1)),
    "count": (lambda a: (a > 0).sum(), np.asarray((X > 0).sum())),
    "to int": (lambda a: a.astype(ms.int32), X.astype(np.int32)),
    "integer division": (lambda a: labels // 2, LABELS // 2),
    "integer true division": (lambda a: labels / 2, (LABELS / 2).astype(np.float32)),
    "bool times number": (lambda a: (a > 0) * 2, (X > 0) * 2),
    "any": (lambda a: (a > 1.9).any(), np.asarray((X > 1.9).any())),
    "isfinite": (lambda a: ops.isfinite(1 / (a - a)), np.zeros(X.shape, bool)),
    "one_hot": (lambda a: ops.one_hot(labels, 5, Tensor(1), Tensor(0)), np.eye(5, dtype=np.int64)[LABELS]),
    "arange": (lambda a: ops.arange(2, 10, 3), np.arange(2, 10, 3)),
    "mod": (lambda a: labels % 3, LABELS % 3),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_and_bool_results(name: str) -> None:
    expression, exact = INTEGERS[name]
    result = dvm.jit(lambda a: expression(a))(Tensor(X))
    plain = expression(Tensor(X))
    assert result.dtype == plain.dtype and result.shape == plain.shape
    np.testing.assert_array_equal(result.asnumpy(), exact)


def test_dropout_draws_one_mask_a_step_and_scales() -> None:
    layer = nn.Dropout(p=0.25).set_train()
    captured = dvm.jit(lambda a: layer(a))
    ones = Tensor(np.ones((64, 64), np.float32))
    ms.set_seed(3)
    total, gradient = ms.value_and_grad(lambda a: captured(a).sum(), 0)(ones)
    kept = gradient.asnumpy() != 0
    assert 0.7 < kept.mean() < 0.8
    np.testing.assert_allclose(gradient.asnumpy()[kept], 1 / 0.75, rtol=1e-6)
    assert float(total) == pytest.approx(float(gradient.sum()), rel=1e-5)  # the same mask forward and backward
    assert (captured(ones).asnumpy() != captured(ones).asnumpy()).any()  # another step, another mask
    assert (layer.set_train(False)(ones).asnumpy() == 1).all()


def test_label_out_of_range_is_an_error_at_the_users_line() -> None:
    captured = dvm.jit(lambda a: cross_entropy(a, Tensor(np.array([1, 5, 0], np.int32))))
    with pytest.raises(dvm.ArgumentError, match=r"test_mindspore_ops.py:\d+: a label of 5"):
        captured(Tensor(L))


@pytest.mark.parametrize("number", [2**53 + 1, 2**60 + 1, -(2**62) - 1])
def test_integers_no_float_holds_stay_exact(number: int) -> None:
    x = np.array([1, -2, number], np.int64)
    added, same = dvm.jit(lambda x: (x[:2] + number, x == number))(Tensor(x))
    assert added.asnumpy().tolist() == [number + 1, number - 2]
    assert same.asnumpy().tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", [ms.int8, ms.uint8, ms.int32])
@pytest.mark.parametrize("reduce", [lambda x: x.sum(), lambda x: ops.ReduceSum()(x), lambda x: mint.sum(x, 0, dtype=ms.int32)])
def test_sums_of_integers_have_mindspores_dtype(dtype: Any, reduce: Callable[[Any], Any]) -> None:
    x = Tensor(np.array([100, 100, 1]), dtype)
    found, expected = dvm.jit(reduce)(x), reduce(x)
    assert found.dtype == expected.dtype and found.asnumpy() == expected.asnumpy()
