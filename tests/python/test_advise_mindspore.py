"""`dvm run --advise` over MindSpore: comparisons leave no trace, and what could not be compared says why."""
from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mindspore")
from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core.frontends import repeatable, sampling  # noqa: E402
from dvm_core.frontends.observed import Observed  # noqa: E402

SCRIPT = Path(__file__).parent / "advise_mindspore_script.py"


def run(*options: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-m", "dvm_core", "run", *options, str(SCRIPT)], text=True, capture_output=True, check=True)
    return done.stdout, done.stderr


def test_results_and_effects_are_those_of_a_run_without():
    plain, _ = run()
    advised, table = run("--advise")
    assert advised == plain and len(plain.splitlines()) == 9
    lines = table.splitlines()
    rows = {line.split()[0]: i for i, line in enumerate(lines) if line and not line.startswith((" ", "["))}

    def block(name: str) -> str:
        return "\n".join([*lines[rows[name]:rows[name] + 1], *_indented(lines[rows[name] + 1:])])
    for name in ("pure", "Net.construct", "graphed"):
        assert "calls each, in turn" in block(name) or "no difference to speak of" in block(name)
        assert "not compared" not in block(name)
    for name, why in {"told": "it calls print()", "counted": "it uses counter, a Counter", "listed": "it takes .append",
                      "noisy": "it draws random numbers", "written": "it changes a tensor in place",
                      "averaged": "changes a tensor in place", "trained": "a gradient is taken of it"}.items():
        assert why in block(name), block(name)


def _indented(lines: list[str]) -> list[str]:
    return lines[:next((i for i, line in enumerate(lines) if not line.startswith(" ")), len(lines))]


LIST: list[int] = []
WEIGHT = Parameter(Tensor(np.ones(3, np.float32)), name="weight")
TABLE = {"a": 1.0}


class Plain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(3, 3)

    def helper(self, x):
        return ops.relu(x) + TABLE["a"]

    def construct(self, x):
        return self.helper(self.inner(x))


class Counting(Plain):
    def helper(self, x):
        self.count = 1
        return x


class Noisy(Plain):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout(p=0.5)


class Remembers:
    def __call__(self, x):
        LIST.append(1)
        return x


PLAIN, COUNTING, NOISY, REMEMBERS, NUMBERS = Plain(), Counting(), Noisy(), Remembers(), iter(range(10))


def outer(value):
    return lambda x: x * value


def store(x):
    x[0] = 1.0
    return x


def adds(x):
    x += 1.0
    return x


def sets_global(x):
    global TABLE
    TABLE = {}
    return x


def nested(x):
    return [print(i) for i in range(3)]


def counted(function):
    @functools.wraps(function)
    def wrapper(x):
        TABLE["a"] = 2.0
        return function(x)
    return wrapper


@counted
@dvm.jit
def wrapped_twice(x):
    return x * 2.0


HOOKED, PARTIAL = Plain(), functools.partial(PLAIN)
HOOKED.register_forward_hook(lambda cell, given, made: None)


@pytest.mark.parametrize("function, why", [
    (lambda x: ops.exp(x) * WEIGHT + TABLE["a"], ""),
    (lambda x: sum(ops.tanh(x) for _ in range(3)), ""),
    (lambda x: PLAIN(x), ""),
    (outer(3.0), ""),
    (outer(REMEMBERS), "Remembers"),
    (outer([3.0, (2.0, {"a": 1.0})]), ""),
    (outer([3.0, (2.0, {"a": REMEMBERS})]), "Remembers"),
    (lambda x, f=REMEMBERS: f(x), "Remembers"),
    (lambda x, f=PARTIAL: f(x), ""),
    (outer(functools.partial(nested)), "print"),
    (outer((outer(1.0), outer(REMEMBERS))), "Remembers"),
    (outer(wrapped_twice), "writes items"),
    (lambda x: HOOKED(x), "with hooks"),
    (lambda x: COUNTING(x), "sets the attribute count"),
    (lambda x: NOISY(x), "Dropout"),
    (lambda x: REMEMBERS(x), "a Remembers, which may remember"),
    (lambda x: x * next(NUMBERS), "next"),
    (lambda x: ops.dropout(x, 0.5), "dropout"),
    (lambda x: np.random.rand(3), "rand"),
    (lambda x: ops.assign(WEIGHT, x), "assign"),
    (lambda x: WEIGHT.add_(x), "add_"),
    (lambda x: Path("x").write_text("y"), "Path"),
    (store, "writes items"),
    (adds, "+="),
    (sets_global, "sets TABLE"),
    (nested, "print"),
])
def test_doubt_is_no(function, why):
    found = repeatable.why_not(function, (Tensor(np.ones(3, np.float32)),), {})
    assert (why in found) if why else found == "", found


def test_each_call_is_looked_at_by_what_it_is_given():
    class Info:
        def __init__(self, function):
            self.function = function

    x = Tensor(np.ones(3, np.float32))
    plain, stateful = Info(outer(3.0)), Info(outer(REMEMBERS))  # one code
    applied = Info(lambda cell, x: cell(x))
    assert sampling.why_not(plain, Observed(), (x,), {}) == ""
    assert "Remembers" in sampling.why_not(stateful, Observed(), (x,), {})
    assert sampling.why_not(plain, Observed(), (x,), {}) == ""
    assert sampling.why_not(applied, Observed(), (PLAIN, x), {}) == ""
    assert "Dropout" in sampling.why_not(applied, Observed(), (NOISY, x), {})
    assert "Remembers" in sampling.why_not(applied, Observed(), (), {"cell": [REMEMBERS], "x": x})
    assert sampling.why_not(applied, Observed(), (PLAIN, x), {}) == ""
