"""Shared by all Python tests."""
from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def mindspore_forgets_failed_gradients() -> Iterator[None]:
    """After an exception under value_and_grad MindSpore 2.10 believes for good that a gradient is being recorded, with or without us."""
    yield
    compat = sys.modules.get("dvm_core.frontends.mindspore_compat")
    if compat is not None and compat.grad_enabled():
        compat.clear_gradient_state()
