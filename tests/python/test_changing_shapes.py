"""A training step whose shapes are new every time: nothing is traced or compiled again, and memory stays flat.

DVM_STEPS=10000 runs as many steps; a test makes 300 without it.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest

import dvm_core as dvm

pytestmark = pytest.mark.timeout(0 if "DVM_STEPS" in os.environ else 900)
STEPS = int(os.environ.get("DVM_STEPS", "300"))


def batches() -> Any:
    """(n, time, 6) float32 and targets (n, 4); no pair of n and time comes twice in 10,000 steps."""
    random = np.random.default_rng(1)
    for step in range(STEPS):
        x = random.standard_normal((2 + step % 101, 2 + step // 101 % 100, 6), np.float32)
        yield x, x[:, 0, :4] * x[:, 1, 1:5]


def flat(step: Callable[[np.ndarray, np.ndarray], float], made: Callable[[], Any]) -> list[float]:
    """Losses; what `made` counts, and memory, are the same after a tenth of the steps and at the end."""
    process, losses, counts, live, resident = psutil.Process(), [], [], [], []
    for x, y in batches():
        losses.append(step(x, y))
        counts.append(made())
        live.append(dvm.stats()["bytes_live"])
        if len(losses) % 50 == 0:
            resident.append(process.memory_info().rss)
    tenth = STEPS // 10
    assert counts[tenth] == counts[-1]
    assert max(live[-tenth:]) <= 1.2 * max(live[:-tenth]) + (1 << 20)  # the longest sequences come last
    grown = resident[-1] - resident[len(resident) // 5]
    print(f"{STEPS} steps: made {counts[0]} -> {counts[-1]}, live {live[tenth]} -> {live[-1]} bytes, "
          f"resident {resident[len(resident) // 5] >> 20} -> {resident[-1] >> 20} MB")
    assert grown < 100 << 20
    return losses


def test_mindspore_training_steps_of_shapes_that_are_always_new_make_nothing_anew() -> None:
    ms = pytest.importorskip("mindspore")
    ms.set_seed(1)
    np.random.seed(1)
    model = ms.nn.SequentialCell(ms.nn.Dense(6, 16), ms.nn.Tanh(), ms.nn.Dense(16, 4))

    @dvm.jit
    def loss_fn(x: Any, y: Any) -> Any:
        return (model(x).mean(1) - y).square().mean()

    optimizer = ms.nn.Adam(model.trainable_params(), 3e-3)
    update = dvm.jit(lambda gradients: optimizer(gradients))
    gradient = ms.value_and_grad(loss_fn, None, model.trainable_params())

    def step(x: np.ndarray, y: np.ndarray) -> float:
        loss, gradients = gradient(ms.Tensor(x), ms.Tensor(y))
        update(gradients)
        return float(loss)
    assert np.isfinite(flat(step, lambda: dvm.stats()["programs"])).all()


def test_torch_training_steps_of_shapes_that_are_always_new_make_nothing_anew() -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"torch {torch.__version__}: the front end is for 2.13")
    from torch._dynamo.utils import counters
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    loss_fn = torch.compile(lambda x, y: (model(x).mean(1) - y).square().mean(), backend="dvm", dynamic=True)

    def step(x: np.ndarray, y: np.ndarray) -> float:
        loss = loss_fn(torch.from_numpy(x), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
    assert np.isfinite(flat(step, lambda: (dvm.stats()["programs"], counters["stats"]["unique_graphs"]))).all()
    torch._dynamo.reset()
