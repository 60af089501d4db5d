"""What MindSpore does behind a capture's back that was silently wrong once."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, mint, nn, ops  # noqa: E402
from mindspore_capture_kit import A  # noqa: E402

import dvm_core as dvm  # noqa: E402


def test_no_grad_inside_stops_the_gradient() -> None:
    def function(x: Any) -> Any:
        with ms._no_grad():
            y = x * 2
            z = ops.log1p(x)  # MindSpore runs it
        return y * x + z + x[0, 0, 0]

    x = Tensor(np.abs(A))
    np.testing.assert_allclose(ms.grad(dvm.jit(function))(x).asnumpy(), ms.grad(function)(x).asnumpy(), rtol=1e-6)


TIES: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: ops.maximum(x, 1.0), "minimum": lambda x: ops.minimum(1.0, x), "tensors": lambda x: ops.maximum(x, x * x),
    "clip": lambda x: ops.clip_by_value(x, 0.0, 1.0), "clamp": lambda x: ops.clamp(x, 0.0, 1.0), "hardtanh": lambda x: ops.hardtanh(x),
    "relu": lambda x: ops.relu(x), "relu6": lambda x: ops.relu6(x * 6), "leaky relu": lambda x: ops.leaky_relu(x, 0.1),
    "softplus": lambda x: ops.softplus(x), "logsigmoid": lambda x: ops.logsigmoid(x), "logaddexp": lambda x: ops.logaddexp(x, x * 0),
    "binary cross entropy": lambda x: nn.BCEWithLogitsLoss(reduction="none")(x, Tensor(np.array([1, 0, 1, 1], np.float32))),
}


@pytest.mark.parametrize("name", TIES)
def test_gradients_at_kinks_and_ties_are_mindspores(name: str) -> None:
    function = TIES[name]
    x = Tensor(np.array([0, 0, 1, -2], np.float32))
    np.testing.assert_allclose(ms.grad(dvm.jit(function))(x).asnumpy(), ms.grad(function)(x).asnumpy(), rtol=1e-5)


def test_integers_and_numbers_in_logical_ops() -> None:
    function = lambda x: (x & 3, x | 1, x ^ 2, ~x)  # noqa: E731
    x = Tensor(np.arange(-6, 6).reshape(3, 4))
    for ours, theirs in zip(dvm.jit(function)(x), function(x), strict=True):
        assert ours.dtype == theirs.dtype and (ours.asnumpy() == theirs.asnumpy()).all()


BEFORE = {
    "exp": ops.exp, "tanh": ops.tanh, "sqrt": ops.sqrt, "softmax": lambda t: ops.softmax(t) * t, "matmul": lambda t: ops.matmul(t, t),
    "concat": lambda t: ops.cat((t, t)), "rank 0": lambda t: ops.exp(t.mean()) * t}


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("name", BEFORE)
def test_a_tensor_that_an_op_made_before_the_capture_is_an_operand_like_any_other(name: str, mode: str) -> None:
    """MindSpore does not dispatch a primitive whose tensors are all results of its own ops: the op was lost, and the gradient was zero."""
    function = BEFORE[name]
    x = Tensor(np.random.default_rng(0).uniform(0.5, 2, (4, 4)).astype(np.float32))
    captured = dvm.jit(lambda t: function(t).sum(), mode=mode)
    want = ms.value_and_grad(lambda a: function(a * 2).sum(), 0)(x)
    for _ in range(2):  # traced, then replayed
        got = ms.value_and_grad(lambda a: captured(a * 2), 0)(x)
    for ours, own in zip(got, want, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), own.asnumpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("join", [ops.cat, ops.concat, ops.stack, ops.hstack, mint.cat, mint.concat])
def test_tensors_in_a_list_are_operands_as_those_in_a_tuple(join: Callable[..., Any]) -> None:
    """MindSpore does not dispatch a primitive whose tensors are in a list: it read memory that was not filled yet."""
    function = lambda t: (join([t * 2, t[:, ::1] + 1]) * t.sum()).sum()  # noqa: E731
    x = Tensor(np.abs(A))
    for ours, theirs in zip(ms.value_and_grad(dvm.jit(function))(x), ms.value_and_grad(lambda t: function(t))(x), strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-4)


def test_mindspore_tensors_are_not_given_away() -> None:
    function = dvm.jit(lambda x: x * 2, mode="graph", donate=(0,))
    for _ in range(2):
        with pytest.raises(dvm.ArgumentError, match="was called with MindSpore tensors"):
            function(Tensor(A))


def test_a_tensor_changed_by_assignment_is_no_lost_one(capsys: pytest.CaptureFixture[str]) -> None:
    weight = Parameter(Tensor(A), name="w")

    @dvm.jit
    def changed(x):
        y = x * weight
        y[0] = 9.0
        return (y * y).sum()

    ms.value_and_grad(changed, None, [weight])(Tensor(A))
    assert "outlives" not in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("number", [300, -200, 2**31 + 5, -1])
def test_whole_numbers_wrap_around_as_mindspores_do(dtype, number: int) -> None:
    x = Tensor(np.array([1, 44, 100], dtype))
    for use in (lambda t: t + number, lambda t: t * number, lambda t: t & number, lambda t: t == number, lambda t: t < number,
                lambda t: ops.maximum(t, number), lambda t: ops.clamp(t, None, number)):
        found, expected = dvm.jit(use)(x), use(x)
        assert found.dtype == expected.dtype and found.asnumpy().tolist() == expected.asnumpy().tolist()
