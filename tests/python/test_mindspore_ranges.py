"""MindSpore functions that are formulas here, over their whole range against float64: values and gradients."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, mint  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends.mindspore_formulas import _FUNCTIONS  # noqa: E402

_SIZES = (0.0, 1e-30, 1e-8, 1e-3, 0.1, 0.49, 0.51, 0.999, 1.0, 1.001, 1.5, 2, 3, 5, 8, 9, 10, 17, 20, 37, 60, 80, 88, 89, 89.4, 300, 700,
          710, 1e4, 1e9, 2e9, 1e15, 1e19, 2e19, 1e20, 1e38, 3.3e38, math.inf)
POINTS = np.array([*_SIZES, *(-size for size in _SIZES), math.nan])
ROOT_PI = 2 / math.sqrt(math.pi)

# name of the op: (function, value, derivative) in float64
REFERENCES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "Exp2": (mint.exp2, np.exp2, lambda x: np.exp2(x) * math.log(2)),
    "Log2": (mint.log2, np.log2, lambda x: 1 / (x * math.log(2))),
    "Log10": (mint.log10, np.log10, lambda x: 1 / (x * math.log(10))),
    "Sinh": (mint.sinh, np.sinh, np.cosh),
    "Cosh": (mint.cosh, np.cosh, np.sinh),
    "Asinh": (mint.asinh, np.arcsinh, lambda x: 1 / np.hypot(x, 1)),
    "Acosh": (mint.acosh, np.arccosh, lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1))),
    "Atanh": (mint.atanh, np.arctanh, lambda x: 1 / ((1 - x) * (1 + x))),
    "Asin": (mint.asin, np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x))),
    "ACos": (mint.acos, np.arccos, lambda x: -1 / np.sqrt((1 - x) * (1 + x))),
    "Erfc": (mint.erfc, np.vectorize(math.erfc, otypes=[float]), lambda x: -ROOT_PI * np.exp(-x * x)),
}


def values_and_gradients(function: Callable[..., Any], *operands: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    captured = dvm.jit(function)
    summed = lambda *tensors: ((result := captured(*tensors)).sum(), result)  # noqa: E731
    gradient = ms.value_and_grad(summed, tuple(range(len(operands))), None, has_aux=True)
    (_, result), found = gradient(*[Tensor(operand) for operand in operands])
    return result.asnumpy(), [g.asnumpy() for g in (found if isinstance(found, tuple) else (found,))]


def check(found: np.ndarray, exact: np.ndarray, what: str) -> None:
    """Equal to a few units of the last place, or both overflow, or both are below the smallest normal number."""
    kind = np.finfo(found.dtype)
    with np.errstate(over="ignore"):
        exact = exact.astype(found.dtype)
    # exp(-x * x) in float32 keeps the rounding of x * x
    close = np.isclose(found, exact, rtol=60 * kind.eps, atol=float(kind.tiny) * 2, equal_nan=True)
    assert close.all(), (what, POINTS[~close] if len(POINTS) == len(close) else (~close).nonzero(), found[~close], exact[~close])


def test_every_function_has_a_reference() -> None:
    assert REFERENCES.keys() == _FUNCTIONS.keys()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCES)
def test_a_function_is_right_over_its_whole_range(name: str, dtype: Any, capsys: pytest.CaptureFixture[str]) -> None:
    function, value, derivative = REFERENCES[name]
    points = POINTS.astype(dtype)
    result, (gradient,) = values_and_gradients(lambda x: function(x), points)
    with np.errstate(all="ignore"):
        exact = value(points.astype(np.float64))
        check(result, exact, name)
        domain = ~np.isnan(exact)  # outside of it there is no gradient to speak of
        slope = derivative(points.astype(np.float64))
    gradient, slope = np.where(domain, gradient, 0), np.where(domain, slope, 0)
    check(gradient, slope, f"gradient of {name}")
    assert "is run by MindSpore" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Sinh", "Asinh", "Atanh", "Asin"])
def test_an_odd_function_keeps_the_sign_of_zero(name: str) -> None:
    result, _ = values_and_gradients(lambda x: REFERENCES[name][0](x), np.array([0.0, -0.0], np.float32))
    assert np.signbit(result).tolist() == [False, True]


@pytest.mark.parametrize("name", REFERENCES)
def test_a_half_is_rounded_once(name: str) -> None:
    points = POINTS[np.abs(POINTS) < 6e4].astype(np.float16)
    function, value, _ = REFERENCES[name]
    result = dvm.jit(lambda x: function(x))(Tensor(points)).asnumpy()
    with np.errstate(all="ignore"):
        exact = value(points.astype(np.float64)).astype(np.float16)
    assert result.dtype == np.float16
    np.testing.assert_allclose(result, exact, rtol=1.5e-3, atol=1.2e-7)


def test_logaddexp_of_infinities_and_ties() -> None:
    a = np.array([math.inf, -math.inf, math.inf, 2, 1e20, 0, 700, math.nan], np.float32)
    b = np.array([math.inf, -math.inf, -math.inf, 2, -1e20, -90, 699, 1], np.float32)
    result, (of_a, of_b) = values_and_gradients(lambda a, b: mint.logaddexp(a, b), a, b)
    with np.errstate(all="ignore"):
        check(result, np.logaddexp(a.astype(np.float64), b), "value")
        share = np.where(a == b, 0.5, 1 / (1 + np.exp(b.astype(np.float64) - a)))
        check(of_a, share, "of a")
        check(of_b, np.where(a == b, 0.5, 1 / (1 + np.exp(a.astype(np.float64) - b))), "of b")


def test_xlogy_of_nothing_has_finite_gradients() -> None:
    a, b = np.array([0, 0, 2, 0], np.float32), np.array([0, -1, 3, 4], np.float32)
    result, (of_a, of_b) = values_and_gradients(lambda a, b: mint.xlogy(a, b), a, b)
    check(result, np.array([0, 0, 2 * math.log(3), 0]), "value")
    check(of_a, np.array([0, 0, math.log(3), math.log(4)]), "of a")
    check(of_b, np.array([0, 0, 2 / 3, 0]), "of b")


def test_the_gradient_of_gelu_is_finite_for_every_number() -> None:
    points = np.array([-3e38, -1e20, -1e10, -50, 50, 1e10, 1e20, 3e38], np.float32)
    _, (gradient,) = values_and_gradients(lambda x: mint.nn.functional.gelu(x, approximate="tanh"), points)
    check(gradient, (points > 0).astype(np.float64), "gelu")


@pytest.mark.parametrize("name", ["norm", "norm of order 3", "norm of rows", "std", "std of rows", "std_mean"])
def test_roots_have_a_gradient_of_0_where_their_total_is_0(name: str) -> None:
    use = {"norm": mint.norm, "norm of order 3": lambda x: mint.norm(x, 3), "norm of rows": lambda x: mint.norm(x, 2, 1).sum(),
           "std": mint.std, "std of rows": lambda x: mint.std(x, 1).sum(), "std_mean": lambda x: mint.std_mean(x, 1)[0].sum()}[name]
    rows = np.array([[0, 0, 0], [1, 2, 4]], np.float32)
    gradient = ms.grad(dvm.jit(use))
    assert (gradient(Tensor(np.zeros((2, 3), np.float32))).asnumpy() == 0).all()
    found = gradient(Tensor(rows)).asnumpy()
    assert np.isfinite(found).all() and found[1].any() and ("row" not in name or not found[0].any())
