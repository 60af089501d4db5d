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
def no_hook_outlives_its_test() -> Iterator[None]:
    """Hooks and results nobody took are the process's: the next test would find them."""
    yield
    core = sys.modules.get("dvm_core._core")
    if core is not None:
        core.clear_hooks()
        core.synchronize_copies()
        while core.poll_events():
            pass
