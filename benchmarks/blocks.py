"""Blocks of networks over inputs of another length each: a layer of BERT, one like Llama's, a mixture of experts (MMoE).

    python benchmarks/blocks.py [--quick] [--only TEXT] [--threads N] [--shapes N] [--cells]

Every contender computes the formula with what it has for its parts: PyTorch its fused attention, norms and activations.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import command
import numpy as np
from timing import Row, Sweep, interleave

import dvm_core as dvm
from dvm_core.frontends.array import concat

WIDTH, HEADS, INNER = 256, 4, 1024      # of the layers
EXPERTS, TASKS, INPUTS, HIDDEN = 6, 2, 128, 64
LENGTHS = [128, 17, 64, 333, 1, 96, 250, 40, 512, 5, 200, 77]
Weights = dict[str, Any]


@dataclass(frozen=True)
class Library:
    """What a contender has: the parts of the blocks."""

    attend: Callable[[Any, Any, Any, Any], Any]  # q, k, v [heads, length, width of a head]; the mask of what is seen, or None
    layer_norm: Callable[[Any, Any, Any], Any]
    rms_norm: Callable[[Any, Any], Any]
    gelu: Callable[[Any], Any]
    silu: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    softmax: Callable[[Any], Any]
    concat: Callable[[list[Any]], Any]           # along the last axis


# ---- the blocks -------------------------------------------------------------------------------------------------------------------------

def _heads(x: Any) -> Any:
    return x.reshape(-1, HEADS, WIDTH // HEADS).swapaxes(0, 1)


def _joined(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(-1, WIDTH)


def encoder(lib: Library, w: Weights, x: Any) -> Any:
    """BERT's layer: attention, norm, feed-forward with GELU, norm."""
    q, k, v = (_heads(x @ w[f"{name}_w"] + w[f"{name}_b"]) for name in ("q", "k", "v"))
    x = lib.layer_norm(x + _joined(lib.attend(q, k, v, None)) @ w["o_w"] + w["o_b"], w["norm_1"], w["shift_1"])
    return lib.layer_norm(x + lib.gelu(x @ w["up_w"] + w["up_b"]) @ w["down_w"] + w["down_b"], w["norm_2"], w["shift_2"])


def decoder(lib: Library, w: Weights, x: Any, cos: Any, sin: Any, seen: Any) -> Any:
    """Llama's layer: norm, attention with rotary positions and a causal mask, norm, SwiGLU."""
    def turned(t: Any) -> Any:
        half = WIDTH // HEADS // 2
        a, b = t[..., :half], t[..., half:]
        return lib.concat([a * cos - b * sin, b * cos + a * sin])
    h = lib.rms_norm(x, w["norm_1"])
    q, k, v = (_heads(h @ w[f"{name}_w"]) for name in ("q", "k", "v"))
    x = x + _joined(lib.attend(turned(q), turned(k), v, seen)) @ w["o_w"]
    h = lib.rms_norm(x, w["norm_2"])
    return x + (lib.silu(h @ w["gate_w"]) * (h @ w["up_w"])) @ w["down_w"]


def mixture(lib: Library, w: Weights, x: Any) -> Any:
    """MMoE: every task weighs the experts by a gate of its own, and has a tower."""
    experts = lib.relu(x[None] @ w["experts_w"] + w["experts_b"])          # [experts, batch, hidden]
    gates = lib.softmax(x[None] @ w["gates_w"])                            # [tasks, batch, experts]
    mixed = (gates.swapaxes(1, 2)[:, :, :, None] * experts[None]).sum(1)   # [tasks, batch, hidden]
    return lib.relu(mixed @ w["towers_w"]) @ w["heads_w"]


def _layer_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {**dict.fromkeys("qkvo", (WIDTH, WIDTH)), "up": (WIDTH, INNER), "gate": (WIDTH, INNER), "down": (INNER, WIDTH)}
    found = {f"{name}_w": random.standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[0])) for name, shape in shapes.items()}
    found |= {f"{name}_b": random.standard_normal(shape[1], np.float32) for name, shape in shapes.items()}
    return found | {f"{name}_{n}": random.uniform(0.5, 1.5, WIDTH).astype(np.float32) for name in ("norm", "shift") for n in (1, 2)}


def _mixture_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {"experts_w": (EXPERTS, INPUTS, HIDDEN), "experts_b": (EXPERTS, 1, HIDDEN), "gates_w": (TASKS, INPUTS, EXPERTS),
              "towers_w": (TASKS, HIDDEN, HIDDEN), "heads_w": (TASKS, HIDDEN, 1)}
    return {name: random.standard_normal(shape, np.float32) / np.float32(math.sqrt(shape[-2])) for name, shape in shapes.items()}


def _tokens(length: int) -> list[np.ndarray]:
    return [np.random.default_rng(length).standard_normal((length, WIDTH), np.float32)]


def _positioned(length: int) -> list[np.ndarray]:
    half = WIDTH // HEADS // 2
    angles = np.outer(np.arange(length), 1e4 ** (-np.arange(half) / half)).astype(np.float32)
    return [*_tokens(length), np.cos(angles), np.sin(angles), np.tril(np.ones((length, length), np.bool_))]


def _rows(length: int) -> list[np.ndarray]:
    return [np.random.default_rng(length).standard_normal((length, INPUTS), np.float32)]


# ---- the contenders ---------------------------------------------------------------------------------------------------------------------

Call = Callable[[], Any]
Maker = Callable[[Callable[..., Any], Weights], Callable[[list[np.ndarray]], Call]]


def _dvm(body: Callable[..., Any], weights: Weights) -> Callable[[list[np.ndarray]], Call]:
    def attend(q: Any, k: Any, v: Any, seen: Any) -> Any:
        scores = q.matmul(k, transpose_b=True) * q.shape[-1] ** -0.5
        return (scores if seen is None else seen.where(scores, -math.inf)).softmax(-1) @ v

    def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
        middle = x - x.mean(-1, keepdims=True)
        return middle * ((middle * middle).mean(-1, keepdims=True) + 1e-5).rsqrt() * gain + shift
    lib = Library(attend, layer_norm, lambda x, gain: x * ((x * x).mean(-1, keepdims=True) + 1e-5).rsqrt() * gain,
                  lambda x: x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1.0), lambda x: x * x.sigmoid(), lambda x: x.relu(),
                  lambda x: x.softmax(-1), lambda parts: concat(parts, -1))
    own = {name: dvm.tensor(w) for name, w in weights.items()}
    run = dvm.jit(lambda *inputs: body(lib, own, *inputs), mode="graph")

    def prepared(inputs: list[np.ndarray]) -> Call:
        tensors = [dvm.tensor(a) for a in inputs]
        return lambda: run(*tensors)
    return prepared


def _torch(compiled: bool) -> Maker:
    def make(body: Callable[..., Any], weights: Weights) -> Callable[[list[np.ndarray]], Call]:
        import torch

        torch.set_grad_enabled(False)
        torch._dynamo.config.recompile_limit = 64
        functional = torch.nn.functional

        def attend(q: Any, k: Any, v: Any, seen: Any) -> Any:
            return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=seen is not None)[0]
        lib = Library(attend, lambda x, gain, shift: functional.layer_norm(x, (WIDTH,), gain, shift),
                      lambda x, gain: functional.rms_norm(x, (WIDTH,), gain, 1e-5), functional.gelu, functional.silu,
                      torch.relu, lambda x: torch.softmax(x, -1), lambda parts: torch.cat(parts, -1))
        own = {name: torch.from_numpy(w) for name, w in weights.items()}

        def whole(*inputs: Any) -> Any:
            return body(lib, own, *inputs)
        run = torch.compile(whole, dynamic=True) if compiled else whole

        def prepared(inputs: list[np.ndarray]) -> Call:
            tensors = [torch.from_numpy(a) for a in inputs]
            return lambda: run(*tensors)
        return prepared
    return make


def _mindspore(body: Callable[..., Any], weights: Weights) -> Callable[[list[np.ndarray]], Call]:
    import mindspore
    from mindspore import ops

    def attend(q: Any, k: Any, v: Any, seen: Any) -> Any:
        scores = ops.matmul(q, k.swapaxes(1, 2)) * q.shape[-1] ** -0.5
        return ops.matmul(ops.softmax(scores if seen is None else scores.masked_fill(~seen, -math.inf), -1), v)
    norm = ops.LayerNorm(-1, -1, 1e-5)
    lib = Library(attend, lambda x, gain, shift: norm(x, gain, shift)[0],
                  lambda x, gain: x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + 1e-5) * gain,
                  lambda x: x * 0.5 * (ops.erf(x * math.sqrt(0.5)) + 1.0), lambda x: x * ops.sigmoid(x), ops.relu,
                  lambda x: ops.softmax(x, -1), lambda parts: ops.cat(parts, -1))
    own = {name: mindspore.Tensor(w) for name, w in weights.items()}

    def prepared(inputs: list[np.ndarray]) -> Call:
        tensors = [mindspore.Tensor(a) for a in inputs]
        return lambda: body(lib, own, *tensors).asnumpy()
    return prepared


# Name, block, its weights, its inputs by length.
BLOCKS: list[tuple[str, Callable[..., Any], Callable[[], dict[str, np.ndarray]], Callable[[int], list[np.ndarray]]]] = [
    ("BERT layer", encoder, _layer_weights, _tokens), ("Llama-style layer", decoder, _layer_weights, _positioned),
    ("MMoE", mixture, _mixture_weights, _rows)]


def sweeps(quick: bool, only: str = "", shapes: int = 0, threads: int = 0) -> Iterator[Sweep]:
    """A row each, a cell for every length."""
    makers: dict[str, Maker] = {"dvm": _dvm}
    if importlib.util.find_spec("torch"):
        import torch

        if threads:
            torch.set_num_threads(threads)
        makers |= {"torch": _torch(False), "torch.compile": _torch(True)}
    if importlib.util.find_spec("mindspore") and threads != 1:
        makers["mindspore"] = _mindspore
    clock = time.thread_time if threads == 1 else time.perf_counter
    for name, body, weights, inputs in BLOCKS:
        if only not in name:
            continue
        contenders = {peer: make(body, weights()) for peer, make in makers.items()}
        cells = []
        for length in LENGTHS[:shapes or (4 if quick else len(LENGTHS))]:
            calls = {peer: prepare(inputs(length)) for peer, prepare in contenders.items()}
            exact = np.asarray(calls["dvm"]().numpy())
            for peer, call in calls.items():  # a contender that computes something else is no peer
                near = 1e-4 * float(np.abs(exact).max())
                np.testing.assert_allclose(np.asarray(call()), exact, rtol=1e-3, atol=near, err_msg=f"{peer}, {name} {length}")
            cells.append(Row(f"length {'<' if length < 100 else '>'} 100: {length}", interleave(calls, 0.1 if quick else 0.5, clock=clock)))
        yield Sweep(f"{name} over ragged lengths", cells, aim=">= 1.0 x the best")


if __name__ == "__main__":
    sys.exit(command.main(__doc__, "4 lengths a row", sweeps, [name for name, *_ in BLOCKS]))
