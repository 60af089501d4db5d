"""Rows over the digits model: a training step against MindSpore's own, and what an attached debugger costs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from timing import Row, interleave

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "digits"
PROBE = Path(__file__).resolve().parent / "attached_probe.py"


def step(captured: bool, batch: int = 48) -> Callable[[], float]:
    """One training step of the digits model (forward, backward, Adam, loss read back) with its own parameters."""
    sys.path.insert(0, str(EXAMPLE))
    import mindspore as ms
    from mindspore import nn
    from model import DigitTransformer
    from train import load

    import dvm_core as dvm

    ms.set_seed(1)
    images, labels, _, _ = load(1)
    model = DigitTransformer()
    cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def loss_fn(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        return cross_entropy(model(x), y)

    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, learning_rate=1e-3)
    forward_backward = ms.value_and_grad(dvm.jit(loss_fn) if captured else loss_fn, None, parameters)
    batches = [(ms.Tensor(images[i:i + batch]), ms.Tensor(labels[i:i + batch])) for i in range(0, 8 * batch, batch)]
    turn = 0

    def run() -> float:
        nonlocal turn
        turn = (turn + 1) % len(batches)
        loss, gradients = forward_backward(*batches[turn])
        optimizer(gradients)
        return float(loss)

    def without_optimizer() -> float:
        nonlocal turn
        turn = (turn + 1) % len(batches)
        loss, gradients = forward_backward(*batches[turn])
        for gradient in gradients[-1:]:
            gradient.asnumpy()
        return float(loss)

    run.gradients = without_optimizer  # type: ignore[attr-defined]
    return run


def training_step(seconds: float) -> list[Row]:
    """The step MindSpore users run, and the part of it that is captured (loss and gradients)."""
    ours, theirs = step(True), step(False)
    whole = interleave({"dvm": ours, "mindspore": theirs}, seconds)
    part = interleave({"dvm": ours.gradients, "mindspore": theirs.gradients}, seconds)  # type: ignore[attr-defined]
    return [Row("digits: training step (with nn.Adam)", whole, aim="≥ 5 × MindSpore PyNative"),
            Row("digits: loss and gradients", part)]


@contextmanager
def _session(directory: Path, arguments: list[str]) -> Iterator[None]:
    from dvm_adapter.client import Client

    client = Client([sys.executable, "-m", "dvm_adapter"])
    try:
        client.launch(program=str(PROBE), args=arguments, cwd=str(directory), python=[sys.executable])
        client.event("terminated", timeout=600)
        yield
    finally:
        client.close()


def attached(seconds: float, out: Path, pairs: int = 3) -> list[Row]:
    """The same program without and with a debugger that has nothing set, in turn; each reports the median of its own steps."""
    import subprocess

    samples: dict[str, list[float]] = {"plain": [], "dvm": []}
    for turn in range(pairs):
        for name in ("plain", "dvm") if turn % 2 == 0 else ("dvm", "plain"):
            result = out / f"attached-{name}-{turn}.txt"
            arguments = ["--seconds", str(seconds), "--out", str(result)]
            if name == "plain":
                subprocess.run([sys.executable, str(PROBE), *arguments], check=True, stdout=subprocess.DEVNULL)
            else:
                with _session(out, arguments):
                    pass
            samples[name].append(float(result.read_text()))
    return [Row("digits: step under a debugger with nothing set", {n: statistics.median(v) for n, v in samples.items()},
                aim="≥ 0.99 × (costs ≤ 1 %)")]


def median_step(run: Callable[[], float], seconds: float) -> float:
    """Median seconds of one call, after a tenth of the time as warm-up."""
    end_of_warm_up, end = time.perf_counter() + seconds / 10, time.perf_counter() + seconds
    while time.perf_counter() < end_of_warm_up:
        run()
    samples = []
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)
