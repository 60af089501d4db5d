"""Attention, forward and with its gradients, full and causal, against PyTorch's fused attention.

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

from dvm_core import _core

OP = {name: code for name, code, *_ in _core.OPS}
CODE = {name: code for name, code, _ in _core.DTYPES}
LARGEST = 2**31  # multiply-adds of one product: S = 4096, D = 128
Call = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """`heads` of q [s, d] and k, v [s, d]."""

    heads: int
    s: int
    d: int

    def __str__(self) -> str:
        return f"{self.heads} x {self.s} x {self.d}"

    @property
    def size_class(self) -> str:
        return next((f"S <= {most}" for most in (16, 128, 1024) if self.s <= most), "S > 1024")


def sampled(count: int, seed: int = 0) -> list[Shape]:
    """S from 1 to 4096 in four classes of equal share, D from 32 to 128, 1 to 32 heads as far as the work allows."""
    random = np.random.default_rng(seed)
    bounds = [(1, 16), (17, 128), (129, 1024), (1025, 4096)]
    found: list[Shape] = []
    while len(found) < count:
        low, high = bounds[len(found) % 4]
        s = int(2 ** random.uniform(math.log2(low), math.log2(high + 1)))
        shape = Shape(int(2 ** random.uniform(0, 5.01)), min(s, high), int(random.choice((32, 40, 64, 80, 96, 128))))
        if shape.heads * shape.s**2 * shape.d <= LARGEST:
            found.append(shape)
    return found


class Ours:
    """Attention as its instructions, recorded and flushed anew on every call, as a captured function does."""

    def __init__(self, shape: Shape, causal: bool, arrays: list[np.ndarray]) -> None:
        self.arrays, self.scale = arrays, shape.d**-0.5
        self.mask = np.tril(np.ones((shape.s, shape.s), np.bool_)) if causal else None

    def _op(self, name: str, *operands: int, attrs: tuple[int, ...] = (), imms: tuple[float, ...] = ()) -> int:
        return self.graph.op(OP[name], operands, attrs, imms=imms)

    def _input(self, array: np.ndarray) -> int:
        return self.graph.input(array.ctypes.data, array.shape, CODE[array.dtype.name], None, array)

    def _where(self, x: int, otherwise: float) -> int:
        fill = self.graph.op(OP["FULL"], (), (), (), CODE["float32"], (otherwise,))
        return self._op("SELECT", self.seen, x, fill)

    def record(self) -> tuple[int, int]:
        """Probabilities and result."""
        self.graph = _core.Graph("attention")
        self.q, self.k, self.v = (self._input(a) for a in self.arrays[:3])
        x = self._op("MUL", self._op("MATMUL", self.q, self.k, attrs=(0, 1)), -1, imms=(self.scale,))
        if self.mask is not None:
            self.seen = self._input(self.mask)
            x = self._where(x, -math.inf)
        e = self._op("EXP", self._op("SUB", x, self._op("MAX", x, attrs=(1, 2))))
        p = self._op("DIV", e, self._op("SUM", e, attrs=(1, 2)))
        return p, self._op("MATMUL", p, self.v, attrs=(0, 0))

    def forward(self) -> list[np.ndarray]:
        _, out = self.record()
        self.graph.flush([out])
        return [self.graph.array(out)]

    def backward(self) -> list[np.ndarray]:
        p, out = self.record()
        self.graph.flush([p, out])
        g = self._input(self.arrays[3])
        dv = self._op("MATMUL", p, g, attrs=(1, 0))
        dp = self._op("MATMUL", g, self.v, attrs=(0, 1))
        ds = self._op("MUL", self._op("SUB", dp, self._op("SUM", self._op("MUL", dp, p), attrs=(1, 2))), p)
        if self.mask is not None:
            ds = self._where(ds, 0.0)
        ds = self._op("MUL", ds, -1, imms=(self.scale,))
        dq, dk = self._op("MATMUL", ds, self.k, attrs=(0, 0)), self._op("MATMUL", ds, self.q, attrs=(1, 0))
        self.graph.flush([dq, dk, dv])
        return [self.graph.array(x) for x in (dq, dk, dv)]


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
                        return [function()[0].numpy()]
                return call
            eager = run(lambda: self.fused(q, k, v, is_causal=causal))
            return {"torch": eager, "torch.compile": run(lambda: self.compiled(q, k, v, causal))}
        leaves = [x.requires_grad_() for x in (q, k, v)]

        def gradients() -> Any:
            with self.torch.enable_grad():  # other groups switch it off for good
                out = self.fused(*leaves, is_causal=causal)
                return [x[0].numpy() for x in self.torch.autograd.grad(out, leaves, g)]
        return {"torch": gradients}


def _cell(torch: Torch | None, shape: Shape, causal: bool, backward: bool, seconds: float, threads: int) -> Row:
    random = np.random.default_rng(1)
    arrays = [random.standard_normal((shape.heads, shape.s, shape.d), dtype=np.float32) for _ in range(4)]
    ours = Ours(shape, causal, arrays)
    contenders: dict[str, Call] = {"dvm": ours.backward if backward else ours.forward}
    if torch:
        contenders |= torch.calls(arrays, causal, backward)
    reference = [np.array(x) for x in contenders["dvm"]()]
    for name, call in contenders.items():  # a contender that computes something else is no peer
        for got, want in zip(call(), reference, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=5e-4, err_msg=f"{name}, {shape}")
    clock = time.thread_time if threads == 1 else time.perf_counter
    return Row(f"{shape.size_class}: {shape}", interleave(contenders, seconds, warm=2, rounds=7, clock=clock))


AIM = ">= 95 % won, none under 0.9"
# Name, causal, backward.
GROUPS = [("attention", False, False), ("attention, causal", True, False), ("attention and its gradients", False, True),
          ("attention and its gradients, causal", True, True)]


def sweeps(quick: bool, only: str = "", shapes: int = 0, threads: int = 0) -> Iterator[Sweep]:
    """A row each: 200 shapes (8 with `quick`)."""
    torch = Torch(threads) if importlib.util.find_spec("torch") else None
    count = shapes or (8 if quick else 200)
    for name, causal, backward in GROUPS:
        if only in name:
            seconds = 0.05 if quick else 0.15
            yield Sweep(name, [_cell(torch, shape, causal, backward, seconds, threads) for shape in sampled(count)], AIM)


if __name__ == "__main__":
    sys.exit(command.main(__doc__, "8 shapes a row", sweeps))
