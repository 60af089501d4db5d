"""Functions whose shapes or paths change from call to call, everything counted from a cold start: each contender in a process of its own.

    python benchmarks/decoder.py [--quick]                           every case and contender
    python benchmarks/decoder.py decoder|if-else-add CONTENDER      seconds as JSON: in all, the first call, median of the last ten
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import command
import numpy as np
from timing import Row

WIDTH, HEADS, LENGTHS = 256, 4, range(128, 161)
Step = Callable[[int], Any]


@functools.cache
def _weights() -> list[np.ndarray]:
    """Four projections of attention, gate, up and down of the feed-forward part, two norms."""
    random = np.random.default_rng(0)
    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH)] * 2 + [(4 * WIDTH, WIDTH)]
    return [random.standard_normal(s, dtype=np.float32) / math.sqrt(s[0]) for s in shapes] + [np.ones(WIDTH, np.float32)] * 2


@functools.cache
def _tokens(length: int) -> np.ndarray:
    return np.random.default_rng(length).standard_normal((length, WIDTH), dtype=np.float32)


def _layer(x: Any, w: list[Any], attend: Callable[[Any, Any, Any], Any], rms: Callable[[Any, Any], Any], silu: Callable[[Any], Any]) -> Any:
    """A Llama-style layer; `attend` takes and gives [heads, length, width of a head]."""
    def heads(t: Any) -> Any:
        return t.reshape(-1, HEADS, WIDTH // HEADS).swapaxes(0, 1)
    h = rms(x, w[7])
    out = attend(heads(h @ w[0]), heads(h @ w[1]), heads(h @ w[2])).swapaxes(0, 1).reshape(-1, WIDTH)
    x = x + out @ w[3]
    h = rms(x, w[8])
    return x + (silu(h @ w[4]) * (h @ w[5])) @ w[6]


def _dvm_decoder() -> Step:
    import dvm_core as dvm

    w = [dvm.tensor(a) for a in _weights()]

    def step(length: int) -> Any:
        seen = dvm.tensor(np.tril(np.ones((length, length), np.bool_)))

        def attend(q: Any, k: Any, v: Any) -> Any:
            return seen.where(q.matmul(k, transpose_b=True) * (WIDTH // HEADS) ** -0.5, -math.inf).softmax(-1) @ v

        def rms(x: Any, gain: Any) -> Any:
            return x * ((x * x).mean(-1, keepdims=True) + 1e-6).rsqrt() * gain
        return _layer(dvm.tensor(_tokens(length)), w, attend, rms, lambda x: x * x.sigmoid()).numpy()
    return step


def _torch_decoder(fused: bool, compiled: bool) -> Step:
    import torch

    torch.set_grad_enabled(False)
    w = [torch.from_numpy(a) for a in _weights()]

    def attend(q: Any, k: Any, v: Any) -> Any:
        if fused:
            return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        scores = q @ k.swapaxes(1, 2) * (WIDTH // HEADS) ** -0.5
        seen = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril()
        return scores.masked_fill(~seen, -math.inf).softmax(-1) @ v

    def rms(x: Any, gain: Any) -> Any:
        return torch.nn.functional.rms_norm(x, (WIDTH,), gain, 1e-6)

    def layer(x: Any) -> Any:
        return _layer(x, w, attend, rms, torch.nn.functional.silu)
    run = torch.compile(layer, dynamic=True) if compiled else layer
    return lambda length: run(torch.from_numpy(_tokens(length))).numpy()


def _mindspore_decoder() -> Step:
    import mindspore
    from mindspore import ops

    w = [mindspore.Tensor(a) for a in _weights()]

    def step(length: int) -> Any:
        hidden = mindspore.Tensor(np.triu(np.ones((length, length), np.bool_), 1))

        def attend(q: Any, k: Any, v: Any) -> Any:
            return ops.softmax((ops.matmul(q, k.swapaxes(1, 2)) * (WIDTH // HEADS) ** -0.5).masked_fill(hidden, -math.inf), -1) @ v

        def rms(x: Any, gain: Any) -> Any:
            return x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + 1e-6) * gain
        return _layer(mindspore.Tensor(_tokens(length)), w, attend, rms, lambda x: x * ops.sigmoid(x)).asnumpy()
    return step


# If-else-add: every step adds or subtracts, as the data say.

def _branches(x: Any, y: Any, positive: Callable[[Any], bool]) -> Any:
    for _ in range(4):
        x = x + y if positive(x) else x - y
    return x


@functools.cache
def _if_else_inputs(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    return random.standard_normal((n, 64), dtype=np.float32), random.standard_normal((n, 64), dtype=np.float32)


def _dvm_branches() -> Step:
    import dvm_core as dvm

    def step(n: int) -> Any:
        x, y = (dvm.tensor(a) for a in _if_else_inputs(n))
        return _branches(x, y, lambda t: bool(t.sum() > 0)).numpy()
    return step


def _torch_branches(compiled: bool) -> Step:
    import torch

    torch.set_grad_enabled(False)

    def body(x: Any, y: Any) -> Any:
        return _branches(x, y, lambda t: bool(t.sum() > 0))
    run = torch.compile(body, dynamic=True) if compiled else body
    return lambda n: run(*(torch.from_numpy(a) for a in _if_else_inputs(n))).numpy()


def _mindspore_branches() -> Step:
    import mindspore

    def step(n: int) -> Any:
        x, y = (mindspore.Tensor(a) for a in _if_else_inputs(n))
        return _branches(x, y, lambda t: bool(t.sum() > 0)).asnumpy()
    return step


CASES: dict[str, tuple[range, str, dict[str, Callable[[], Step]]]] = {
    "decoder": (LENGTHS, ">= 50 x compiled, >= 1.5 x torch fused, >= 5 x mindspore", {
        "dvm": _dvm_decoder, "torch": lambda: _torch_decoder(False, False), "torch fused": lambda: _torch_decoder(True, False),
        "torch.compile": lambda: _torch_decoder(True, True), "mindspore": _mindspore_decoder}),
    "if-else-add": (range(100, 200, 3), ">= 1.0 x the best", {
        "dvm": _dvm_branches, "torch": lambda: _torch_branches(False), "torch.compile": lambda: _torch_branches(True),
        "mindspore": _mindspore_branches}),
}


def _measure(case: str, contender: str) -> dict[str, Any]:
    """In this process: imports and drawing the inputs are not counted, everything after them is."""
    if contender.startswith("torch"):
        import torch  # noqa: F401
    elif contender == "mindspore":
        import mindspore  # noqa: F401
    else:
        import dvm_core.frontends.array  # noqa: F401
    lengths, _, makers = CASES[case]
    _weights()
    for length in lengths:
        (_tokens if case == "decoder" else _if_else_inputs)(length)
    begin = time.perf_counter()
    step = makers[contender]()
    times, sums = [], []
    for length in lengths:
        start = time.perf_counter()
        out = step(length)
        times.append(time.perf_counter() - start)
        sums.append(float(np.abs(out).sum(dtype=np.float64)))
    total = time.perf_counter() - begin
    return {"total": total, "first": times[0], "steady": statistics.median(times[-10:]), "check": sums}


def rows(repeats: int = 3) -> list[Row]:
    """Totals from a cold start (the middle one of `repeats` processes each, in turn) and steady steps."""
    found = []
    for case, (lengths, aim, makers) in CASES.items():
        results: dict[str, list[dict[str, Any]]] = {}
        for _ in range(repeats):
            for name in makers:
                if importlib.util.find_spec("dvm_core" if name == "dvm" else name.partition(" ")[0].partition(".")[0]) is None:
                    continue
                done = subprocess.run([sys.executable, __file__, case, name], capture_output=True, text=True, check=True)
                results.setdefault(name, []).append(json.loads(done.stdout.splitlines()[-1]))
        for name, runs in results.items():  # a contender that computes something else is no peer
            np.testing.assert_allclose(runs[0]["check"], results["dvm"][0]["check"], rtol=1e-3, err_msg=f"{name} in {case}")
        for what, label in (("total", f"{len(lengths)} calls from a cold start"), ("steady", "a step later")):
            times = {name: statistics.median(r[what] for r in runs) for name, runs in results.items()}
            found.append(Row(f"{case}, {label}", times, aim=aim if what == "total" else ""))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="?", choices=CASES, help="one contender of one case, in this process: its seconds as JSON")
    parser.add_argument("contender", nargs="?", help="; ".join(f"{case}: {', '.join(makers)}" for case, (_, _, makers) in CASES.items()))
    parser.add_argument("--quick", action="store_true", help="one process for each contender instead of three")
    options = parser.parse_args()
    if options.case is None:
        for row in rows(1 if options.quick else 3):
            command.tell_row(row)
        return 0
    makers = CASES[options.case][2]
    if options.contender not in makers:
        parser.error(f"a contender of {options.case} is one of {', '.join(makers)}")
    print(json.dumps(_measure(options.case, options.contender)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
