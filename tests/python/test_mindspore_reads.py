"""Values that captured MindSpore code reads early, and exceptions inside: the next call is as good as the first."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, ops  # noqa: E402
from mindspore_capture_kit import A, check  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import capture  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402

READS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda t: bool(t > 0),
    "float": float,
    "int": lambda t: int(t.astype(ms.int32)),
    "item": lambda t: t.item(),
    "asnumpy": lambda t: t.asnumpy(),
    "str": str,
    "repr": repr,
    "tolist": lambda t: t.tolist(),
    "numpy function": lambda t: np.abs(t.asnumpy()),
    "index": lambda t: [1, 2, 3][(t * 0).astype(ms.int32)],
}


@pytest.mark.parametrize("name", READS)
def test_value_read_inside_is_computed_and_the_gradient_survives(name: str) -> None:
    seen = []

    def function(x: Any) -> Any:
        h = ops.tanh(x)
        seen.append(READS[name](h.sum() * 0 + 3))
        return h * h

    check(function, lambda x: np.tanh(x) ** 2)
    assert "3" in str(seen[0]) or seen[0] is True or name == "index"


def test_data_dependent_branch_takes_the_branch_of_its_data() -> None:
    def function(x: Any) -> Any:
        h = x * 2
        return h * x if h.sum() > 0 else h + 1

    for sign in (1, -1):
        array = np.abs(A) * sign
        check(function, lambda x, sign=sign: 2 * x * x if sign > 0 else 2 * x + 1, array.astype(np.float32))


def test_print_op_reads_computed_values(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        h = x.sum() * 0 + 41
        ops.Print()(h)
        return h

    dvm.jit(function)(Tensor(A))
    ms.runtime.synchronize()
    assert "41" in capfd.readouterr().out


def test_exception_leaves_no_mode_behind_and_the_next_call_works() -> None:
    broken = [True]

    def function(x: Any) -> Any:
        h = x * 2
        if broken[0]:
            raise ValueError("on purpose")
        return h

    captured = dvm.jit(function)
    for _ in range(2):
        with pytest.raises(ValueError, match="on purpose"):
            captured(Tensor(A))
        assert capture.active() is None and not capture.captures() and compat.mode_depth() == 0 and compat.enable_grad()
    broken[0] = False
    np.testing.assert_array_equal(captured(Tensor(A)).asnumpy(), A * 2)
    np.testing.assert_array_equal((Tensor(A) * 3).asnumpy(), A * 3)


def test_exception_caught_inside_goes_on() -> None:
    def function(x: Any) -> Any:
        try:
            h = x @ x[:, :, :2]
        except dvm.Error:
            h = x * 2
        return h

    check(function, lambda x: x * 2)


def test_exception_under_value_and_grad_does_not_poison_the_next() -> None:
    def wrong(x: Any) -> Any:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        ms.value_and_grad(dvm.jit(wrong), 0)(Tensor(A))
    check(lambda x: x * x, lambda x: x * x)


def test_shape_error_names_op_shapes_and_line() -> None:
    with pytest.raises(dvm.ShapeError, match=r"test_mindspore_reads.py:\d+: .*\[4, ?5, ?6\].*\[3\]") as caught:
        dvm.jit(lambda x: x + Tensor(np.ones(3, np.float32)))(Tensor(A))
    assert caught.value.line > 0


def test_values_recorded_before_an_exception_are_there_afterwards() -> None:
    kept = []

    def function(x: Any) -> Any:
        kept.append(x * 2)
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        dvm.jit(function)(Tensor(A))
    np.testing.assert_array_equal(kept[0].asnumpy(), A * 2)
