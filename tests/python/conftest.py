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
