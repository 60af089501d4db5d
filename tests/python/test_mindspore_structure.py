"""What goes in and out of a captured MindSpore function: structures, parameters, nesting, views, ms.jit, counters."""
from __future__ import annotations

import collections
import sys
import types
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore_capture_kit import A, check, value_and_gradient  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402


def test_results_in_any_structure() -> None:
    pair = collections.namedtuple("pair", "left right")
    result = dvm.jit(lambda x: {"a": [x * 2, (x + 1, None)], "b": pair(x, 3)})(Tensor(A))
    np.testing.assert_array_equal(result["a"][0].asnumpy(), A * 2)
    np.testing.assert_array_equal(result["a"][1][0].asnumpy(), A + 1)
    assert result["a"][1][1] is None and result["b"].right == 3
    np.testing.assert_array_equal(result["b"].left.asnumpy(), A)


def test_gradients_of_several_results_and_of_an_input_returned_as_it_is() -> None:
    captured = dvm.jit(lambda x: (x * 3, x, x * 3, x.sum()))

    def total(x: Any) -> Any:
        a, b, c, d = captured(x)
        return (a + 10 * b + 100 * c).sum() + 1000 * d

    gradient = ms.grad(total)(Tensor(A))
    np.testing.assert_allclose(gradient.asnumpy(), np.full(A.shape, 3 + 10 + 300 + 1000, np.float32))


def test_one_result_twice() -> None:
    def twice(x: Any) -> Any:
        h = x * 3
        return h, h

    captured = dvm.jit(twice)
    gradient = ms.grad(lambda x: (captured(x)[0] + captured(x)[1]).sum())(Tensor(A))
    np.testing.assert_allclose(gradient.asnumpy(), np.full(A.shape, 6, np.float32))


def test_result_that_is_a_parameter() -> None:
    weight = Parameter(Tensor(A), name="weight")
    loss, gradient = ms.value_and_grad(lambda x: (dvm.jit(lambda y: (y * weight, weight))(x)[0]).sum(), None, [weight])(Tensor(A))
    np.testing.assert_allclose(gradient[0].asnumpy() if isinstance(gradient, tuple) else gradient.asnumpy(), A)
    assert float(loss) == pytest.approx(float((A * A).sum()), rel=1e-5)


def test_nested_captured_functions_are_one_program() -> None:
    inner = dvm.jit(lambda x: ops.tanh(x) + 1)
    outer = dvm.jit(lambda x: inner(x) * inner(x))
    before = _core.stats()["programs"]
    outer(Tensor(A))
    assert _core.stats()["programs"] == before + 1
    check(lambda x: inner(x) * inner(x), lambda x: (np.tanh(x) + 1) ** 2)


def test_captured_functions_one_after_the_other() -> None:
    first, second = dvm.jit(lambda x: ops.tanh(x)), dvm.jit(lambda x: x * x)
    gradient = ms.grad(lambda x: second(first(x) * 2).sum())(Tensor(A))
    t = np.tanh(A.astype(np.float64))
    np.testing.assert_allclose(gradient.asnumpy(), 8 * t * (1 - t * t), rtol=1e-4, atol=1e-5)


def test_ms_jit_function_inside_is_captured_with_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    @ms.jit
    def square(x: Any) -> Any:
        return x * x

    check(lambda x: square(x) + 1, lambda x: x * x + 1)
    assert "square is a ms.jit function inside the captured function" in capsys.readouterr().err.replace("\n", " ")


def test_tensor_kept_beyond_the_call_is_filled_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    kept = []

    def function(x: Any) -> Any:
        kept.append(ops.exp(x))
        return kept[-1] * 2

    value_and_gradient(function)
    np.testing.assert_allclose(kept[0].asnumpy(), np.exp(A), rtol=1e-5)
    assert "outlives the captured function" in capsys.readouterr().err


def test_under_a_debugger_a_tensor_that_a_frame_held_for_a_moment_is_not_reported(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydevd", types.ModuleType("pydevd"))
    kept: list[Any] = []
    holds: list[bool] = []

    def function(x: Any) -> Any:
        h = ops.exp(x)
        kept[:] = [h] if holds[-1] else []
        return (h * 2).sum()

    gradient = ms.grad(dvm.jit(function))
    told = []
    for held in (True, False, True, True):
        holds.append(held)
        gradient(Tensor(A))
        told.append("outlives the captured function" in capsys.readouterr().err)
    assert told == [False, False, False, True]


def test_gradient_of_a_gradient_is_refused() -> None:
    captured = dvm.jit(lambda x: (x * x * x).sum())
    with pytest.raises(dvm.UnsupportedError, match="gradient of a gradient"):
        ms.grad(lambda x: ms.grad(captured)(x).sum())(Tensor(A))


def test_views_made_outside_are_inputs_of_their_own() -> None:
    whole = Tensor(A)
    part, flat = whole[1:3], whole.reshape(-1)
    result = dvm.jit(lambda: whole.sum() + 10 * part.sum() + 100 * flat.sum())()
    assert float(result) == pytest.approx(float(101 * A.sum() + 10 * A[1:3].sum()), rel=1e-4)


def test_strided_view_made_outside() -> None:
    view = ms.mint.transpose(Tensor(A), 0, 2)
    assert not view.is_contiguous()
    np.testing.assert_array_equal(dvm.jit(lambda: view * 2)().asnumpy(), A.transpose(2, 1, 0) * 2)


def test_argument_still_being_computed_is_waited_for() -> None:
    x = Tensor(np.ones((256, 256), np.float32))
    captured = dvm.jit(lambda h: h + 1)
    for _ in range(3):
        h = x
        for _ in range(20):
            h = h * 1.0 + 0.0
        np.testing.assert_array_equal(captured(h).asnumpy(), 2)


def test_empty_batch() -> None:
    np.testing.assert_array_equal(dvm.jit(lambda x: (x * 2).sum(-1))(Tensor(np.zeros((0, 3), np.float32))).asnumpy(), np.zeros(0))


def test_dropped_intermediates_are_not_kept() -> None:
    def function(x: Any) -> Any:
        for _ in range(5):
            x = x * 1.5 + 1
        return x

    captured = dvm.jit(function)
    captured(Tensor(A))
    program = _core.programs()[-1]
    assert len(program.kept()) == program.input_count + 1


class Counter(nn.Cell):
    """A cell that changes its own state."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Parameter(Tensor(0.0, ms.float32), name="calls", requires_grad=False)

    def construct(self, x: Any) -> Any:
        ops.assign_add(self.calls, Tensor(1.0, ms.float32))
        return x * self.calls


def test_assigning_to_a_parameter_inside() -> None:
    cell = Counter()
    captured = dvm.jit(lambda x: cell(x))
    for n in (1, 2, 3):
        np.testing.assert_allclose(captured(Tensor(A)).asnumpy(), A * n, rtol=1e-6)
        assert float(cell.calls) == n
