"""Attention, forward and with its gradients, full and causal, and of a few queries over many keys, against PyTorch's fused attention.

    python benchmarks/attention.py [--quick] [--only TEXT] [--threads N] [--shapes N] [--cells]
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

LARGEST = 2**31  # multiply-adds of one product: S = 4096, D = 128
Call = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """`heads` of q [m, d] and k, v [s, d]; m 0: as many queries as keys."""

    heads: int
    s: int
    d: int
    m: int = 0

    def __str__(self) -> str:
        return f"{self.heads} x {f'{self.m} of ' if self.m else ''}{self.s} x {self.d}"

    @property
    def work(self) -> int:
        return self.heads * (self.m or self.s) * self.s * self.d

    @property
    def size_class(self) -> str:
        return next((f"S <= {most}" for most in (16, 128, 1024) if self.s <= most), "S > 1024")


def sampled(count: int, few: bool = False, seed: int = 0) -> list[Shape]:
    """S from 1 to 4096 in four classes of equal share, D from 32 to 128, 1 to 32 heads as far as the work allows; few: 1 to 16 queries."""
    random = np.random.default_rng(seed)
    bounds = [(1, 16), (17, 128), (129, 1024), (1025, 4096)]
    found: list[Shape] = []
    while len(found) < count:
        low, high = bounds[len(found) % 4]
        s = int(2 ** random.uniform(math.log2(low), math.log2(high + 1)))
        heads, d = int(2 ** random.uniform(0, 5.01)), int(random.choice((32, 40, 64, 80, 96, 128)))
        shape = Shape(heads, min(s, high), d, int(random.choice((1, 1, 2, 4, 7, 16))) if few else 0)
        if shape.work <= LARGEST:
            found.append(shape)
    return found


def _probabilities(q: Any, k: Any, seen: Any) -> Any:
    scores = q.matmul(k, transpose_b=True) * q.shape[-1] ** -0.5
    return (scores if seen is None else seen.where(scores, -math.inf)).softmax(-1)


@dvm.jit(mode="graph")
def _attend(q: Any, k: Any, v: Any, seen: Any) -> Any:
    return _probabilities(q, k, seen) @ v


@dvm.jit(mode="graph")
def _attend_and_keep(q: Any, k: Any, v: Any, seen: Any) -> Any:
    p = _probabilities(q, k, seen)
    return p, p @ v


@dvm.jit(mode="graph")
def _gradients(q: Any, k: Any, v: Any, seen: Any, p: Any, g: Any) -> Any:
    dp = g.matmul(v, transpose_b=True)
    ds = (dp - (dp * p).sum(-1, keepdims=True)) * p
    ds = (ds if seen is None else seen.where(ds, 0.0)) * q.shape[-1] ** -0.5
    return ds @ k, ds.matmul(q, transpose_a=True), p.matmul(g, transpose_a=True)


def _ours(shape: Shape, causal: bool, backward: bool, arrays: list[np.ndarray]) -> Call:
    *own, g = (dvm.tensor(a) for a in arrays)
    own.append(dvm.tensor(np.tril(np.ones((shape.s, shape.s), np.bool_))) if causal else None)
    if not backward:
        return lambda: [_attend(*own)]
    return lambda: list(_gradients(*own, _attend_and_keep(*own)[0], g))


class Torch:
    """PyTorch's fused attention, eager and compiled with dynamic shapes."""

    def __init__(self, threads: int) -> None:
        import torch

        self.torch, self.fused = torch, torch.nn.functional.scaled_dot_product_attention
        if threads:
            torch.set_num_threads(threads)
        torch._dynamo.config.recompile_limit = 64
        self.compiled = torch.compile(lambda q, k, v, causal: self.fused(q, k, v, is_causal=causal), dynamic=True)

    def calls(self, arrays: list[np.ndarray], causal: bool, backward: bool) -> dict[str, Call]:
        q, k, v, g = (self.torch.from_numpy(a)[None] for a in arrays)
        if not backward:
            def run(function: Call) -> Call:
                def call() -> Any:
                    with self.torch.inference_mode():
                        return [function()]
                return call
            eager = run(lambda: self.fused(q, k, v, is_causal=causal))
            return {"torch": eager, "torch.compile": run(lambda: self.compiled(q, k, v, causal))}
        leaves = [x.requires_grad_() for x in (q, k, v)]

        def gradients() -> Any:
            with self.torch.enable_grad():  # other groups switch it off for good
                out = self.fused(*leaves, is_causal=causal)
                return self.torch.autograd.grad(out, leaves, g)
        return {"torch": gradients}


def _cell(torch: Torch | None, shape: Shape, causal: bool, backward: bool, seconds: float, threads: int) -> Row:
    random = np.random.default_rng(1)
    queries = shape.m or shape.s
    arrays = [random.standard_normal((shape.heads, rows, shape.d), dtype=np.float32) for rows in (queries, shape.s, shape.s, queries)]
    contenders: dict[str, Call] = {"dvm": _ours(shape, causal, backward, arrays)}
    if torch:
        contenders |= torch.calls(arrays, causal, backward)
    reference = [x.numpy().copy() for x in contenders["dvm"]()]
    for name, call in contenders.items():  # a contender that computes something else is no peer
        for got, want in zip(call(), reference, strict=True):
            np.testing.assert_allclose(got.numpy().reshape(want.shape), want, rtol=2e-3, atol=5e-4, err_msg=f"{name}, {shape}")
    clock = time.thread_time if threads == 1 else time.perf_counter
    return Row(f"{shape.size_class}: {shape}", interleave(contenders, seconds, warm=2, rounds=7, clock=clock))


AIM = ">= 95 % won, none under 0.9"
# Name, few queries, causal, backward.
GROUPS = [("attention", False, False, False), ("attention, causal", False, True, False), ("attention of few queries", True, False, False),
          ("attention and its gradients", False, False, True), ("attention and its gradients, causal", False, True, True)]


def sweeps(quick: bool, only: str = "", shapes: int = 0, threads: int = 0) -> Iterator[Sweep]:
    """A row each: 200 shapes (8 with `quick`)."""
    torch = Torch(threads) if importlib.util.find_spec("torch") else None
    count = shapes or (8 if quick else 200)
    for name, few, causal, backward in GROUPS:
        if only in name:
            seconds = 0.05 if quick else 0.15
            yield Sweep(name, [_cell(torch, shape, causal, backward, seconds, threads) for shape in sampled(count, few)], AIM)


if __name__ == "__main__":
    sys.exit(command.main(__doc__, "8 shapes a row", sweeps, [name for name, *_ in GROUPS]))
