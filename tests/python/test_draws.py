"""Graph mode keeps no number that Python code drew while it was traced."""
from __future__ import annotations

import random

import numpy as np
import pytest

import dvm_core as dvm

own = np.random.default_rng(3)
legacy = np.random.RandomState(3)
cards = random.Random(3)

DRAWN = {
    "random": random.random,
    "np.random": lambda: float(np.random.rand()),
    "own": lambda: float(own.random()),
    "legacy": lambda: float(legacy.rand()),
    "cards": lambda: cards.random(),
    "np.random and random": lambda: random.gauss(0, 1) + float(np.random.normal()),
}


def check(name: str, call, capsys: pytest.CaptureFixture[str]) -> None:
    found = {call() for _ in range(4)}
    assert len(found) == 4
    told = [line for line in capsys.readouterr().err.splitlines() if "stream mode" in line]
    assert len(told) == 1 and "test_draws.py:" in told[0] and "it draws random numbers in Python, from" in told[0]
    assert all(word in told[0] for word in name.split(" and "))


@pytest.mark.parametrize("name", DRAWN)
def test_a_function_of_arrays_that_draws_numbers_runs_in_stream_mode(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    draw = DRAWN[name]
    function = dvm.jit(mode="graph")(lambda x: x * draw())
    check(name, lambda: function(dvm.tensor(np.ones(2, np.float32))).tolist()[0], capsys)


@pytest.mark.parametrize("name", DRAWN)
def test_a_function_of_mindspore_tensors_that_draws_numbers_runs_in_stream_mode(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ms = pytest.importorskip("mindspore")
    draw = DRAWN[name]
    function = dvm.jit(mode="graph")(lambda x: x * draw())
    check(name, lambda: float(function(ms.Tensor(np.ones(2, np.float32)))[0]), capsys)


def test_drawing_between_calls_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    function = dvm.jit(mode="graph")(lambda x: x * 2)
    for _ in range(3):
        own.random(), random.random(), np.random.rand()
        function(dvm.tensor(np.ones(2, np.float32)))
    assert len(function.__dvm__.replays) == 1 and "stream mode" not in capsys.readouterr().err
