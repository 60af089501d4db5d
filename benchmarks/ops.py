"""Rows over single fused functions: the VM against NumPy, numexpr, MindSpore and, where installed, PyTorch (eager and compiled)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Row, interleave

import dvm_core as dvm

Case = tuple[str, Callable[[], dict[str, Callable[[], Any]]]]


def _f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _dvm(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], Any]:
    tensors = [dvm.tensor(a) for a in arrays]
    return lambda: function(*tensors).numpy()


def _torch(function: Callable[..., Any], *arrays: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Eager and torch.compile(dynamic=True), without gradients; none where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    tensors = [torch.from_numpy(a) for a in arrays]
    compiled = torch.compile(function, dynamic=True)

    def call(run: Callable[..., Any]) -> Callable[[], Any]:
        def timed() -> Any:
            with torch.inference_mode():
                return run(*tensors)
        return timed

    return {"torch": call(function), "torch.compile": call(compiled)}


def softmax(rows: int, cols: int) -> dict[str, Callable[[], Any]]:
    x = _f32(rows, cols)

    def numpy() -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def torch_softmax(t: Any) -> Any:
        return t.softmax(1)

    return {"dvm": _dvm(lambda t: t.softmax(axis=-1), x), "numpy": numpy, **_torch(torch_softmax, x)}


def layer_norm(rows: int, cols: int) -> dict[str, Callable[[], Any]]:
    x, gain, bias = _f32(rows, cols), _f32(cols, seed=1), _f32(cols, seed=2)

    def ours(t: Any, g: Any, b: Any) -> Any:
        centred = t - t.mean(axis=-1, keepdims=True)
        return centred * ((centred * centred).mean(axis=-1, keepdims=True) + 1e-5).rsqrt() * g + b

    def numpy() -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5)) * gain + bias

    def torch_norm(t: Any, g: Any, b: Any) -> Any:
        import torch
        return torch.nn.functional.layer_norm(t, (t.shape[-1],), g, b)

    return {"dvm": _dvm(ours, x, gain, bias), "numpy": numpy, **_torch(torch_norm, x, gain, bias)}


def gelu_chain(n: int) -> dict[str, Callable[[], Any]]:
    x = _f32(n)

    def formula(t: Any, tanh: Callable[[Any], Any]) -> Any:
        return 0.5 * t * (1.0 + tanh(0.7978846 * (t + 0.044715 * t * t * t)))

    def torch_chain(t: Any) -> Any:
        return formula(t, lambda v: v.tanh())

    peers: dict[str, Callable[[], Any]] = {"dvm": _dvm(lambda t: formula(t, lambda v: v.tanh()), x), "numpy": lambda: formula(x, np.tanh)}
    if importlib.util.find_spec("numexpr"):
        import numexpr

        peers["numexpr"] = lambda: numexpr.evaluate("0.5 * x * (1.0 + tanh(0.7978846 * (x + 0.044715 * x * x * x)))", {"x": x})
    return {**peers, **_torch(torch_chain, x)}


def dense_relu(rows: int, inner: int, cols: int) -> dict[str, Callable[[], Any]]:
    x, w, b = _f32(rows, inner), _f32(inner, cols, seed=1), _f32(cols, seed=2)

    def torch_dense(t: Any, v: Any, c: Any) -> Any:
        import torch
        return torch.addmm(c, t, v).relu()

    ours = _dvm(lambda t, v, c: (t @ v + c).relu(), x, w, b)
    return {"dvm": ours, "numpy": lambda: np.maximum(x @ w + b, 0), **_torch(torch_dense, x, w, b)}


CASES: list[Case] = [
    ("softmax 512 x 1024", lambda: softmax(512, 1024)),
    ("LayerNorm 512 x 768", lambda: layer_norm(512, 768)),
    ("gelu chain, 1 M elements", lambda: gelu_chain(1 << 20)),
    ("matmul + bias + relu, 128 x 512 x 512", lambda: dense_relu(128, 512, 512)),
    ("matmul + bias + relu, 16 x 768 x 768", lambda: dense_relu(16, 768, 768)),
]


def rows(seconds: float) -> list[Row]:
    found = []
    for name, make in CASES:
        contenders = make()
        reference = np.asarray(contenders["numpy"]())
        for peer, call in contenders.items():  # a contender that computes something else is no peer
            np.testing.assert_allclose(np.asarray(call()), reference, rtol=2e-3, atol=2e-3, err_msg=f"{peer} in {name}")
        found.append(Row(name, interleave(contenders, seconds)))
    return found
