"""Models of examples/models train captured: MindSpore's losses over 200 steps, which are stored; no program after the kinds of shapes were
seen, flat memory."""
from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mindspore")
pytest.importorskip("sklearn")

import model_losses as models  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import notices  # noqa: E402

pytestmark = pytest.mark.timeout(1200)
SEEN = 60  # steps after which every kind of shapes has come


GRAPH = ("lenet", "bert", "llama", "reinforce")  # also in graph mode


@pytest.mark.parametrize(("model", "mode"), [*((model, "dvm") for model in models.MODELS), *((model, "dvm graph") for model in GRAPH)])
def test_200_steps_are_mindspores_with_the_programs_of_the_first(model: str, mode: str) -> None:
    told: list[dict] = []
    notices.add_sink(told.append)
    losses, programs, live = [], [], []
    try:
        for loss in models.module("mindspore", "loop").train(models.module("mindspore", model).setup, models.STEPS, mode):
            losses.append(loss)
            programs.append(dvm.stats()["programs"])
            live.append(dvm.stats()["bytes_live"])
    finally:
        notices.remove_sink(told.append)
    assert not [note["text"] for note in told if note.get("category") == "fallback"]
    theirs = models.stored()[model]
    assert np.abs(np.array(losses) - theirs).max() < 1e-3
    assert model == "reinforce" or np.mean(losses[-20:]) < np.mean(losses[:20])  # its loss is no measure: it changes with the policy
    assert programs[SEEN] == programs[-1]
    assert max(live[-SEEN:]) <= 1.5 * max(live[:SEEN])
