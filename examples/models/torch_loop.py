"""The training loop of the PyTorch models: `torch.compile(backend="dvm", dynamic=True)` around the loss, everything else plain."""
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from training import main

torch._dynamo.config.specialize_float = True  # numbers in the model stay numbers: half the time to compile

# model, loss function, batches. The loss function is a plain function of tensors; `compiling` is what it goes through.
Setup = Callable[[Callable[[Any], Any]], tuple[torch.nn.Module, Callable[..., torch.Tensor], Iterator[tuple[np.ndarray, ...]]]]


def compiling(backend: str) -> Callable[[Any], Any]:
    """What a function goes through: nothing ("eager"), or a compiler of that name."""
    return (lambda f: f) if backend == "eager" else lambda f: torch.compile(f, backend=backend, dynamic=True)


def train(setup: Setup, steps: int, backend: str) -> Iterator[float]:
    """Losses of a training run from fixed initial weights, one after the other."""
    torch.manual_seed(3)
    model, loss_fn, batches = setup(compiling(backend))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-5)
    for _, batch in zip(range(steps), batches, strict=False):
        loss = loss_fn(*map(torch.from_numpy, batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def run(description: str, setup: Setup) -> None:
    """The script's command line."""
    main(description, lambda steps, captured: train(setup, steps, "dvm" if captured else "eager"))
