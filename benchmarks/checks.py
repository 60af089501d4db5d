"""Rows about the simulated NPUs' checks: what they cost beside compiling, and beside the launch they watch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from timing import Row, interleave

import dvm_core as dvm
from dvm_core import _core


@dvm.kernel
def _softmax(k, x):  # type: ignore[no-untyped-def]
    a = k.load(x, "float32")
    weight = k.exp(k.sub(a, k.max(a, [-1], True)))
    return k.store(k.div(weight, k.sum(weight, [-1], True)))


def rows(seconds: float) -> Iterable[Row]:
    """The facts of a check against compiling alone; a whole report; a launch on a chip against one on the cpu."""
    x = np.random.default_rng(0).standard_normal((512, 200)).astype(np.float32)
    _softmax(x)
    program = _softmax.program()

    def launch(device: str) -> None:
        dvm.set_device(device)
        _softmax(x)
        dvm.set_device("cpu")

    facts = {"check": lambda: _core.check(program.id, "npu-sim:910b"), "compile": program.passes}
    yield Row("check of a softmax on npu-sim:910b", interleave(facts, seconds), "check")
    reports = {"report": lambda: str(dvm.check(_softmax)), "check": facts["check"]}
    yield Row("dvm.check of it as text, both chips", interleave(reports, seconds), "report")
    launches = {"npu-sim:910b": lambda: launch("npu-sim:910b"), "cpu": lambda: launch("cpu")}
    yield Row("a launch of it, every byte watched", interleave(launches, seconds), "npu-sim:910b")
