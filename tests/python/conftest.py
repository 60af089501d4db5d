"""Shared by all Python tests. HYPOTHESIS_PROFILE=fuzz (`make fuzz`) runs the property tests for longer."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("fuzz", max_examples=5000, deadline=None)
if os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])


_LONG = ("test_models_", "test_torch_compile", "test_mindspore_networks", "test_changing_shapes")  # files of minutes, begun first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One file after another on each worker: a long one at the end would leave the others idle."""
    items.sort(key=lambda item: not item.path.name.startswith(_LONG))


@pytest.fixture(autouse=True)
def nothing_set_outlives_its_test() -> Iterator[None]:
    """Hooks, results nobody took, settings and faults are the process's: the next test would find them, above all after one that failed."""
    yield
    core = sys.modules.get("dvm_core._core")
    if core is not None:
        core.clear_hooks()
        core.synchronize_copies()
        while core.poll_events():
            pass
        core.clear_faults()
        core.set_check(0)
        core.set_tile_elements(0)
        core.set_threads(0)
        core.set_clusters(True)
        if core.device() != "cpu":
            core.set_device("cpu")
    agent = sys.modules.get("dvm_core.agent")
    if agent is not None:
        agent._done = None  # what one test reloaded is not the next one's to undo
