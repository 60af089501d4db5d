"""Values and gradients of MindSpore expressions inside a captured function, and tables of them."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mindspore as ms
import numpy as np
from gradient_reference import differences, weights
from mindspore import Tensor

import dvm_core as dvm


def captured_gradients(expression: Callable[..., Any], operands: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Value of a captured expression, and gradients of its weighted sum, taken by MindSpore."""
    function = dvm.jit(lambda *tensors: expression(*tensors))

    def weighted(*tensors: Tensor) -> Any:
        result = function(*tensors)
        return (result * Tensor(weights(result.shape))).sum(), result

    gradient = ms.value_and_grad(weighted, tuple(range(len(operands))), None, has_aux=True)
    (_, result), found = gradient(*[Tensor(operand) for operand in operands])
    return result.asnumpy(), [g.asnumpy() for g in (found if isinstance(found, tuple) else (found,))]


Case = tuple[Callable[..., Any], Callable[..., np.ndarray], list[np.ndarray]]  # function, the same in NumPy, operands


def check_case(case: Case, rtol: float, atol: float, gradients: bool = True) -> None:
    """A captured function's value against NumPy in float64, and its gradients against differences (these within rtol and atol)."""
    expression, reference, operands = case
    result, found = captured_gradients(expression, operands)
    exact = reference(*[operand.astype(np.float64) for operand in operands])
    assert result.shape == exact.shape and result.dtype == np.float32
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)
    if gradients:
        for ours, numeric in zip(found, differences(reference, operands), strict=True):
            np.testing.assert_allclose(ours, numeric, rtol=rtol, atol=atol)


def check_ours(cases: Iterable[Case], capsys: Any) -> None:
    """None of the functions needs MindSpore to run an op."""
    for expression, _, operands in cases:
        dvm.jit(lambda *tensors, expression=expression: expression(*tensors))(*[Tensor(operand) for operand in operands])
    assert "is run by MindSpore" not in capsys.readouterr().err
