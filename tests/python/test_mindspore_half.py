"""float16 and bfloat16 in captured MindSpore functions: dtypes as MindSpore promotes them, values and gradients near float64."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from halves import EPS, rounded  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import mindspore_compat as compat  # noqa: E402
from dvm_core.frontends import notices  # noqa: E402

DTYPES = {"float32": ms.float32, "float16": ms.float16, "bfloat16": ms.bfloat16, "float64": ms.float64, "bool": ms.bool_, "int8": ms.int8,
          "uint8": ms.uint8, "int32": ms.int32, "int64": ms.int64}
OWN = [name for name in DTYPES if name != "bfloat16"]  # what MindSpore's CPU kernels take
HALVES = ("float16", "bfloat16")
random = np.random.default_rng(7)
A = random.uniform(0.3, 2, (3, 8)).astype(np.float32)


def half(array: np.ndarray, dtype: str) -> tuple[Any, np.ndarray]:
    """A tensor of halves and its numbers in float64."""
    exact = rounded(array, dtype)
    return Tensor(exact.astype(np.float32)).astype(DTYPES[dtype]), exact


def numbers(tensor: Any) -> np.ndarray:
    return tensor.astype(ms.float32).asnumpy().astype(np.float64)


@pytest.fixture
def told() -> Any:
    found: list[dict[str, Any]] = []
    notices.add_sink(found.append)
    yield found
    notices.remove_sink(found.append)


# ---- promotion -----------------------------------------------------------------------------------------------------------------------

PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b, "a - b": lambda a, b: a - b, "a * b": lambda a, b: a * b, "b * a": lambda a, b: b * a,
    "a / b": lambda a, b: a / b, "a ** b": lambda a, b: a ** b, "maximum": ops.maximum, "a // b": lambda a, b: a // b,
    "where": lambda a, b: ops.where(a > 1, a, b), "a * (b + b)": lambda a, b: a * (b + b)}


def small(dtype: str) -> Any:
    return Tensor(np.array([[1, 2, 3], [3, 1, 2]], np.float32)).astype(DTYPES[dtype])


@pytest.mark.parametrize("name", PAIRS)
def test_mixed_dtypes_meet_where_mindspore_says(name: str) -> None:
    """All pairs MindSpore itself computes on the CPU (hardly any of bfloat16), tensors and tensors of rank 0, which count less in Mul and
    Div."""
    function = PAIRS[name]
    compared = 0
    for first in OWN:
        for second in OWN:
            for b in (small(second), Tensor(1, DTYPES[second])):
                if name == "a ** b" and "float" not in first + second:
                    continue  # whole powers have rules of their own
                if b.shape == () and first != second and "float" not in first + second:
                    continue  # MindSpore's own products of these are wrong in 2.10, or fail after the fact
                a = small(first)
                try:
                    want = function(a, b)
                    values = numbers(want)
                    compat.synchronize()
                except Exception:  # MindSpore has no kernel for this pair
                    continue
                got = dvm.jit(function)(a, b)
                assert got.dtype == want.dtype, (first, second, b.shape)
                np.testing.assert_allclose(numbers(got), values, rtol=1e-2)
                compared += 1
    assert compared > 40


@pytest.mark.parametrize("dtype", OWN)
@pytest.mark.parametrize("number", [2, 2.5, True])
def test_python_numbers_take_the_tensors_dtype_as_in_mindspore(number: Any, dtype: str) -> None:
    for function in (lambda a: a * number, lambda a: a + number, lambda a: a / number):
        try:
            want = function(small(dtype))
            values = numbers(want)
            compat.synchronize()
        except Exception:
            continue
        got = dvm.jit(function)(small(dtype))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(numbers(got), values, rtol=1e-2)


def test_the_two_halves_meet_in_float32() -> None:
    a, b = small("float16"), small("bfloat16")
    assert dvm.jit(lambda a, b: a + b)(a, b).dtype == ms.float32
    assert dvm.jit(lambda a, b: a + b)(b, small("int32")).dtype == ms.bfloat16


# ---- values --------------------------------------------------------------------------------------------------------------------------


def soft(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


ONCE: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {  # one op of MindSpore's, one rounding
    "exp": (ops.exp, np.exp), "tanh": (ops.tanh, np.tanh), "sqrt": (ops.sqrt, np.sqrt),
    "sigmoid": (ops.sigmoid, lambda x: 1 / (1 + np.exp(-x))), "silu": (ops.silu, lambda x: x / (1 + np.exp(-x))),
    "softmax": (ops.softmax, soft), "log_softmax": (ops.log_softmax, lambda x: np.log(soft(x))),
    "gelu": (lambda x: ops.gelu(x, approximate="tanh"), lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))),
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)), "mean": (lambda x: x.mean(), lambda x: x.mean()), "max": (lambda x: x.max(), np.max),
    "layer_norm": (lambda x: ops.LayerNorm(begin_norm_axis=1, begin_params_axis=1, epsilon=1e-5)(
        x, ops.ones((8,), x.dtype), ops.zeros((8,), x.dtype))[0], normal),
    "matmul": (lambda x: ops.matmul(x, x.T), lambda x: x @ x.T), "floor": (ops.floor, np.floor),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ONCE)
def test_an_op_of_halves_is_rounded_once(name: str, dtype: str, told: Any) -> None:
    function, reference = ONCE[name]
    x, exact = half(A, dtype)
    got = dvm.jit(function)(x)
    assert got.dtype == DTYPES[dtype] and not [n for n in told if n.get("category") == "fallback"]
    np.testing.assert_allclose(numbers(got), reference(exact), rtol=0.52 * EPS[dtype], atol=0.01 * EPS[dtype])


def test_layer_norm_keeps_its_statistics_in_float32_as_mindspores_own_does() -> None:
    norm = ops.LayerNorm(begin_norm_axis=1, begin_params_axis=1)
    x, one, zero = half(A, "float16")[0], ops.ones((8,), ms.float16), ops.zeros((8,), ms.float16)
    for got, want in zip(dvm.jit(lambda a, b, c: norm(a, b, c))(x, one, zero), norm(x, one, zero), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(numbers(got), numbers(want), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", HALVES)
def test_batch_norm_of_halves_keeps_float32_statistics(dtype: str) -> None:
    norm = nn.BatchNorm2d(3)
    norm.set_train()
    x, exact = half(random.uniform(-2, 2, (4, 3, 5, 5)), dtype)
    got = dvm.jit(lambda a: norm(a))(x)
    mean = exact.mean((0, 2, 3))
    assert got.dtype == DTYPES[dtype] and norm.moving_mean.dtype == ms.float32
    want = (exact - mean[:, None, None]) / np.sqrt(exact.var((0, 2, 3)) + 1e-5)[:, None, None]
    np.testing.assert_allclose(numbers(got), want, rtol=0.52 * EPS[dtype], atol=0.01 * EPS[dtype])
    np.testing.assert_allclose(norm.moving_mean.asnumpy(), 0.1 * mean, rtol=1e-3, atol=1e-6)


def test_bfloat16_goes_in_and_out_as_mindspores_own_array() -> None:
    x = Tensor([1.5, -2.25, 3e38], ms.bfloat16)
    got = dvm.jit(lambda a: a + a)(x)
    assert got.dtype == ms.bfloat16 and got.asnumpy().dtype.name == "bfloat16"
    assert numbers(got).tolist() == [3.0, -4.5, np.inf]
    again = dvm.jit(lambda a: (a * 2).astype(ms.float16))(got[:2])
    assert again.asnumpy().tolist() == [6.0, -9.0]


# ---- gradients -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("dtype", HALVES)
def test_mixed_precision_trains_with_float32_parameters(dtype: str, mode: str, told: Any) -> None:
    """As AMP writes it: products in a half, normalisation and loss in float32, gradients of float32 parameters in float32."""
    kind = DTYPES[dtype]

    class Network(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm, self.last = nn.Dense(8, 16), nn.LayerNorm((16,)), nn.Dense(16, 4)

        def construct(self, x: Any, to: Any) -> Any:
            h = ops.matmul(x.astype(to), self.first.weight.astype(to).T) + self.first.bias.astype(to)
            # Smooth: the gradient of a relu jumps where a value near zero rounds to the other side, and no tolerance covers that.
            h = ops.tanh(self.norm(h.astype(ms.float32)).astype(to))
            return ops.matmul(h, self.last.weight.astype(to).T).astype(ms.float32) + self.last.bias

    network = Network()
    target = Tensor(np.array([1, 0, 3], np.int32))
    scale = Tensor(128.0, ms.float32)

    def loss(x: Any, to: Any) -> Any:
        return ops.cross_entropy(network(x, to), target) * scale

    captured = dvm.jit(lambda x: loss(x, kind), mode=mode)
    for _ in range(2):  # traced, then replayed
        value, found = ms.value_and_grad(captured, None, network.trainable_params())(Tensor(A))
    wanted_value, wanted = ms.value_and_grad(lambda x: loss(x, ms.float32), None, network.trainable_params())(Tensor(A))
    assert not [n for n in told if n.get("category") == "fallback"]
    assert value.dtype == ms.float32 and abs(float(value) - float(wanted_value)) < 10 * EPS[dtype] * abs(float(wanted_value))
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == ms.float32
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=0.2, atol=16 * EPS[dtype] * np.abs(want.asnumpy()).max())


@pytest.mark.parametrize("dtype", HALVES)
def test_a_gradient_has_the_dtype_of_what_it_is_for(dtype: str) -> None:
    x, exact = half(A, dtype)
    y, other = half(A[::-1], dtype)
    captured = dvm.jit(lambda a, b: (ops.tanh(a * b) / b + a).sum())
    value, (ga, gb) = ms.value_and_grad(captured, (0, 1))(x, y)
    assert value.dtype == ga.dtype == gb.dtype == DTYPES[dtype]
    slope = 1 - np.tanh(exact * other) ** 2
    np.testing.assert_allclose(numbers(ga), slope + 1, rtol=8 * EPS[dtype])
    np.testing.assert_allclose(numbers(gb), slope * exact / other - np.tanh(exact * other) / other ** 2, rtol=8 * EPS[dtype],
                               atol=16 * EPS[dtype])


def test_an_op_of_mindspores_own_between_halves_passes_gradients() -> None:
    """Erfinv is run by MindSpore, in float16 as well."""
    x, exact = half(A / 4, "float16")
    captured = dvm.jit(lambda a: ops.erfinv(a * 1.0).astype(ms.float32) * 2 + a.astype(ms.float32))
    value, found = ms.value_and_grad(lambda a: captured(a).sum(), 0)(x)
    slope = np.sqrt(np.pi) / 2 * np.exp((numbers(ops.erfinv(x))) ** 2)
    assert found.dtype == ms.float16
    np.testing.assert_allclose(numbers(found), 2 * slope + 1, rtol=1e-2)
