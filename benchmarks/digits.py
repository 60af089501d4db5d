"""Rows over the digits model: a training step against MindSpore's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from timing import Row, interleave

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "digits"


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
