"""Layers of convolution and recurrent networks in a captured function: MindSpore's values and gradients, all on our instructions."""
from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from gradient_reference import differences, weights  # noqa: E402
from mindspore import Parameter, ParameterTuple, Tensor, mint, nn, ops  # noqa: E402
from window_reference import through  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402
from dvm_core.frontends import mindspore_optimizers, notices  # noqa: E402

random = np.random.default_rng(7)


def tensor(*shape: int) -> Tensor:
    return Tensor(random.standard_normal(shape).astype(np.float32))


@pytest.fixture(autouse=True)
def nothing_runs_in_mindspore():
    told: list[dict[str, Any]] = []
    notices.add_sink(told.append)
    yield
    notices.remove_sink(told.append)
    assert not [note for note in told if note.get("category") == "fallback"]


IMAGE, ROW, SEQUENCE, SCORES = tensor(2, 4, 9, 8), tensor(2, 4, 9), tensor(5, 3, 4), tensor(3, 5)
LABELS, LENGTHS = Tensor([1, 2, 3], ms.int32), Tensor([5, 3, 2], ms.int32)
STATE, CELL = tensor(1, 3, 6), tensor(1, 3, 6)
TWO_STATES, TWO_CELLS = tensor(2, 3, 6), tensor(2, 3, 6)


def lstm(**options: Any) -> Callable[..., Any]:
    layer = nn.LSTM(4, 6, **options)
    h, c = (TWO_STATES, TWO_CELLS) if options else (STATE, CELL)
    return lambda x, *lengths: layer(x, (h, c), *lengths)


def classifier(**options: Any) -> Callable[[Any], Any]:
    loss = nn.CrossEntropyLoss(**options)
    return lambda x: loss(x, LABELS)


ONE_WAY, TWO_WAYS = lstm(), lstm(bidirectional=True)
LSTM_CELL, GRU, RNN, TABLE = nn.LSTMCell(4, 6), nn.GRU(4, 6), nn.RNN(4, 6), nn.Embedding(10, 8)

CASES: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "conv": (nn.Conv2d(4, 8, 3), IMAGE),
    "conv strided": (nn.Conv2d(4, 8, 3, stride=2), IMAGE),
    "conv padded, bias": (nn.Conv2d(4, 8, 3, stride=2, pad_mode="pad", padding=(1, 2, 0, 3), has_bias=True), IMAGE),
    "conv groups dilated": (nn.Conv2d(4, 8, 3, group=2, dilation=2), IMAGE),
    "conv depthwise": (nn.Conv2d(4, 4, (2, 3), stride=(2, 1), group=4, pad_mode="valid"), IMAGE),
    "conv one dimension": (nn.Conv1d(4, 6, 3, has_bias=True), ROW),
    "conv transposed": (nn.Conv2dTranspose(4, 6, 3, stride=2, has_bias=True), IMAGE),
    "conv transposed valid": (nn.Conv2dTranspose(4, 6, 3, stride=2, pad_mode="valid"), IMAGE),
    "max pool": (nn.MaxPool2d(2, 2), IMAGE),
    "max pool same": (nn.MaxPool2d(3, 2, pad_mode="same"), IMAGE),
    "max pool padded": (nn.MaxPool2d(3, 2, pad_mode="pad", padding=1, ceil_mode=True), IMAGE),
    "max pool with places": (nn.MaxPool2d(3, 2, pad_mode="pad", padding=1, return_indices=True), IMAGE),
    "max pool dilated": (lambda x: ops.max_pool2d(x, 3, 2, 1, dilation=2), IMAGE),
    "max pool one dimension": (nn.MaxPool1d(2, 2), ROW),
    "avg pool": (nn.AvgPool2d(2, 2), IMAGE),
    "avg pool same": (nn.AvgPool2d(3, 2, pad_mode="same"), IMAGE),
    "avg pool padded": (nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, ceil_mode=True), IMAGE),
    "avg pool without padding": (nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, ceil_mode=True, count_include_pad=False), IMAGE),
    "avg pool one dimension": (nn.AvgPool1d(2, 2), ROW),
    "adaptive avg pool": (nn.AdaptiveAvgPool2d((4, 3)), IMAGE),
    "adaptive avg pool of all": (nn.AdaptiveAvgPool2d(1), IMAGE),
    "adaptive max pool": (nn.AdaptiveMaxPool2d((3, 4)), IMAGE),
    "batch norm": (nn.BatchNorm2d(4), IMAGE),
    "batch norm of rows": (nn.BatchNorm1d(4), tensor(3, 4)),
    "group norm": (nn.GroupNorm(2, 4), IMAGE),
    "flatten": (nn.Flatten(), IMAGE),
    "lstm": (lstm(), SEQUENCE),
    "lstm of two layers": (lstm(num_layers=2), SEQUENCE),
    "lstm of two directions": (lstm(bidirectional=True), SEQUENCE),
    "lstm with lengths": (lambda x: ONE_WAY(x, LENGTHS), SEQUENCE),
    "lstm of two directions with lengths": (lambda x: TWO_WAYS(x, LENGTHS), SEQUENCE),
    "lstm cell": (lambda x: LSTM_CELL(x[0], (STATE[0], CELL[0])), SEQUENCE),
    "gru": (lambda x: GRU(x, STATE, LENGTHS), SEQUENCE),
    "rnn": (lambda x: RNN(x, STATE), SEQUENCE),
    "embedding": (lambda x: TABLE(Tensor([[1, 2], [9, 2]], ms.int32)) * x[0, 0, 0], IMAGE),
    "cross entropy": (classifier(), SCORES),
    "cross entropy smoothed": (classifier(label_smoothing=0.1, reduction="none"), SCORES),
    "cross entropy ignoring": (classifier(ignore_index=2, reduction="sum"), SCORES),
    "cross entropy weighted": (classifier(weight=Tensor(np.arange(1, 6, dtype=np.float32)), label_smoothing=0.2, ignore_index=3), SCORES),
    "cross entropy of planes": (lambda x: nn.CrossEntropyLoss()(x, Tensor(np.arange(8).reshape(2, 4) % 3, ms.int32)), tensor(2, 3, 4)),
    **{name: (getattr(nn, name)(), IMAGE) for name in (
        "PReLU", "Mish", "HSwish", "HSigmoid", "CELU", "Softsign", "SoftShrink", "HShrink", "FastGelu", "GELU", "SiLU", "ELU", "LeakyReLU",
        "ReLU6", "LogSigmoid", "Tanhshrink", "GLU")},
}


def results(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [item for part in found for item in results(part)]


def weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    def total(*operands: Any) -> Any:
        return sum((r * Tensor(weights(r.shape))).sum() for r in results(function(*operands)) if r.dtype == ms.float32)
    return total


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_mindspores_forward_and_backward(name: str) -> None:
    layer, x = CASES[name]
    captured = dvm.jit(lambda x: layer(x))
    for ours, theirs in zip(results(captured(x)), results(layer(x)), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-5)
    parameters = ParameterTuple(layer.trainable_params()) if isinstance(layer, nn.Cell) else ParameterTuple(())
    if not parameters:
        ours, theirs = ms.grad(weighted(captured))(x), ms.grad(weighted(layer))(x)
        return np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-4, atol=1e-4)
    (ours, own), (theirs, other) = (ms.grad(weighted(f), 0, parameters)(x) for f in (captured, layer))
    for a, b in ((ours, theirs), *zip(own, other, strict=True)):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=2e-4)
    return None


def test_batch_norm_trains_and_its_running_statistics_follow() -> None:
    ours, theirs = nn.BatchNorm2d(4).set_train(), nn.BatchNorm2d(4).set_train()
    captured = dvm.jit(lambda x: ours(x))
    for _ in range(3):
        x = tensor(3, 4, 5, 6)
        gradient = [ms.grad(lambda x, f=f: (f(x) ** 3).sum(), 0, ParameterTuple(cell.trainable_params()))(x)
                    for f, cell in ((captured, ours), (theirs, theirs))]
        for a, b in zip((gradient[0][0], *gradient[0][1]), (gradient[1][0], *gradient[1][1]), strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-3, atol=1e-3)
        for name in ("moving_mean", "moving_variance"):
            np.testing.assert_allclose(getattr(ours, name).asnumpy(), getattr(theirs, name).asnumpy(), rtol=1e-5, atol=1e-6)
    assert abs(ours.moving_mean.asnumpy()).max() > 0


# ---- what MindSpore has no kernels for on a CPU ------------------------------------------------------------------------------------------

W = random.standard_normal((6, 4, 3, 3)).astype(np.float32)
X = random.standard_normal((2, 4, 6, 5)).astype(np.float32)


def conv(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    size = [(extent + 2 * pad - 3) // stride + 1 for extent in x.shape[2:]]
    return sum(np.einsum("ncyx,oc->noyx", through(x, size, ty, tx, (stride,) * 2, (pad,) * 2, (1, 1)), w[:, :, ty, tx])
               for ty in range(3) for tx in range(3))


def pooled(x: np.ndarray, reduce: Callable[..., Any]) -> np.ndarray:
    return reduce(x[..., :4].reshape(2, 4, 3, 2, 2, 2), axis=(3, 5))


F = mint.nn.functional
MINT: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray], list[np.ndarray]]] = {
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), lambda x, w: conv(x, w, 2, 1), [X, W]),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), lambda x, w: conv(x, w, 1, 1), [X, W]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), lambda x: pooled(x, np.max), [X]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), lambda x: pooled(x, np.mean), [X]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (1, 1)), lambda x: x.mean((2, 3), keepdims=True), [X]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True),
                   lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5), [X]),
    "selu": (lambda x: ops.selu(x), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), [X]),
}


@pytest.mark.parametrize("name", MINT)
def test_an_op_without_a_kernel_of_mindspores(name: str) -> None:
    function, reference, arrays = MINT[name]
    captured = dvm.jit(lambda *operands: function(*operands))
    operands = [Tensor(array) for array in arrays]
    np.testing.assert_allclose(captured(*operands).asnumpy(), reference(*[a.astype(np.float64) for a in arrays]), rtol=1e-5, atol=1e-5)
    found = ms.grad(weighted(captured), tuple(range(len(arrays))))(*operands)
    for ours, numeric in zip(found if isinstance(found, tuple) else (found,), differences(reference, arrays), strict=True):
        np.testing.assert_allclose(ours.asnumpy(), numeric, rtol=2e-4, atol=5e-5)


# ---- optimizers --------------------------------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "momentum": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01),
    "momentum, rate by step": lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 4), 0.9),
    "sgd": lambda p: nn.SGD(p, 0.1),
    "sgd with momentum": lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "sgd nesterov": lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: nn.Adam(p, 0.1),
    "adam nesterov": lambda p: nn.Adam(p, 0.1, use_nesterov=True),
    "adam with weight decay": lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_inside_a_captured_function_moves_parameters_and_states_alike(name: str) -> None:
    start, gradients = random.standard_normal((3, 2)).astype(np.float32), [(tensor(3, 2),) for _ in range(4)]
    theirs, ours = (OPTIMIZERS[name](ParameterTuple([Parameter(Tensor(start), name="a")])) for _ in range(2))
    captured = dvm.jit(lambda g: ours(g))
    for g in gradients:
        theirs(g)
        captured(g)
    for a, b in zip(ours.get_parameters(), theirs.get_parameters(), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6, err_msg=a.name)


def test_the_memory_log_tells_parameters_from_states_and_keeps_none_that_was_replaced() -> None:
    parameter = Parameter(Tensor(np.ones((16, 8), np.float32)), name="a")
    optimizer = nn.Adam(ParameterTuple([parameter]), 0.1)
    captured = dvm.jit(lambda g: optimizer(g))
    _core.memory_log(True)
    try:
        for _ in range(3):
            captured((tensor(16, 8),))
        live = [e for e in _core.memory_events() if e["freed"] < 0 and e["bytes"] == 512]
        assert collections.Counter(e["cls"] for e in live if e["program"] > 0) == {"optimizer": 2, "parameter": 1}
        assert {e["address"] for e in live if e["cls"] == "parameter"} == {parameter.data_ptr()}
    finally:
        _core.memory_log(False)


def test_nesterov_momentum_is_what_its_formula_says() -> None:  # MindSpore's own kernel on a CPU leaves it out
    parameter = Parameter(Tensor(np.ones(3, np.float32)), name="a")
    optimizer = nn.Momentum(ParameterTuple([parameter]), 0.1, 0.9, use_nesterov=True)
    captured = dvm.jit(lambda g: optimizer(g))
    value, speed = np.ones(3), np.zeros(3)
    for _ in range(3):
        g = tensor(3)
        captured((g,))
        speed = 0.9 * speed + g.asnumpy()
        value = value - 0.1 * (g.asnumpy() + 0.9 * speed)
    np.testing.assert_allclose(parameter.asnumpy(), value, rtol=1e-5)


def test_a_factor_that_is_the_first_value_of_a_program_is_not_taken_for_zero() -> None:
    assert mindspore_optimizers._counts(0) and mindspore_optimizers._counts(0.5) and not mindspore_optimizers._counts(0.0)
