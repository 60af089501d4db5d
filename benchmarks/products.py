"""Rows over matrix products: seeded sampled shapes, the VM against PyTorch (eager into its own output, compiled) and MindSpore.

    python benchmarks/products.py [--quick] [--only TEXT] [--threads N] [--shapes N] [--cells]

prints each row per size class; `run.py` shows one line per row. PyTorch writes into an output it has, the VM into pooled memory. With one
thread the clock is the thread's own, so that a busy machine does not count.
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

Call = Callable[[], Any]
LARGEST = 3e9  # multiply-adds of a sampled product: some tens of milliseconds on one core
HALF_SQRT = math.sqrt(0.5)


@dataclass(frozen=True)
class Shape:
    """[batch, m, k] @ [batch, k, n]; batch 0: two matrices."""

    batch: int
    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{f'{self.batch} x ' if self.batch else ''}{self.m} x {self.k} x {self.n}"

    @property
    def work(self) -> float:
        return float(max(self.batch, 1) * self.m * self.k * self.n)

    @property
    def left(self) -> tuple[int, ...]:
        return (self.batch, self.m, self.k) if self.batch else (self.m, self.k)

    @property
    def right(self) -> tuple[int, ...]:
        return (self.batch, self.k, self.n) if self.batch else (self.k, self.n)

    @property
    def size_class(self) -> str:
        if self.batch:
            return "tiny matrices" if self.work / self.batch <= 32**3 else "larger matrices"
        for most in (1, 16, 128, 1024):
            if self.m <= most:
                return f"M <= {most}"
        return "M > 1024"


def _between(random: np.random.Generator, low: int, high: int) -> int:
    """Log-uniform: half of the draws as they come, the other half round (a multiple of 8 or more)."""
    drawn = 2 ** random.uniform(math.log2(low), math.log2(high + 1))
    if random.random() < 0.5 and drawn >= 8:
        unit = 2 ** max(3, int(math.log2(drawn)) - 2)
        drawn = round(drawn / unit) * unit
    return min(max(int(drawn), low), high)


def sampled(count: int, batched: bool = False, seed: int = 0) -> list[Shape]:
    """M from 1 to 4096 in five classes of equal share, K and N from 8 to 4096; batched: 2 to 256 matrices, sides from 4 to 512."""
    random = np.random.default_rng(seed)
    bounds = [(1, 1), (2, 16), (17, 128), (129, 1024), (1025, 4096)]
    found: list[Shape] = []
    while len(found) < count:
        if batched:
            side = 32 if len(found) % 2 else 512
            shape = Shape(_between(random, 2, 256), *(_between(random, 4, side) for _ in range(3)))
        else:
            shape = Shape(0, _between(random, *bounds[len(found) % 5]), _between(random, 8, 4096), _between(random, 8, 4096))
        if shape.work <= LARGEST:
            found.append(shape)
    return found


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def linear(a: Any, w: Any) -> Any:
    return a.matmul(w, transpose_b=True)


def dense_relu(x: Any, w: Any, bias: Any) -> Any:
    return (x @ w + bias).relu()


def dense_gelu(x: Any, w: Any, bias: Any) -> Any:
    y = x @ w + bias
    return y * 0.5 * ((y * HALF_SQRT).erf() + 1.0)


OURS = {body: dvm.jit(body, mode="graph") for body in (matmul, linear, dense_relu, dense_gelu)}


def _ours(body: Callable[..., Any], *arrays: np.ndarray, dtype: str = "float32") -> Call:
    replayed, tensors = OURS[body], [dvm.tensor(a).astype(dtype) for a in arrays]
    for t in tensors:
        t.numpy()
    return lambda: replayed(*tensors)


class Peers:
    """The other libraries' contenders, those that are installed. threads: 1 leaves out what has threads of its own."""

    def __init__(self, threads: int = 0) -> None:
        self.clock = time.thread_time if threads == 1 else time.perf_counter
        self.torch: Any = None
        self.mindspore: Any = None
        if importlib.util.find_spec("torch"):
            import torch

            self.torch = torch
            torch.set_grad_enabled(False)
            if threads:
                torch.set_num_threads(threads)
            torch._dynamo.config.recompile_limit = 256
            self.compiled = {name: torch.compile(self._torch_dense(name), dynamic=True) for name in ("relu", "gelu")}
        if importlib.util.find_spec("mindspore") and threads != 1:
            import mindspore

            self.mindspore = mindspore

    def _torch_dense(self, activation: str) -> Callable[..., Any]:
        torch = self.torch

        def dense(x: Any, w: Any, bias: Any) -> Any:
            y = torch.addmm(bias, x, w)
            return y.relu() if activation == "relu" else torch.nn.functional.gelu(y)
        return dense

    def matmul(self, a: np.ndarray, b: np.ndarray, bf16: bool = False) -> dict[str, Call]:
        """b may be a transposed view: then every library is given it as such."""
        found: dict[str, Call] = {}
        if self.torch:
            torch = self.torch
            x, y = (torch.from_numpy(t) for t in (a, b))
            if bf16:
                x, y = x.to(torch.bfloat16), y.to(torch.bfloat16)
            out = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=x.dtype)
            found["torch"] = lambda: torch.matmul(x, y, out=out)
        if self.mindspore and not bf16:
            from mindspore import ops

            u, v = (self.mindspore.Tensor(t) for t in (a, b))
            found["mindspore"] = lambda: ops.matmul(u, v).asnumpy()
        return found

    def packed_linear(self, a: np.ndarray, b: np.ndarray, bf16: bool) -> dict[str, Call]:
        """PyTorch's product with a weight that oneDNN has packed, which its compiler makes of frozen linear layers."""
        if not self.torch or not self.torch.backends.mkldnn.is_available():
            return {}
        torch = self.torch
        x, w = torch.from_numpy(a), torch.from_numpy(b).T
        if bf16:
            x, w = x.to(torch.bfloat16), w.to(torch.bfloat16)
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(w.contiguous(), a.shape[0])
            call = torch.ops.mkldnn._linear_pointwise
            call(x, packed, None, "none", [], "")
        except (AttributeError, RuntimeError):  # another release, or a processor that it does not pack for
            return {}
        return {"torch, packed": lambda: call(x, packed, None, "none", [], "")}

    def dense(self, activation: str, x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> dict[str, Call]:
        if not self.torch:
            return {}
        torch = self.torch
        u, v, c = (torch.from_numpy(t) for t in (x, w, bias))
        out = torch.empty((x.shape[0], w.shape[1]))

        def eager() -> Any:
            torch.addmm(c, u, v, out=out)
            return out.relu_() if activation == "relu" else torch.nn.functional.gelu(out)
        compiled = self.compiled[activation]
        return {"torch": eager, "torch.compile": lambda: compiled(u, v, c)}


def _cell(peers: Peers, shape: Shape, contenders: dict[str, Call], seconds: float, tolerance: float) -> Row:
    """Times one shape, once all contenders agree. The tolerance grows with the square root of K, as errors do."""
    def value(result: Any) -> np.ndarray:
        if isinstance(result, dvm.Array):
            return result.astype("float32").numpy()
        return np.asarray(result.float() if hasattr(result, "float") else result)
    reference = value(contenders["dvm"]()).copy()
    scale = tolerance * math.sqrt(shape.k)
    for name, call in contenders.items():
        np.testing.assert_allclose(value(call()), reference, rtol=tolerance * 8, atol=scale, err_msg=f"{name}, {shape}")
    return Row(f"{shape.size_class}: {shape}", interleave(contenders, seconds, warm=2, rounds=7, clock=peers.clock))


def _inputs(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.standard_normal(shape.left, dtype=np.float32), random.standard_normal(shape.right, dtype=np.float32)


def _matmul_cell(peers: Peers, shape: Shape, seconds: float) -> Row:
    a, b = _inputs(shape)
    return _cell(peers, shape, {"dvm": _ours(matmul, a, b), **peers.matmul(a, b)}, seconds, 1e-5)


def _bf16_cell(peers: Peers, shape: Shape, seconds: float) -> Row:
    a, b = _inputs(shape)
    return _cell(peers, shape, {"dvm": _ours(matmul, a, b, dtype="bfloat16"), **peers.matmul(a, b, bf16=True)}, seconds, 1e-2)


def _constant_cell(transposed: bool, bf16: bool = False) -> Callable[[Peers, Shape, float], Row]:
    """The right side a constant here, packed by PyTorch (if it has that) and as it lies, whichever is faster."""
    def cell(peers: Peers, shape: Shape, seconds: float) -> Row:
        a, b = _inputs(shape)
        w = np.ascontiguousarray(b.T) if transposed else b
        body, dtype = linear if transposed else matmul, "bfloat16" if bf16 else "float32"
        left, right = dvm.tensor(a).astype(dtype), dvm.constant(dvm.tensor(w).astype(dtype))
        left.numpy()
        replayed = OURS[body]
        peer = {name: call for name, call in peers.matmul(a, w.T if transposed else w, bf16).items() if name == "torch"}
        peer |= peers.packed_linear(a, b, bf16)
        return _cell(peers, shape, {"dvm": lambda: replayed(left, right), **peer}, seconds, 1e-2 if bf16 else 1e-5)
    return cell


def _linear_cell(peers: Peers, shape: Shape, seconds: float) -> Row:
    a, b = _inputs(shape)
    w = np.ascontiguousarray(b.T)
    peer = {name: call for name, call in peers.matmul(a, w.T).items() if name == "torch"}
    return _cell(peers, shape, {"dvm": _ours(linear, a, w), **peer}, seconds, 1e-5)


def _dense_cell(activation: str) -> Callable[[Peers, Shape, float], Row]:
    def cell(peers: Peers, shape: Shape, seconds: float) -> Row:
        x, w = _inputs(shape)
        bias = np.random.default_rng(2).standard_normal(shape.n, dtype=np.float32)
        ours = _ours(dense_relu if activation == "relu" else dense_gelu, x, w, bias)
        return _cell(peers, shape, {"dvm": ours, **peers.dense(activation, x, w, bias)}, seconds, 1e-5)
    return cell


# Name, batched, cell, aim.
GROUPS: list[tuple[str, bool, Callable[[Peers, Shape, float], Row], str]] = [
    ("matmul", False, _matmul_cell, "geomean >= 1.0, none under 0.8"),
    ("matmul, right side transposed", False, _linear_cell, ""),
    ("matmul, constant right side", False, _constant_cell(transposed=False), ""),
    ("matmul, constant right side transposed", False, _constant_cell(transposed=True), ""),
    ("batched matmul", True, _matmul_cell, "geomean >= 1.0, none under 0.8"),
    ("matmul bf16", False, _bf16_cell, "faster for M <= 1024, >= 0.95 above"),
    ("matmul bf16, constant right side transposed", False, _constant_cell(transposed=True, bf16=True), ""),
    ("addmm + relu", False, _dense_cell("relu"), "geomean >= 1.6, >= 98 % won, none under 0.9"),
    ("addmm + gelu", False, _dense_cell("gelu"), "geomean >= 1.6, >= 98 % won, none under 0.9"),
]


def sweeps(quick: bool, only: str = "", shapes: int = 0, threads: int = 0) -> Iterator[Sweep]:
    """A row each: 200 shapes (12 with `quick`)."""
    peers = Peers(threads)
    count = shapes or (12 if quick else 200)
    for name, batched, cell, aim in GROUPS:
        if only in name:
            yield Sweep(name, [cell(peers, shape, 0.05 if quick else 0.15) for shape in sampled(count, batched)], aim)


if __name__ == "__main__":
    sys.exit(command.main(__doc__, "12 shapes a row", sweeps, [name for name, *_ in GROUPS]))
