"""Watched expressions of several variables: of which values each is, bit for bit, and what is said of variables that never meet."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import base64
import sys
import threading
import time

import numpy as np
import pytest
from agent_harness import Refused, adapter  # noqa: F401 - the fixture among them
from agent_watch_kit import X, loaded

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent import hooks, live
from dvm_core.agent.connection import TICK

MODEL = """import dvm_core as dvm


@dvm.jit
def pair(x, w):
    h = x * w
    t = h + 1.5
    return h, t


@dvm.jit
def parted(x):
    loss_a = (x * x).sum()
    if float(loss_a) < 0:
        return x
    loss_b = (x * 3.0).sum()
    return loss_b


@dvm.jit
def rounds(x):
    start = x * 2.0
    h = start + 1.0
    t = h * h
    h = t - 0.5
    t = h * 3.0
    last = t * 0.25
    last = last + start
    last = last * 0.5
    return last


@dvm.jit
def other(x):
    u = x - 3.0
    return u
"""


@pytest.fixture
def model(tmp_path):
    with loaded(tmp_path / "several.py", MODEL) as module:
        yield module


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(live, "_DEAR", np.inf)


def number(snapshot):
    return np.frombuffer(base64.b64decode(snapshot["data"]), snapshot["dtype"]).reshape(snapshot["shape"])


def ask(adapter, text, **more):
    return adapter.request("watch", expression=text, what="values", **{"path": sys.modules["several"].__file__, **more})


def test_values_of_one_launch_are_computed_with_as_numpy_does(adapter, model):
    x, w = X, X.T.reshape(8, 4).copy()
    plain = [value.numpy() for value in model.pair(dvm.tensor(x), dvm.tensor(w))]
    watch = ask(adapter, "(h - t * np.pi) / abs(t).max()")
    assert len(watch["matched"]) == 2 and watch["message"] == ""
    for _ in range(3):
        again = [value.numpy() for value in model.pair(dvm.tensor(x), dvm.tensor(w))]
        h, t = again
        told = adapter.event("snapshot")
        assert number(told).tobytes() == ((h - t * np.pi) / abs(t).max()).tobytes() and told["of"] == "h, t"
        wide = x.astype(np.float64) * w
        np.testing.assert_allclose(number(told), (wide - (wide + 1.5) * np.pi) / abs(wide + 1.5).max(), rtol=1e-5, atol=1e-6)
        assert [value.tobytes() for value in again] == [value.tobytes() for value in plain]
    adapter.request("unwatch", watchId=watch["watchId"])


def test_values_of_one_call_may_come_from_several_programs(adapter, model):
    ask(adapter, "loss_a / loss_b", everyN=2)
    model.parted(dvm.tensor(X + 2)).numpy()
    for k in range(1, 5):
        model.parted(dvm.tensor((X + 2) * k)).numpy()
    steps = []
    for k in (0, 2, 4):
        told, x = adapter.event("snapshot"), (X + 2) * max(k, 1)
        np.testing.assert_allclose(number(told), (x.astype(np.float64) ** 2).sum() / (x.astype(np.float64) * 3).sum(), rtol=1e-5)
        steps.append(told["step"])
    assert [step - steps[0] for step in steps] == [0, 2, 4]
    adapter.none("snapshot", 0.1)


def test_each_value_is_met_by_the_newest_of_the_others(adapter, model):
    pair, after = (ask(adapter, text)["watchId"] for text in ("t - h", "last - start"))
    model.rounds(dvm.tensor(X)).numpy()
    told = {pair: [], after: []}
    for _ in range(5):
        snapshot = adapter.event("snapshot")
        told[snapshot["watchId"]].append(number(snapshot))
    adapter.none("snapshot", 0.1)
    start = X * np.float32(2)
    first = start + np.float32(1), (start + np.float32(1)) ** 2
    second = first[1] - np.float32(0.5), (first[1] - np.float32(0.5)) * np.float32(3)
    made = [second[1] * np.float32(0.25)]
    made.append(made[0] + start)
    made.append(made[1] * np.float32(0.5))
    assert [value.tobytes() for value in told[pair]] == [(t - h).tobytes() for h, t in (first, second)]
    assert [value.tobytes() for value in told[after]] == [(value - start).tobytes() for value in made]


def test_variables_that_no_call_makes_together_are_told_of_once_with_their_places(adapter, model):
    ask(adapter, "h.max() / u.max()")
    for _ in range(5):
        model.pair(dvm.tensor(X), dvm.tensor(X))
        model.other(dvm.tensor(X)).numpy()
    text = adapter.event("notice", where=lambda event: event["category"] == "watch")["text"]
    assert text.startswith("watch h.max() / u.max(): no call of a captured function has made all of its variables; h is made in pair at ")
    assert "u is made in other at " in text
    time.sleep(2 * TICK)
    assert not [event for event in adapter.events if event["ev"] == "snapshot" or event.get("category") == "watch"]


def test_what_is_missing_is_named(adapter, model):
    model.pair(dvm.tensor(X), dvm.tensor(X))
    told = ask(adapter, "h @ w.T")
    assert len(told["matched"]) == 1 and told["message"].startswith("waits for a captured function to make w; w is an argument of pair")
    with pytest.raises(Refused, match="`h - t` is of 2 variables, which have lines of their own: leave `line` out"):
        ask(adapter, "h - t", line=6)
    assert ask(adapter, "t - elsewhere")["message"] == "waits for a captured function to make elsewhere; made so far: h, t"
    assert ask(adapter, "h - tt")["message"].startswith("waits for a captured function to make tt; did you mean t, made at several.py:7?")


def test_a_variable_too_large_is_named_with_the_reason(adapter, model, monkeypatch):
    monkeypatch.setattr("dvm_core.agent.watches.MOST_BYTES", 16)
    adapter.request("configure", snapshotMaxBytes=16)
    ask(adapter, "h.max() - t.max()")
    model.pair(dvm.tensor(X), dvm.tensor(X))
    told = adapter.event("snapshot")
    assert told["placeholder"] is True and told["reason"] == "h: 128 bytes are more than the limit of 16"


def test_many_watches_of_the_same_values_cost_few_compiles(adapter, model):
    """While a loop runs: what is due together is one of sixteen sets, and hooks on values that are hooked already let no code go."""
    stop, count = threading.Event(), 200

    def loop():
        while not stop.is_set():
            model.rounds(dvm.tensor(X)).numpy()

    model.rounds(dvm.tensor(X)).numpy()
    before = _core.stats()["selector_misses"]
    runs = threading.Thread(target=loop)
    runs.start()
    try:
        names = ("h", "t", "last", "start")
        watches = [adapter.request("watch", expression=names[i % 4], what="stats", everyN=1000)["watchId"] for i in range(count)]
        assert {adapter.event("snapshot")["watchId"] for _ in range(count)} <= set(watches)
    finally:
        stop.set()
        runs.join()
    assert _core.stats()["selector_misses"] - before < count / 2


def test_of_many_changes_of_hooks_those_that_come_within_a_moment_are_one(monkeypatch):
    made, changes = [], hooks.Changes()
    monkeypatch.setattr(_core, "change_hooks", lambda clear, set: made.append((len(clear), len(set))))
    monkeypatch.setattr(hooks, "_AGAIN", 1e9)
    one = [(1, index, _core.HOOK_STATS, index, 1, 0, False) for index in range(100)]
    for hook in one:
        changes.set([hook])
    assert made == [(0, 1)] * 8
    changes.clear(one[-2:])
    changes.make()
    changes.make()
    assert made[8:] == [(2, 90)]
