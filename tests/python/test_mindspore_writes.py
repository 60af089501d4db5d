"""Captured MindSpore code that writes in place: right and differentiable, or refused with the line."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor  # noqa: E402
from mindspore_capture_kit import A, check, value_and_gradient  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import capture  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402


def _set(index: Any, value: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        h = x * 2
        h[index] = value(x) if callable(value) else value
        return h * h
    return function


def _set_numpy(index: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def function(x: np.ndarray) -> np.ndarray:
        h = x * 2
        h[index] = value(x) if callable(value) else value
        return h * h
    return function


@pytest.mark.parametrize("index", [0, (slice(None), 1), (slice(1, 3), slice(None, None, 2)), (..., -1), slice(None)], ids=str)
@pytest.mark.parametrize("value", [3.0, lambda x: x[0, 0, 0]], ids=["number", "tensor"])
def test_assignment_to_elements_is_right_and_differentiable(index: Any, value: Any) -> None:
    check(_set(index, value), _set_numpy(index, value))


def test_assignment_through_a_mask() -> None:
    def function(x: Any) -> Any:
        h = x * 1.0
        h[x > 0] = -1.0
        return h * x

    check(function, lambda x: np.where(x > 0, -1.0, x) * x)


def test_plus_equals_makes_a_new_tensor() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        h += x
        h -= 1
        h *= x
        return h

    check(function, lambda x: (3 * x - 1) * x)


def test_copy_into_a_tensor() -> None:
    def function(x: Any) -> Any:
        h = x * 0
        h.copy_(x * x)
        return h + 1

    check(function, lambda x: x * x + 1)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "write into a view": lambda x: _do(x[0], lambda v: v.__setitem__(0, 1.0)),
    "write below a view": lambda x: _view_then_write(x * 2),
    "tensor that wants a gradient": lambda x: x.__setitem__(0, 1.0),
    "unknown op in place": lambda x: (x * 2).normal_(0, 1),
    "gradient inside": lambda x: ms.grad(lambda y: (y * y).sum())(x),
}


def _do(value: Any, action: Callable[[Any], Any]) -> Any:
    action(value)
    return value


def _view_then_write(h: Any) -> Any:
    view = h.reshape(-1)
    h[0] = 1.0
    return view


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused_with_the_line(name: str) -> None:
    with pytest.raises(dvm.UnsupportedError, match=r"test_mindspore_writes.py:\d+: .*captured function"):
        ms.value_and_grad(dvm.jit(lambda x: REFUSED[name](x)), 0)(Tensor(A))
    assert capture.active() is None and compat.mode_depth() == 0


def test_assigning_to_elements_of_an_argument_reads_its_old_values() -> None:
    def function(x: Any) -> Any:
        x[0] = 0.0  # the argument's memory is let go here, and read when the program runs
        return x * 2

    for _ in range(5):
        given = Tensor(np.full((300, 400), 3, np.float32)) + 1
        result = dvm.jit(function)(given)
        assert (result.asnumpy()[1:] == 8).all() and (given.asnumpy()[1:] == 4).all()
        assert not result.asnumpy()[0].any() and not given.asnumpy()[0].any()


def test_write_into_a_view_under_no_grad_is_refused() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        with ms._no_grad():
            h[0].copy_(h[1])
        return h

    with pytest.raises(dvm.UnsupportedError, match="view"):
        value_and_gradient(function)
