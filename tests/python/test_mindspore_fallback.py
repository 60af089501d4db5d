"""Ops we lack run in MindSpore, forward and backward, with one notice that names op and line."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from gradient_reference import differences, weights  # noqa: E402
from mindspore import Tensor, mint, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import notices  # noqa: E402

A = np.random.default_rng(3).uniform(0.2, 2, (3, 4)).astype(np.float32)


def gradient(function: Any, *arrays: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    captured = dvm.jit(function)

    def weighted(*tensors: Tensor) -> Any:
        result = captured(*tensors)
        return (result * Tensor(weights(result.shape))).sum(), result

    (_, result), found = ms.value_and_grad(weighted, tuple(range(len(arrays))), None, has_aux=True)(*map(Tensor, arrays))
    return result.asnumpy(), [g.asnumpy() for g in (found if isinstance(found, tuple) else (found,))]


CASES = {
    "cumsum in the middle": (lambda a: ops.tanh(ops.cumsum(a * 2, 1)) + a, lambda a: np.tanh(np.cumsum(a * 2, 1)) + a, [A]),
    "first op": (lambda a: ops.log1p(a) * 3, lambda a: np.log1p(a) * 3, [A]),
    "last op": (lambda a: ops.log1p(a * 3), lambda a: np.log1p(a * 3), [A]),
    "only op": (lambda a: ops.log1p(a), np.log1p, [A]),
    "twice in a row": (lambda a: ops.log1p(ops.log1p(a)), lambda a: np.log1p(np.log1p(a)), [A]),
    "two operands": (lambda a, b: ops.xlogy(a, b) * a, lambda a, b: a * np.log(b) * a, [A, A[::-1].copy()]),
    "one operand twice": (lambda a: ops.xlogy(a, a), lambda a: a * np.log(a), [A]),
    "result used twice": (lambda a: ops.log1p(a) * ops.exp(ops.log1p(a)), lambda a: np.log1p(a) * (1 + a), [A]),
    "a number that MindSpore computes": (lambda a: ops.log1p(a.sum()) * a / 3, lambda a: np.log1p(a.sum()) * a / 3, [A]),
    "several results": (lambda a: ops.topk(a, 2)[0] * 2, lambda a: -np.sort(-a, 1)[:, :2] * 2, [A]),
}


@pytest.mark.parametrize("name", CASES)
def test_fallback_op_forward_and_backward(name: str) -> None:
    function, reference, arrays = CASES[name]
    result, found = gradient(function, *arrays)
    np.testing.assert_allclose(result, reference(*[a.astype(np.float64) for a in arrays]), rtol=1e-5)
    for ours, exact in zip(found, differences(reference, arrays), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=2e-4, atol=1e-4)


def test_one_notice_with_op_and_line_however_often_it_runs() -> None:
    told: list[dict[str, Any]] = []
    notices.add_sink(told.append)
    try:
        captured = dvm.jit(lambda a: ops.erfinv(a / 3) * 2)
        for _ in range(3):
            captured(Tensor(A))
    finally:
        notices.remove_sink(told.append)
    (only,) = told
    assert "Erfinv" in only["text"] and only["path"] == __file__ and only["category"] == "fallback"
    with open(__file__, encoding="utf-8") as file:
        assert "ops.erfinv" in file.readlines()[only["line"] - 1]


def test_convolution_network_trains_like_mindspores_own() -> None:
    images = Tensor(np.random.default_rng(0).normal(size=(4, 1, 8, 8)).astype(np.float32))
    wanted = Tensor(np.array([0, 1, 2, 1], np.int32))

    def train(capture: bool) -> list[float]:
        ms.set_seed(2)
        np.random.seed(2)
        network = nn.SequentialCell(nn.Conv2d(1, 4, 3, has_bias=True), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
                                    nn.Dense(64, 3))
        network.set_train()
        loss_fn = lambda x, y: ops.cross_entropy(network(x), y)  # noqa: E731
        gradient = ms.value_and_grad(dvm.jit(loss_fn) if capture else loss_fn, None, network.trainable_params())
        optimizer = nn.SGD(network.trainable_params(), 0.1)
        found = []
        for _ in range(3):
            loss, gradients = gradient(images, wanted)
            optimizer(gradients)
            found.append(float(loss))
        return [*found, float(network[1].moving_mean.sum()), float(network[1].moving_variance.sum())]

    np.testing.assert_allclose(train(True), train(False), rtol=1e-4)


def test_op_without_a_kernel_anywhere_says_so_at_the_line() -> None:
    with pytest.raises(dvm.UnsupportedError, match=r"test_mindspore_fallback.py:\d+: CumminExt: MindSpore has no kernel"):
        dvm.jit(lambda a: mint.cummin(a, 0))(Tensor(A))
    np.testing.assert_array_equal(dvm.jit(lambda a: a + 1)(Tensor(A)).asnumpy(), A + 1)
