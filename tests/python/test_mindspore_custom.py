"""Gradients the user wrote are kept inside a captured function, and hooks on gradients are refused, not forgotten."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.common._grad_function import _Function  # noqa: E402

import dvm_core as dvm  # noqa: E402

A = np.random.default_rng(5).uniform(-2, 2, (3, 4)).astype(np.float32)


class StraightThrough(nn.Cell):
    """round, with the gradient of the identity."""

    def construct(self, x: Any) -> Any:
        return ops.round(x)

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout,)


class Reversal(nn.Cell):
    """The identity, with the gradient turned around."""

    def construct(self, x: Any) -> Any:
        return x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (-dout,)


class Pair(nn.Cell):
    """Two arguments and two results; one argument gets no gradient."""

    def construct(self, x: Any, y: Any) -> Any:
        return x * y, x + y

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        assert out[0].shape == x.shape
        return 10 * dout[0] + dout[1], None


class Clipped(_Function):
    """The identity, with a gradient no larger than what it was told."""

    @staticmethod
    def forward(ctx: Any, x: Any, limit: float) -> Any:
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        assert ctx.saved_tensors[0].shape == gradient.shape
        return ops.clamp(gradient, -ctx.limit, ctx.limit), None


through, reverse, pair = StraightThrough(), Reversal(), Pair()

CASES: dict[str, tuple[Any, np.ndarray]] = {
    "cell": (lambda x: (through(x * 3) * 2).sum(), np.full_like(A, 6)),
    "cell twice": (lambda x: through(through(x) * 2).sum(), np.full_like(A, 2)),
    "identity cell": (lambda x: (reverse(x) * x).sum() + x.sum(), 1 + A - A),
    "identity cell of a result": (lambda x: (reverse(x * 2)).sum() + (x * 2).sum(), np.zeros_like(A)),
    "two in, two out": (lambda x: sum(t.sum() for t in pair(x * 2, x)), np.full_like(A, 22)),
    "one result used": (lambda x: pair(x * 2, x)[1].sum(), np.full_like(A, 2)),
    "autograd function": (lambda x: (Clipped.apply(x * 2, 0.5) * x).sum(), 2 * np.clip(A, -0.5, 0.5) + 2 * A),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_written_by_the_user_is_used(name: str) -> None:
    function, exact = CASES[name]
    plain = ms.grad(function)(Tensor(A)).asnumpy()
    captured = ms.grad(dvm.jit(lambda x: function(x)))(Tensor(A)).asnumpy()
    np.testing.assert_allclose(captured, exact, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plain, exact, rtol=1e-5, atol=1e-6)


def test_forward_alone_runs_in_one_program() -> None:
    from dvm_core import _core

    before = _core.stats()["programs"]
    result = dvm.jit(lambda x: through(x * 3) * 2)(Tensor(A))
    assert _core.stats()["programs"] == before + 1
    np.testing.assert_array_equal(result.asnumpy(), np.round(A * 3) * 2)


def test_weights_around_a_custom_gradient_get_theirs() -> None:
    weight = Parameter(Tensor(A), name="weight")
    gradient = ms.grad(dvm.jit(lambda x: (through(x * weight) * weight).sum()), None, [weight])(Tensor(A))
    found = gradient[0] if isinstance(gradient, tuple) else gradient
    np.testing.assert_allclose(found.asnumpy(), np.round(A * A) + A * A, rtol=1e-5, atol=1e-6)


def test_hooks_on_gradients_are_refused() -> None:
    def hooked(x: Any) -> Any:
        h = x * 2
        h.register_hook(lambda gradient: gradient * 0)
        return h.sum()

    with pytest.raises(dvm.UnsupportedError, match=r"test_mindspore_custom.py:\d+: a hook on a tensor's gradient"):
        ms.grad(dvm.jit(hooked))(Tensor(A))
    dense = nn.Dense(4, 2)
    dense.register_backward_hook(lambda cell, grad_in, grad_out: None)
    with pytest.raises(dvm.UnsupportedError, match="the cell Dense has backward hooks"):
        ms.grad(dvm.jit(lambda x: dense(x).sum()))(Tensor(A))
