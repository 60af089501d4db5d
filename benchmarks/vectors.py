"""Rows over vector code: seeded sampled shapes, `dvm.tensor` arrays against PyTorch (eager at its best, compiled), numexpr and MindSpore.

    python benchmarks/vectors.py [--quick] [--only TEXT] [--shapes N] [--threads N] [--cells] [--no-compile]

A formula is written once, with methods that our arrays and PyTorch's tensors both have. We and torch.compile get that formula (graph
mode, `dynamic=True`), PyTorch's eager mode its own fused functions and, where they take them, outputs of its own (`out=`).
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import command
import numpy as np
from timing import Row, Sweep, interleave

import dvm_core as dvm
from dvm_core import _core

Call = Callable[[], Any]
Formula = Callable[..., Any]
Arrays = dict[str, np.ndarray]
EPSILON, LEAK = 1e-5, 0.044715
AIM = "geomean >= 1.7, >= 98 % won"


# ---- formulas ----------------------------------------------------------------------------------------------------------------------


def mean(t: Any) -> Any:
    return t.mean(-1, True)


def total(t: Any) -> Any:
    return t.sum(-1, True)


def largest(t: Any) -> Any:
    return t.amax(-1, True) if hasattr(t, "amax") else t.max(-1, True)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + (0.7978845608 * (x + LEAK * x * x * x)).tanh())


def swiglu(gate: Any, up: Any) -> Any:
    return gate * gate.sigmoid() * up


def softmax(x: Any) -> Any:
    e = (x - largest(x)).exp()
    return e / total(e)


def softmax_gradient(y: Any, dy: Any) -> Any:
    return y * (dy - total(y * dy))


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - mean(x)
    return centred * (mean(centred * centred) + EPSILON).rsqrt() * gain + bias


def layer_norm_gradient(x: Any, gain: Any, bias: Any, dy: Any) -> Any:
    """Forward, and the gradients of x, gain and bias."""
    centred = x - mean(x)
    scale = (mean(centred * centred) + EPSILON).rsqrt()
    normal, g = centred * scale, dy * gain
    return normal * gain + bias, scale * (g - mean(g) - normal * mean(g * normal)), (dy * normal).sum(0), dy.sum(0)


def rms_norm(x: Any, gain: Any) -> Any:
    return x * (mean(x * x) + EPSILON).rsqrt() * gain


def rms_norm_gradient(x: Any, gain: Any, dy: Any) -> Any:
    scale = (mean(x * x) + EPSILON).rsqrt()
    normal, g = x * scale, dy * gain
    return normal * gain, scale * (g - normal * mean(g * normal)), (dy * normal).sum(0)


def rotary(x: Any, cos: Any, sin: Any) -> Any:
    """x[batch, length, heads, 2, half]: pairs of halves are turned by angles [length, 1, half]."""
    a, b = x[:, :, :, 0], x[:, :, :, 1]
    return a * cos - b * sin, b * cos + a * sin


def at(t: Any, index: Any) -> Any:
    """t[i, index[i]], as a column."""
    return t.gather_elements(index, -1) if hasattr(t, "gather_elements") else t.gather(-1, index)


def cross_entropy(x: Any, labels: Any) -> Any:
    """labels: a column. The mean over rows."""
    top = largest(x)
    return (total((x - top).exp()).log() + top - at(x, labels)).mean()


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * (g * g)
    return p - 0.01 * m / (v.sqrt() + 1e-8), m, v


# A chain: an op, and its operand (another array "y", a number, none).
CHAINS: dict[str, list[tuple[str, Any]]] = {
    "3 ops": [("mul", "y"), ("add", 0.5), ("relu", None)],
    "5 ops": [("mul", "y"), ("add", 1.0), ("tanh", None), ("mul", "y"), ("sub", 0.25)],
    "8 ops": [("sub", "y"), ("mul", 0.5), ("sigmoid", None), ("mul", "y"), ("add", "y"), ("abs", None), ("sqrt", None), ("mul", 2.0)],
    "12 ops": [("mul", "y"), ("add", 0.5), ("abs", None), ("sqrt", None), ("sub", "y"), ("mul", 0.25), ("exp", None), ("div", 3.0),
               ("add", "y"), ("relu", None), ("mul", "y"), ("sub", 1.0)],
}
_SIGNS = {"mul": "*", "add": "+", "sub": "-", "div": "/"}


def chain(name: str) -> Formula:
    """As Python source, so that no contender pays for a loop over the ops."""
    text = "x"
    for op, operand in CHAINS[name]:
        text = f"({text} {_SIGNS[op]} {operand})" if op in _SIGNS else f"{text}.{op}()"
    made: Formula = eval(f"lambda x, y: {text}")
    return made


def chain_text(name: str) -> str:
    text = "x"
    for op, operand in CHAINS[name]:
        text = (f"({text} {_SIGNS[op]} {operand})" if op in _SIGNS else f"where({text} > 0, {text}, 0)" if op == "relu"
                else f"(1 / (1 + exp(-{text})))" if op == "sigmoid" else f"{op}({text})")
    return text


# ---- rows --------------------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One kind of row: what is computed, on which arrays, and how the peers do it best."""

    name: str
    arrays: Callable[[np.random.Generator, tuple[int, int]], Arrays]
    formula: Formula
    eager: Callable[[Any, dict[str, Any]], Call]  # of torch and the tensors
    numexpr: str = ""
    mindspore: Callable[[Any, dict[str, Any]], Call] | None = None
    dtypes: tuple[str, ...] = ("float32",)
    updates: int = 0  # so many arguments at the front are replaced by the results, at every call
    compiled: Any = field(default=None, repr=False)
    replayed: Any = field(default=None, repr=False)


def _normal(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def _flat(random: np.random.Generator, shape: tuple[int, int]) -> Arrays:
    return {"x": _normal(random, *shape), "y": _normal(random, *shape)}


def _norm(*names: str) -> Callable[[np.random.Generator, tuple[int, int]], Arrays]:
    return lambda random, shape: {n: _normal(random, shape[1]) if n in ("gain", "bias") else _normal(random, *shape) for n in names}


def _rotary(random: np.random.Generator, shape: tuple[int, int]) -> Arrays:
    half, heads = int(random.choice([16, 32, 64])), int(random.choice([1, 4, 8]))
    length = max(2, shape[0] * shape[1] // (2 * half * heads))
    angles = np.outer(np.arange(length), 1e4 ** (-np.arange(half) / half)).astype(np.float32)[:, None]
    return {"x": _normal(random, 1, length, heads, 2, half), "cos": np.cos(angles), "sin": np.sin(angles)}


def _labels(random: np.random.Generator, shape: tuple[int, int]) -> Arrays:
    return {"x": _normal(random, *shape), "labels": random.integers(0, shape[1], (shape[0], 1))}


def _moments(random: np.random.Generator, shape: tuple[int, int]) -> Arrays:
    found = {name: _normal(random, *shape) for name in "pmvg"}
    return {**found, "v": np.abs(found["v"])}


def _eager_chain(name: str) -> Callable[[Any, dict[str, Any]], Call]:
    def make(torch: Any, t: dict[str, Any]) -> Call:
        x, y, out = t["x"], t["y"], torch.empty_like(t["x"])
        named = [("clamp_min", 0.0) if op == "relu" else (op, operand) for op, operand in CHAINS[name]]  # relu has no out=
        first, *rest = [(getattr(torch, op), operand) for op, operand in named]

        def run() -> Any:
            function, operand = first
            function(x, y if operand == "y" else operand, out=out)
            for function, operand in rest:
                if operand is None:
                    function(out, out=out)
                else:
                    function(out, y if operand == "y" else operand, out=out)
            return out
        return run
    return make


def _eager_softmax(torch: Any, t: dict[str, Any]) -> Call:
    x, out = t["x"], torch.empty_like(t["x"])
    return lambda: torch.softmax(x, -1, out=out)


def _eager_softmax_gradient(torch: Any, t: dict[str, Any]) -> Call:
    y, dy = t["y"], t["dy"]
    return lambda: torch.ops.aten._softmax_backward_data(dy, y, -1, dy.dtype)


def _eager_layer_norm(torch: Any, t: dict[str, Any]) -> Call:
    x, gain, bias = t["x"], t["gain"], t["bias"]
    return lambda: torch.nn.functional.layer_norm(x, (x.shape[-1],), gain, bias, EPSILON)


def _eager_layer_norm_gradient(torch: Any, t: dict[str, Any]) -> Call:
    x, gain, bias, dy = t["x"], t["gain"], t["bias"], t["dy"]
    aten, shape = torch.ops.aten, [t["x"].shape[-1]]

    def run() -> Any:
        y, middle, scale = aten.native_layer_norm(x, shape, gain, bias, EPSILON)
        return y, *aten.native_layer_norm_backward(dy, x, shape, middle, scale, gain, bias, [True, True, True])
    return run


def _eager_rms_norm(torch: Any, t: dict[str, Any]) -> Call:
    x, gain = t["x"], t["gain"]
    return lambda: torch.nn.functional.rms_norm(x, (x.shape[-1],), gain, EPSILON)


def _eager_cross_entropy(torch: Any, t: dict[str, Any]) -> Call:
    x, labels = t["x"], t["labels"][:, 0].contiguous()
    return lambda: torch.nn.functional.cross_entropy(x, labels)


def _eager_swiglu(torch: Any, t: dict[str, Any]) -> Call:
    gate, up = t["gate"], t["up"]
    return lambda: torch.nn.functional.silu(gate).mul_(up)


def _eager_gelu(torch: Any, t: dict[str, Any]) -> Call:
    x, out = t["x"], torch.empty_like(t["x"])
    return lambda: torch.ops.aten.gelu.out(x, approximate="tanh", out=out)


def _eager_adam(torch: Any, t: dict[str, Any]) -> Call:
    p, m, v, g = (t[n].clone() for n in "pmvg")  # changed in place
    step = torch.ones(())
    options = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
    return lambda: torch._fused_adam_([p], [g], [m], [v], [], [step], **options)


def _eager_formula(formula: Formula) -> Callable[[Any, dict[str, Any]], Call]:
    return lambda torch, t: lambda: formula(*t.values())


HALVES = ("float32", "bfloat16")
CASES = [
    *(Case(f"chain of {name}", _flat, chain(name), _eager_chain(name), chain_text(name), dtypes=HALVES) for name in CHAINS),
    Case("GELU", lambda r, s: {"x": _normal(r, *s)}, gelu, _eager_gelu, "0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))",
         lambda ms, t: lambda: ms.ops.gelu(t["x"], approximate="tanh").asnumpy()),
    Case("SwiGLU", lambda r, s: {"gate": _normal(r, *s), "up": _normal(r, *s)}, swiglu, _eager_swiglu, "gate / (1 + exp(-gate)) * up"),
    Case("softmax", lambda r, s: {"x": _normal(r, *s)}, softmax, _eager_softmax,
         mindspore=lambda ms, t: lambda: ms.ops.softmax(t["x"]).asnumpy(), dtypes=HALVES),
    Case("softmax backward", lambda r, s: {"y": np.abs(_normal(r, *s)), "dy": _normal(r, *s)}, softmax_gradient, _eager_softmax_gradient),
    Case("LayerNorm", _norm("x", "gain", "bias"), layer_norm, _eager_layer_norm, dtypes=HALVES),
    Case("LayerNorm forward and backward", _norm("x", "gain", "bias", "dy"), layer_norm_gradient, _eager_layer_norm_gradient),
    Case("RMSNorm", _norm("x", "gain"), rms_norm, _eager_rms_norm),
    Case("RMSNorm forward and backward", _norm("x", "gain", "dy"), rms_norm_gradient, _eager_formula(rms_norm_gradient)),
    Case("rotary", _rotary, rotary, _eager_formula(rotary)),
    Case("cross-entropy", _labels, cross_entropy, _eager_cross_entropy),
    Case("Adam update", _moments, adam, _eager_adam, updates=3),
]


# ---- measuring ---------------------------------------------------------------------------------------------------------------------


def sampled(count: int, seed: int, largest_size: int = 1 << 22) -> list[tuple[int, int]]:
    """Rows and columns; log-uniform sizes, half of the columns odd ones, half multiples of 32."""
    random = np.random.default_rng(seed)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        size, cols = (2 ** random.uniform(math.log2(low), math.log2(high)) for low, high in ((512, largest_size), (16, 8192)))
        width = max(32, round(cols / 32) * 32) if len(found) % 2 else int(cols) | 1
        if size / width >= 2:
            found.append((int(size / width), width))
    return found


def _updating(function: Formula, arrays: list[Any], count: int) -> Call:
    """As an optimizer is called: the new values take the place, and the memory, of the old ones."""
    values, rest = [a * 1 for a in arrays[:count]], arrays[count:]

    def run() -> None:
        values[:] = function(*values, *rest)
    return run


class Contenders:
    """Who takes part, as installed. compiled: with torch.compile, whose first calls take seconds."""

    def __init__(self, compiled: bool, threads: int = 0) -> None:
        _core.set_threads(threads)
        self.clock = time.thread_time if threads == 1 else time.perf_counter
        self.torch: Any = None
        self.numexpr: Any = None
        self.mindspore: Any = None
        if importlib.util.find_spec("torch"):
            import torch

            self.torch = torch
            torch.set_grad_enabled(False)
            torch._dynamo.config.recompile_limit = 256
            if threads:
                torch.set_num_threads(threads)
        if importlib.util.find_spec("numexpr"):
            import numexpr

            self.numexpr = numexpr
            if threads:
                numexpr.set_num_threads(threads)
        if importlib.util.find_spec("mindspore") and threads != 1:
            import mindspore

            self.mindspore = mindspore
        self.compiled = compiled

    def of(self, case: Case, arrays: Arrays, dtype: str) -> dict[str, Call]:
        ours = [dvm.tensor(a) if dtype == "float32" or a.dtype != np.float32 else dvm.tensor(a).astype(dtype) for a in arrays.values()]
        case.replayed = case.replayed or dvm.jit(case.formula, mode="graph", donate=tuple(range(case.updates)))
        formula, replayed = case.formula, case.replayed
        found: dict[str, Call] = {"dvm": _updating(replayed, ours, case.updates) if case.updates else lambda: replayed(*ours)}
        if self.torch:
            tensors = {n: self.torch.from_numpy(a) for n, a in arrays.items()}
            if dtype != "float32":
                tensors = {n: t.to(getattr(self.torch, dtype)) for n, t in tensors.items()}
            found["torch"] = case.eager(self.torch, tensors)
            if self.compiled:
                case.compiled = case.compiled or self.torch.compile(formula, dynamic=True)
                values, compiled = list(tensors.values()), case.compiled
                found["torch.compile"] = lambda: compiled(*values)
        if self.numexpr and case.numexpr and dtype == "float32":
            text, out, numexpr = case.numexpr, np.empty_like(next(iter(arrays.values()))), self.numexpr
            found["numexpr"] = lambda: numexpr.evaluate(text, arrays, out=out)
        if self.mindspore and case.mindspore and dtype == "float32":
            found["mindspore"] = case.mindspore(self.mindspore, {n: self.mindspore.Tensor(a) for n, a in arrays.items()})
        return found


def _agree(case: Case, contenders: dict[str, Call], formula: Formula, arrays: Arrays, dtype: str) -> None:
    """A contender that computes something else is no peer (all but PyTorch's Adam, which changes its arguments)."""
    wide = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in arrays.items()}
    if dtype != "float32" or next(iter(wide.values())).size > 1 << 18 or case.name == "Adam update":
        return
    expected = formula(*(dvm.tensor(a) for a in wide.values()))
    def first(result: Any) -> np.ndarray:
        return np.asarray(result[0] if isinstance(result, (tuple, list)) else result)
    for name, call in contenders.items():
        np.testing.assert_allclose(first(call()), first(expected), rtol=3e-4, atol=3e-4, err_msg=f"{name} in {case.name}")


def cell(taking_part: Contenders, case: Case, shape: tuple[int, int], dtype: str, seconds: float) -> Row:
    arrays = case.arrays(np.random.default_rng(shape[0]), shape)
    contenders = taking_part.of(case, arrays, dtype)
    _agree(case, contenders, case.formula, arrays, dtype)
    label = " x ".join(map(str, next(iter(arrays.values())).shape))
    return Row(label, interleave(contenders, seconds, warm=2, rounds=7, clock=taking_part.clock))


def rows() -> Iterator[tuple[str, str, int, list[Case]]]:
    """Name, dtype, seed of its shapes and cases of each row."""
    for dtype in HALVES:
        groups: dict[str, list[Case]] = {}
        for case in CASES:
            if dtype in case.dtypes:
                groups.setdefault("chains of 3 to 12 ops" if case.name.startswith("chain") else case.name, []).append(case)
        for seed, (name, cases) in enumerate(groups.items()):
            yield name + ("" if dtype == "float32" else ", bf16"), dtype, seed, cases


def sweeps(quick: bool, only: str = "", shapes: int = 0, compiled: bool = True, threads: int = 0) -> Iterator[Sweep]:
    """A row each; the chains of different length share one. 200 shapes a row, 8 with `quick` (and then without torch.compile)."""
    taking_part = Contenders(compiled and not quick, threads)
    count, seconds = shapes or (8 if quick else 200), 0.02 if quick else 0.06
    for title, dtype, seed, cases in rows():
        if only in title:
            sizes = sampled(count, seed)
            yield Sweep(title, [cell(taking_part, cases[i % len(cases)], size, dtype, seconds) for i, size in enumerate(sizes)], AIM)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command.options(__doc__, "8 shapes a row")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    options = command.parsed(parser, [title for title, *_ in rows()], arguments)
    command.tell(sweeps(options.quick, options.only, options.shapes, not options.no_compile, options.threads), options.cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
