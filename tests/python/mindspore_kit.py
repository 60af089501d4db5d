"""Values and gradients of MindSpore expressions inside a captured function."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from gradient_reference import weights
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
