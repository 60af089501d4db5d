"""Trains DigitTransformer on scikit-learn's digits.

    python train.py [--steps N] [--seed N] [--no-dvm] [--losses FILE]

The loss function is captured (`@dvm.jit`): model, loss and gradients run on the tensor VM, the loop and the optimizer stay MindSpore's.
"""
import argparse
import math
from collections.abc import Iterator

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from model import DigitTransformer
from sklearn.datasets import load_digits

import dvm_core as dvm

BATCH_SIZES = (32, 48, 64)
WARM_UP = 40
PEAK = 2e-3


def learning_rate(step: int) -> float:
    """Linear warm-up, then a cosine down to a tenth."""
    if step < WARM_UP:
        return PEAK * (step + 1) / WARM_UP
    progress = min(1.0, (step - WARM_UP) / 1200)
    return PEAK * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, held-out images and labels (one in five)."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)
    labels = digits.target.astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(images))
    held_out, training = order[: len(order) // 5], order[len(order) // 5:]
    return images[training], labels[training], images[held_out], labels[held_out]


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Each image moved sideways by -1, 0 or 1 pixel, blank where it came from."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1)))
    offsets = random.integers(0, 3, len(images))
    columns = offsets[:, None] + np.arange(images.shape[2])
    return np.take_along_axis(padded, columns[:, None, :], axis=2)


def batches(images: np.ndarray, labels: np.ndarray, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless epochs in random order. The batch size changes all the time, and each epoch ends with whatever is left."""
    random = np.random.default_rng(seed)
    size = 0
    while True:
        order = random.permutation(len(images))
        start = 0
        while start < len(order):
            chosen = order[start:start + BATCH_SIZES[size % len(BATCH_SIZES)]]
            yield Tensor(shifted(images[chosen], random)), Tensor(labels[chosen])
            start += len(chosen)
            size += 1


def accuracy(model: nn.Cell, images: np.ndarray, labels: np.ndarray) -> float:
    """Share of images whose largest logit is the label's."""
    logits = model(Tensor(images)).asnumpy()
    return float((logits.argmax(axis=1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-dvm", action="store_true", help="plain MindSpore, for comparison")
    parser.add_argument("--losses", metavar="FILE", help="write every loss as a hexadecimal float, one a line")
    options = parser.parse_args()

    ms.set_seed(options.seed)
    images, labels, test_images, test_labels = load(options.seed)
    model = DigitTransformer()
    cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def loss_fn(x: Tensor, y: Tensor) -> Tensor:
        logits = model(x)
        loss = cross_entropy(logits, y)
        return loss

    if not options.no_dvm:
        loss_fn = dvm.jit(loss_fn)

    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, learning_rate=learning_rate(0))
    forward_backward = ms.value_and_grad(loss_fn, None, parameters)
    losses = []
    for step, (x, y) in zip(range(options.steps), batches(images, labels, options.seed), strict=False):
        loss, gradients = forward_backward(x, y)
        rate = learning_rate(step)
        ops.assign(optimizer.learning_rate, Tensor(rate, ms.float32))
        optimizer(gradients)
        losses.append(float(loss))
        print(f"step {step + 1:4d}  loss {losses[-1]:.4f}  lr {rate:.2e}", flush=True)

    if options.losses:
        with open(options.losses, "w", encoding="utf-8") as file:
            file.writelines(loss.hex() + "\n" for loss in losses)
    print(f"accuracy on held-out images: {accuracy(model, test_images, test_labels):.2%}")


if __name__ == "__main__":
    main()
