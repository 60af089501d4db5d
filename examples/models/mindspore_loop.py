"""The training loop of the MindSpore models: `@dvm.jit` on the loss and on the optimizer's update, everything else plain."""
import functools
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from training import main

import dvm_core as dvm

Setup = Callable[[Callable[[Any], Any]], tuple[nn.Cell, Callable[..., Tensor], Iterator[tuple[np.ndarray, ...]]]]
MODES: dict[str, Callable[[Any], Any]] = {"pynative": lambda f: f, "dvm": dvm.jit, "dvm graph": functools.partial(dvm.jit, mode="graph"),
                                          "graph": ms.jit}


def train(setup: Setup, steps: int, mode: str) -> Iterator[float]:
    """Losses of a training run from fixed initial weights, one after the other."""
    ms.set_seed(3)
    np.random.seed(3)
    model, loss_fn, batches = setup(MODES[mode])
    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, learning_rate=3e-3, eps=1e-5)  # gradients that are zero but for rounding move nothing
    update = MODES[mode](lambda gradients: optimizer(gradients)) if mode.startswith("dvm") else optimizer
    forward_backward = ms.value_and_grad(loss_fn, None, parameters)
    for _, batch in zip(range(steps), batches, strict=False):
        loss, gradients = forward_backward(*map(Tensor, batch))
        update(gradients)
        yield float(loss)


def run(description: str, setup: Setup) -> None:
    """The script's command line."""
    main(description, lambda steps, captured: train(setup, steps, "dvm" if captured else "pynative"))
