"""A short, fixed training run of the digits model, and the losses MindSpore itself gives for it.

`python tests/python/digits_reference.py` writes them again (tests/data/digits_losses.txt), without @dvm.jit.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parents[2]
LOSSES = ROOT / "tests" / "data" / "digits_losses.txt"
sys.path.insert(0, str(ROOT / "examples" / "digits"))

from model import DigitTransformer  # noqa: E402


def batches(seed: int = 5) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of 32, 48, 64 in turn over 300 images, each epoch ending with a ragged one."""
    digits = load_digits()
    images, labels = (digits.images[:300] / 16).astype(np.float32), digits.target[:300].astype(np.int32)
    random = np.random.default_rng(seed)
    count = 0
    while True:
        order = random.permutation(len(images))
        start = 0
        while start < len(order):
            chosen = order[start:start + (32, 48, 64)[count % 3]]
            yield Tensor(images[chosen]), Tensor(labels[chosen])
            start += len(chosen)
            count += 1


def setup(**sizes: int) -> tuple[Any, Callable[[Tensor, Tensor], Tensor]]:
    """A model with fixed initial weights, and its loss function, not captured."""
    ms.set_seed(7)
    np.random.seed(7)
    model = DigitTransformer(**sizes)
    cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def loss_fn(x: Tensor, y: Tensor) -> Tensor:
        logits = model(x)
        loss = cross_entropy(logits, y)
        return loss

    return model, loss_fn


def losses(steps: int, capture: Callable[[Any], Any] = lambda function: function) -> list[float]:
    """Losses of a training run with Adam; `capture` decorates the loss function."""
    model, loss_fn = setup()
    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, learning_rate=1e-3)
    forward_backward = ms.value_and_grad(capture(loss_fn), None, parameters)
    found = []
    for _, (x, y) in zip(range(steps), batches(), strict=False):
        loss, gradients = forward_backward(x, y)
        optimizer(gradients)
        found.append(float(loss))
    return found


if __name__ == "__main__":
    LOSSES.write_text("".join(f"{loss:.7f}\n" for loss in losses(100)))
