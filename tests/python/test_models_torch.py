"""The models of examples/models train with torch.compile(backend="dvm"): PyTorch's losses, no graph or program anew, flat memory.

DVM_MODELS=all trains all eight; PyTorch takes a minute to compile each of the others."""
from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.__version__.startswith("2.13."):
    pytest.skip(f"torch {torch.__version__}: the front end is for 2.13", allow_module_level=True)
pytest.importorskip("sklearn")

import model_losses as models  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import dvm_core as dvm  # noqa: E402

pytestmark = pytest.mark.timeout(1200)  # compiling takes most of it
SEEN = 60  # steps after which every kind of shapes has come


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("model", models.MODELS if os.environ.get("DVM_MODELS") == "all" else ("mlp", "lstm"))
def test_200_steps_give_torchs_losses_with_the_first_steps_graphs(model: str) -> None:
    train, setup = models.module("torch", "loop").train, models.module("torch", model).setup
    losses, made, live = [], [], []
    launches = dvm.stats()["launches"]
    for loss in train(setup, models.STEPS, "dvm"):
        losses.append(loss)
        made.append((dvm.stats()["programs"], counters["stats"]["unique_graphs"]))
        live.append(dvm.stats()["bytes_live"])
    assert dvm.stats()["launches"] >= launches + 2 * models.STEPS
    assert np.abs(np.array(losses) - list(train(setup, models.STEPS, "eager"))).max() < 1e-3
    assert model == "reinforce" or np.mean(losses[-20:]) < np.mean(losses[:20])  # its loss is no measure: it changes with the policy
    assert made[SEEN] == made[-1]
    assert max(live[-SEEN:]) <= 1.5 * max(live[:SEEN])
