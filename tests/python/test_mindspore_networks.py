"""Whole networks train captured, with no op left to MindSpore, and their losses are MindSpore's own: LeNet, a ResNet, an LSTM."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")
datasets = pytest.importorskip("sklearn.datasets")

from mindspore import Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import notices  # noqa: E402

Batches = Iterator[tuple[Tensor, ...]]


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 3, has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 3, pad_mode="valid", has_bias=True), nn.ReLU(), nn.AvgPool2d(2, 2), nn.Flatten())
        self.classes = nn.SequentialCell(nn.Dense(16, 24), nn.ReLU(), nn.Dense(24, 10))

    def construct(self, x: Tensor) -> Tensor:
        return self.classes(self.features(x))


class Residual(nn.Cell):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, pad_mode="pad", padding=1)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.skip = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)) if stride > 1 else None

    def construct(self, x: Tensor) -> Tensor:
        h = ops.relu(self.first_norm(self.first(x)))
        h = self.second_norm(self.second(h))
        return ops.relu(h + (x if self.skip is None else self.skip(x)))


class ResNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.SequentialCell(Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classes = nn.Dense(16, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.classes(ops.flatten(self.pool(self.blocks(self.stem(x)))))


class Tagger(nn.Cell):
    """The class of a sequence from the last state of an LSTM; sequences end where their length says."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.classes = nn.Dense(16, 3)

    def construct(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        start = ops.zeros((1, tokens.shape[0], 16), ms.float32)
        _, (state, _) = self.lstm(self.table(tokens), (start, start), lengths)
        return self.classes(state[0])


def digits(seed: int) -> Batches:
    found = datasets.load_digits()
    images, labels = (found.images / 16).astype(np.float32), found.target.astype(np.int32)
    random = np.random.default_rng(seed)
    for step in range(1000):
        chosen = random.integers(0, len(images), (24, 17, 24)[step % 3])
        yield Tensor(images[chosen][:, None]), Tensor(labels[chosen])


def sequences(seed: int) -> Batches:
    """Tokens whose class is that of the most frequent one, modulo 3. Few shapes: MindSpore compiles an LSTM for each of them."""
    random = np.random.default_rng(seed)
    while True:
        longest = int(random.choice((3, 4)))
        lengths = random.integers(1, longest + 1, 12).astype(np.int32)
        tokens = random.integers(0, 12, (12, longest)).astype(np.int32)
        labels = np.array([np.bincount(row[:n]).argmax() % 3 for row, n in zip(tokens, lengths, strict=True)], np.int32)
        yield Tensor(tokens), Tensor(lengths), Tensor(labels)


def train(build: Callable[[], nn.Cell], batches: Callable[[int], Batches], optimizer: Callable[[Any], Any], steps: int,
          captured: bool) -> list[float]:
    ms.set_seed(3)
    np.random.seed(3)
    model = build().set_train()
    cross_entropy = nn.CrossEntropyLoss()

    def loss_fn(*batch: Tensor) -> Tensor:
        return cross_entropy(model(*batch[:-1]), batch[-1])

    update = optimizer(model.trainable_params())

    def move(gradients: tuple[Tensor, ...]) -> None:
        update(gradients)

    if captured:
        loss_fn, move = dvm.jit(loss_fn), dvm.jit(move)
    gradient = ms.value_and_grad(loss_fn, None, model.trainable_params())
    losses = []
    for _, batch in zip(range(steps), batches(5), strict=False):
        loss, gradients = gradient(*batch)
        move(gradients)
        losses.append(float(loss))
    return losses


NETWORKS: dict[str, tuple[Callable[[], nn.Cell], Callable[[int], Batches], Callable[[Any], Any], int]] = {
    "LeNet": (LeNet, digits, lambda p: nn.Momentum(p, 0.05, 0.9), 30),
    "ResNet": (ResNet, digits, lambda p: nn.SGD(p, 0.05, momentum=0.9, weight_decay=1e-4), 12),
    "LSTM": (Tagger, sequences, lambda p: nn.AdamWeightDecay(p, 5e-3, weight_decay=0.01), 20),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_trains_captured_with_mindspores_losses(name: str) -> None:
    told: list[dict[str, Any]] = []
    notices.add_sink(told.append)
    try:
        ours = train(*NETWORKS[name], captured=True)
    finally:
        notices.remove_sink(told.append)
    assert not [note["text"] for note in told if note.get("category") == "fallback"]
    theirs = train(*NETWORKS[name], captured=False)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    assert np.mean(ours[-4:]) < np.mean(ours[:4])
