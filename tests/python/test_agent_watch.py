"""Watches: what is sent of a watched value, when, and what is said of one that finds nothing."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import ast
import base64
import importlib
import os
import sys
import threading
import time
import types

import numpy as np
import pytest
from agent_harness import Refused, adapter, line_of  # noqa: F401 - the fixture among them
from agent_watch_kit import MODEL, W, X, loaded, model, run, values_of  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core import _core, agent
from dvm_core.agent import places, unmatched, watches
from dvm_core.agent.connection import TICK
from dvm_core.frontends import names


def test_a_watched_variable_sends_its_statistics(adapter, model):
    answer = adapter.request("watch", expression="h", path=model.__file__, what="stats", everyN=1, name="h")
    assert (answer["matched"], answer["message"]) == ([], "waits for a captured function to make h")
    reference = run(model)
    snapshot = adapter.event("snapshot")
    assert (snapshot["watchId"], snapshot["name"], snapshot["shape"], snapshot["dtype"]) == (answer["watchId"], "h", [8, 4], "float32")
    stats = snapshot["stats"]
    h = X * W
    assert (stats["count"], stats["finite"], stats["nan"]) == (32, 32, 0)
    for name in ("min", "max", "mean", "std"):
        np.testing.assert_allclose(stats[name], getattr(h, name)(), rtol=1e-5, atol=1e-7)
    adapter.request("unwatch", watchId=answer["watchId"])
    np.testing.assert_array_equal(run(model), reference)
    adapter.none("snapshot", 0.2)
    with pytest.raises(Refused, match=f"there is no watch {answer['watchId']}"):
        adapter.request("unwatch", watchId=answer["watchId"])


def test_a_watch_that_finds_nothing_says_what_there_is(adapter, model):
    run(model)
    file = os.path.basename(model.__file__)
    near = adapter.request("watch", expression="hh", path=model.__file__, what="stats")
    assert near["message"] == f"waits for a captured function to make hh; did you mean h, made at {file}:6?"
    far = adapter.request("watch", expression="attention", path=model.__file__, what="stats")
    assert far["message"] == "waits for a captured function to make attention; made so far: h, s, y"
    elsewhere = adapter.request("watch", expression="h", path=model.__file__, line=7, what="stats")
    assert elsewhere["message"] == f"waits for a captured function to make h at {file}:7; h is made at {file}:6"
    line = adapter.request("watch", path=model.__file__, line=2, what="stats")
    assert line["message"] == f"waits for a captured function to run {file}:2; lines of it that have run: 6, 7, 8"


def test_a_watch_that_was_there_first_says_once_where_the_name_is_made(adapter, model):
    file = os.path.basename(model.__file__)
    for name, more in (("hh", {}), ("s", {"line": 6}), ("attention", {}), ("w_all", {"what": "values", "keep": 1, "across": True})):
        adapter.request("watch", **{"expression": name, "path": model.__file__, "what": "stats", **more})
    run(model, 4)
    told = [adapter.event("notice")["text"] for _ in range(4)]
    assert sorted(told) == ["watch attention: nothing has made it in 2 steps; made so far: h, s, y",
                            f"watch hh: nothing has made it in 2 steps; did you mean h, made at {file}:6?",
                            f"watch s: nothing has made it at {file}:6 in 2 steps; s is made at {file}:7",
                            "watch w_all: nothing has made it in 2 steps; made so far: h, s, y"]
    run(model, 4)
    adapter.none("notice", 2 * TICK)


def test_a_watch_of_what_a_call_returned_says_what_to_watch(adapter, tmp_path, monkeypatch):
    (tmp_path / "called.py").write_text("""import dvm_core as dvm


def layer(x, w):
    return x * w + 1


@dvm.jit
def forward(x, w):
    logits = layer(x, w)
    s = logits / 2
    return s
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "called", raising=False)
    early = adapter.request("watch", expression="logits", path=str(tmp_path / "called.py"), what="stats")
    assert early["message"] == "waits for a captured function to make logits"
    run(importlib.import_module("called"))
    why = "logits is what layer(x, w) returns, made at called.py:5: watch that line, or give the value a name there"
    assert adapter.event("notice")["text"] == f"watch logits; {why}"
    assert adapter.request("watch", expression="logits", path=str(tmp_path / "called.py"), what="stats")["message"].endswith(f"; {why}")
    known = adapter.request("watch", expression="w", path=str(tmp_path / "called.py"), what="stats")
    assert known["message"] == "" and known["matched"][0]["input"] == 1  # names of inputs were noted for the watch that was there
    del sys.modules["called"]


def test_a_text_nested_too_deeply_to_be_read_has_no_functions():
    deep = "def f(x):\n    return " + "(" * 20_000 + "x" + ")" * 20_000
    assert places.functions_of(deep) == ()
    call = ast.parse("g(x)", mode="eval").body
    for _ in range(5_000):
        call = ast.Call(call, [], [])
    assert unmatched._written(call) == "a call"


def test_no_file_is_read_on_the_thread_that_captures(adapter, model, monkeypatch):
    threads = []
    monkeypatch.setattr(unmatched, "why", lambda *_: threads.append(threading.get_ident()) or "; look elsewhere")
    adapter.request("watch", expression="nowhere", path=model.__file__, what="stats")
    run(model)
    assert adapter.event("notice")["text"] == "watch nowhere; look elsewhere"
    assert threads and threading.get_ident() not in threads


def test_the_hooks_of_watches_that_are_taken_back_go_soon(adapter, model, monkeypatch):
    run(model)
    cleared, change = [], _core.change_hooks
    monkeypatch.setattr(_core, "change_hooks", lambda clear, set: (cleared.extend(hook[3] for hook in clear), change(clear, set)))
    made = [adapter.request("watch", expression="h", what="stats")["watchId"] for _ in range(5)]
    for number in made:
        adapter.request("unwatch", watchId=number)
    end = time.monotonic() + 20
    while set(cleared) != set(made):
        assert time.monotonic() < end
        time.sleep(TICK)
    run(model)
    adapter.none("snapshot", 0.2)


def test_many_watches_at_different_rates_each_come_at_their_own_and_leave_nothing(adapter, model):
    run(model)
    every = {adapter.request("watch", expression=name, what=what, everyN=n, path=model.__file__)["watchId"]: n
             for name in ("h", "s", "y") for what in ("stats", "values") for n in range(1, 8)}
    adapter.request("configure", snapshotTimeoutMs=20_000)
    reference = run(model, 21)
    steps = {watch: [] for watch in every}
    for _ in range(sum(-(-21 // n) for n in every.values())):
        told = adapter.event("snapshot")
        steps[told["watchId"]].append(told["launch"])
    for watch, n in every.items():
        assert [launch - min(steps[watch]) for launch in sorted(steps[watch])] == list(range(0, 21, n))
    program = next(p for p in _core.programs() if p.id == told["program"])
    for watch in every:
        adapter.send("unwatch", watchId=watch)
    end = time.monotonic() + 20
    while program.segments > 1:
        assert time.monotonic() < end
        time.sleep(TICK)
    np.testing.assert_array_equal(run(model), reference)
    adapter.none("snapshot", 0.2)


def test_what_is_told_of_several_watches_comes_together_and_lacks_no_step(adapter, model):
    adapter.request("configure", snapshotTimeoutMs=60_000)
    names = {adapter.request("watch", expression=name, together=True, **more)["watchId"]: (name, "keep" in more)
             for name, more in (("h", {}), ("s", {}), ("y", {"what": "values", "keep": 8}))}
    run(model, 6)
    _core.synchronize_copies()
    told, steps, kept = [], [], 0
    while len(steps) < 6 or [t["step"] for t in told if t["name"] == "s"] != steps or kept < steps[-1]:
        told += adapter.event("snapshots")["snapshots"]
        steps = [t["step"] for t in told if t["name"] == "h"]
        kept = max((t["step"] for t in told if "snapshot" in t), default=0)
    assert steps == list(range(steps[0], steps[0] + 6))
    assert all(names[t["watchId"]] == (t["name"], "snapshot" in t) and "data" not in t for t in told)
    assert not [event for event in adapter.seen if event.get("ev") == "snapshot"]


def test_a_watch_of_values_sends_bytes_every_nth_step(adapter, model):
    run(model)
    answer = adapter.request("watch", expression="s", path=model.__file__, what="values", everyN=3, name="s")
    assert len(answer["matched"]) == 1
    run(model, 6)
    for _ in range(2):
        snapshot = adapter.event("snapshot")
        values = np.frombuffer(base64.b64decode(snapshot["data"]), np.float32).reshape(snapshot["shape"])
        np.testing.assert_array_equal(values, X * W + np.float32(1.5))
    adapter.none("snapshot", 0.2)


def test_a_value_above_the_limit_is_a_placeholder(adapter, model):
    adapter.request("configure", snapshotMaxBytes=16, capture="watched", device="cpu", unknown=1)
    adapter.request("watch", expression="s", what="values", everyN=1, name="s")
    run(model)
    snapshot = adapter.event("snapshot")
    assert snapshot["placeholder"] is True and snapshot["reason"] and "data" not in snapshot
    assert snapshot["shape"] == [8, 4]


def test_watches_by_line_and_by_instruction(adapter, model):
    run(model)
    path = model.__file__
    by_line = adapter.request("watch", path=path, line=line_of("s = h", path), what="stats", everyN=1)
    assert [m["instruction"] for m in by_line["matched"]] == [1]
    program = by_line["matched"][0]["program"]
    by_number = adapter.request("watch", program=program, instruction=4, what="stats", everyN=1, name="the result")
    run(model)
    got = {adapter.event("snapshot")["name"] for _ in range(2)}
    assert got == {f"{path}:{line_of('s = h', path)}", "the result"}
    assert by_number["matched"] == [{"program": program, "instruction": 4, "backward": False}]


@pytest.mark.parametrize("arguments, text", [
    ({"expression": "h", "what": "bytes"}, "a watch shows stats or values"),
    ({"expression": "h", "everyN": 0}, "everyN is 0"),
    ({"expression": "h", "what": "values", "together": True}, "together is for statistics and for snapshots that are kept"),
    ({}, "a watch needs an expression, a path and line, or a program and instruction"),
])
def test_a_watch_that_cannot_be_meant_is_refused(adapter, arguments, text):
    with pytest.raises(Refused, match=text):
        adapter.request("watch", **arguments)


def test_watching_changes_no_bit(adapter, model):
    reference = run(model)
    for name in ("h", "s", "y"):
        adapter.request("watch", expression=name, what="stats", everyN=1)
        adapter.request("watch", expression=name, what="values", everyN=1)
    np.testing.assert_array_equal(run(model), reference)


def test_watched_values_come_off_a_device(adapter, model):
    run(model)
    adapter.request("device", device="npu-sim:910b")
    try:
        adapter.request("configure", snapshotTimeoutMs=20_000)
        adapter.request("watch", expression="s", path=model.__file__, what="values")
        run(model)
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), X * W + np.float32(1.5))
        _core.plant_fault("fail", of="snapshot")
        run(model)
        snapshot = adapter.event("snapshot")
        assert (snapshot["placeholder"], snapshot["reason"]) == (True, "the copy from the device failed")
        assert adapter.request("status")["stats"]["captures"]["placeholders"] >= 1
    finally:
        adapter.request("device", device="cpu")


def test_a_digest_has_the_same_number_in_its_step_whether_others_came_too_late_or_not():
    told, kept = [], types.SimpleNamespace(takes=lambda watch: True, add=lambda *snapshot: 7)
    connection = types.SimpleNamespace(event=lambda name, /, **body: told.append(body))
    made = watches.Watches(types.SimpleNamespace(kept=kept, connection=connection))
    made.add(watches.Watch(3, "w", _core.HOOK_CAPTURE, 1, program=-1, instruction=0, across=True))

    def taken(step, placeholder=""):
        made.snapshots({"kind": "capture", "hook": 3, "program": 1, "instruction": 0, "step": step, "shape": (1,), "dtype": 0, "launch": 1,
                        "time_ns": 0, "placeholder": placeholder, "data": b"1234"})

    for step, placeholder in ((4, ""), (5, ""), (5, "late"), (5, ""), (6, "")):
        taken(step, placeholder)
    made.lost()
    for step in (6, 7):
        taken(step)
    assert [(body["step"], body["ordinal"], "missing" in body) for body in told] == [
        (5, 0, False), (5, 1, True), (5, 2, False), (6, 0, False), (7, 0, False)]


def test_names_and_lines_are_those_of_the_text_that_runs(adapter, tmp_path):
    """Not of a later one on disk, as of a program that is attached to after its file was edited."""
    with loaded(tmp_path / "edited.py", MODEL) as module:
        agent.remember_sources()
        path = tmp_path / "edited.py"
        path.write_text(MODEL.replace("    s = h", "    print()\n    s = h"))
        adapter.request("watch", expression="s", path=str(path), what="values")
        module.forward(dvm.tensor(X), dvm.tensor(W)).numpy()
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), X * W + np.float32(1.5))
        assert names.line_of(str(path), 7) == "s = h + 1.5"
