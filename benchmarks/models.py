"""A training step of each model of examples/models against the framework's own eager and compiled step, and requests answered a second.

    python benchmarks/models.py [--quick] [--only TEXT]

A process for each model; its batches have twelve sizes, all seen by every contender before it is timed. MindSpore: PyNative and `ms.jit`;
PyTorch: eager and TorchInductor with dynamic=True, on one core and in the thread's own time, for on a busy machine its threads wait for one
another longer than they compute. With MindSpore graph mode is ours, which like `ms.jit` knows each size by a trace of its own, and stream
mode is beside it. Serving: every other request has one size, the rest sizes of their own.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import command
import numpy as np
from timing import Row, interleave

from dvm_core import _core

MODELS = ("mlp", "lenet", "encoder", "lstm", "bert", "mmoe", "llama", "reinforce")
SERVED = ("mlp", "encoder")
MODES = {"mindspore": ("dvm graph", "dvm", "pynative", "graph"), "torch": ("dvm", "eager", "inductor")}  # the first is the one judged
AIMS = {"mindspore": ">= 1.07 x the best", "torch": ">= 1.0 x the best"}
SIZES, SECONDS = 12, 900  # batches that come again; until a model is given up
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "models"))


def _step(framework: str, model: str, mode: str, sizes: int) -> Callable[[], object]:
    """One training step a call: forward, backward, update, loss read; of reinforce the episode, too."""
    loop, setup = (importlib.import_module(f"{framework}_{name}") for name in ("loop", model))

    def again(compiled: Callable[[Any], Any]) -> Any:
        network, loss_fn, batches = setup.setup(compiled)
        return network, loss_fn, batches if model == "reinforce" else itertools.cycle(list(itertools.islice(batches, sizes)))
    losses = loop.train(again, sys.maxsize, mode)
    return lambda: next(losses)


def _serving(framework: str, model: str, mode: str, sizes: int) -> Callable[[], object]:
    """One request a call: images in, the likeliest digits out."""
    loop, setup = (importlib.import_module(f"{framework}_{name}") for name in ("loop", model))
    network = setup.setup(lambda function: function)[0]
    random = np.random.default_rng(3)
    shape = (64,) if model == "mlp" else (8, 8)
    batches = [random.random((8 if n % 2 else 1 + 5 * n, *shape), np.float32) for n in range(sizes)]
    requests = itertools.cycle(batches)
    if framework == "torch":
        import torch
        forward = loop.compiling(mode)(lambda images: network(images).argmax(1))

        def answer() -> object:
            with torch.no_grad():
                return forward(torch.from_numpy(next(requests))).numpy()
        return answer
    from mindspore import Tensor
    network.set_train(False)

    def likeliest(images: Tensor) -> Tensor:
        return network(images).argmax(1)
    captured = loop.MODES[mode](likeliest)
    return lambda: captured(Tensor(next(requests))).asnumpy()


def measure(framework: str, model: str, quick: bool) -> Iterator[Row]:
    """In this process. A contender that cannot run the model is told and left out."""
    sizes = 4 if quick else SIZES
    clock = time.perf_counter  # of MindSpore, whose ops run on threads of its own
    if framework == "torch":
        import torch
        torch.set_num_threads(1)
        _core.set_threads(1)
        clock = time.thread_time
    kinds = [("training step", _step)] + ([("a request", _serving)] if model in SERVED else [])
    for kind, make in kinds:
        calls: dict[str, Callable[[], object]] = {}
        for mode in MODES[framework]:
            try:
                call = make(framework, model, mode, sizes)
                for _ in range(3 * sizes):
                    call()
                calls[mode] = call
            except Exception as error:
                if mode.startswith("dvm"):
                    raise
                print(f"{framework} {model}: {mode} left out: {type(error).__name__}: {error}"[:300], file=sys.stderr, flush=True)
        times = interleave(calls, 1.0 if quick else 6.0, sizes, clock=clock)
        yield Row(f"{framework} {model}: {kind}", times, MODES[framework][0], AIMS[framework])


def rows(quick: bool, only: str = "") -> Iterator[Row]:
    """All models, each in a process of its own. One that fails or takes too long is told, and the rows it gave before are kept."""
    for framework, model in itertools.product(MODES, MODELS):
        if only not in f"{framework} {model}" or not importlib.util.find_spec(framework):
            continue
        arguments = [sys.executable, __file__, "--here", framework, model] + ["--quick"] * quick
        try:
            done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
            printed, fault = done.stdout, f"ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired as error:
            printed, fault = (error.stdout or b"").decode(), f"took more than {SECONDS} s"  # bytes, also of a process whose output is text
        for line in printed.splitlines(keepends=True):
            if line.startswith("@") and line.endswith("\n"):
                yield Row(**json.loads(line[1:]))
        if fault:
            print(f"{framework} {model}: {fault}; the other models go on", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four sizes, a second each")
    parser.add_argument("--only", default="", metavar="TEXT", help="only models whose framework and name have TEXT (`torch mlp`)")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        for row in measure(*options.here, options.quick):
            print("@" + json.dumps(vars(row)), flush=True)
        return 0
    for row in rows(options.quick, options.only):
        command.tell_row(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
