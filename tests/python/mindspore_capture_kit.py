"""For tests of captured MindSpore code: a tensor to index, and a function's result and gradient compared with NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from gradient_reference import differences, weights
from mindspore import Tensor

import dvm_core as dvm

A = np.random.default_rng(2).uniform(-2, 2, (4, 5, 6)).astype(np.float32)
ROWS = np.array([3, 0, 3], np.int32)
rows = Tensor(ROWS)


def value_and_gradient(function: Callable[[Any], Any], array: np.ndarray = A) -> tuple[np.ndarray, np.ndarray]:
    """Result of a captured function, and the gradient of its weighted sum."""
    captured = dvm.jit(function)

    def weighted(x: Tensor) -> Any:
        result = captured(x)
        return (result * Tensor(weights(result.shape))).sum(), result

    (_, result), gradient = ms.value_and_grad(weighted, 0, None, has_aux=True)(Tensor(array))
    return result.asnumpy(), gradient.asnumpy()


def check(function: Callable[[Any], Any], reference: Callable[[np.ndarray], np.ndarray], array: np.ndarray = A) -> None:
    result, gradient = value_and_gradient(function, array)
    np.testing.assert_allclose(result, reference(array), rtol=5e-6)
    (exact,) = differences(reference, [array])
    np.testing.assert_allclose(gradient, exact, rtol=1e-4, atol=1e-4)
