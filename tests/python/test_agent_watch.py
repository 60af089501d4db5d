"""What the panels ask for while a captured function runs: watches, steps, memory, programs, disassembly, status."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import ast
import base64
import importlib.util
import sys
import threading
import time
import types

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter, line_of  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core import _core, agent
from dvm_core.agent import session, unmatched, watches
from dvm_core.agent.connection import TICK

MODEL = """import dvm_core as dvm


@dvm.jit
def forward(x, w):
    h = x * w
    s = h + 1.5
    y = s / (s.max() + 1)
    return y
"""


@pytest.fixture
def model(tmp_path, request):
    path = tmp_path / f"model_{request.node.name.split('[')[0]}.py"
    path.write_text(MODEL)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]


X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
W = np.linspace(1, 2, 32, dtype=np.float32).reshape(8, 4)


def run(model, times=1):
    for _ in range(times):
        result = model.forward(dvm.tensor(X), dvm.tensor(W)).numpy()
    return result


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
    near = adapter.request("watch", expression="hh", path=model.__file__, what="stats")
    assert near["message"] == "waits for a captured function to make hh; did you mean h?"
    far = adapter.request("watch", expression="attention", path=model.__file__, what="stats")
    assert far["message"] == "waits for a captured function to make attention; made so far: h, s, y"


def test_a_watch_of_an_argument_or_of_what_a_call_returned_says_what_to_watch(adapter, tmp_path, monkeypatch):
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
    assert adapter.request("watch", expression="w", path=str(tmp_path / "called.py"), what="stats")["message"].endswith(
        "; w is an argument of layer, and no instruction makes it: watch what is made of it")
    del sys.modules["called"]


def test_a_text_nested_too_deeply_to_be_read_has_no_functions():
    deep = "def f(x):\n    return " + "(" * 20_000 + "x" + ")" * 20_000
    assert unmatched._functions(deep) == ()
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
    cleared, clear = [], watches.clear_hook
    monkeypatch.setattr(watches, "clear_hook", lambda *hook: (cleared.append(hook[3]), clear(*hook)))
    made = [adapter.request("watch", expression="h", what="stats")["watchId"] for _ in range(5)]
    for number in made:
        adapter.request("unwatch", watchId=number)
    end = time.monotonic() + 20
    while set(cleared) != set(made):
        assert time.monotonic() < end
        time.sleep(TICK)
    run(model)
    adapter.none("snapshot", 0.2)


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


def values_of(snapshot):
    return np.frombuffer(base64.b64decode(snapshot["data"]), np.float32).reshape(snapshot["shape"])


def snapshots(adapter, count):
    return [adapter.event("snapshot") for _ in range(count)]


def test_capture_all_sends_every_instruction_of_every_nth_launch(adapter, model):
    reference = run(model)
    adapter.request("configure", capture="all", sampleEvery=3)
    np.testing.assert_array_equal(run(model), reference)
    first = snapshots(adapter, 5)
    np.testing.assert_array_equal(run(model, 6), reference)
    later = snapshots(adapter, 10)
    adapter.none("snapshot", 0.2)
    assert all(s["watchId"] is None and not s["backward"] for s in first + later)
    assert [(s["instruction"], s["name"], s["shape"]) for s in first] == [
        (0, "h", [8, 4]), (1, "s", [8, 4]), (2, "%3", []), (3, "%4", []), (4, "y", [8, 4])]
    assert len({s["program"] for s in first + later}) == 1
    (base,) = {s["launch"] for s in first}
    assert [s["launch"] - base for s in later] == [3] * 5 + [6] * 5
    s = X * W + np.float32(1.5)
    for taken in (first, later[:5], later[5:]):
        np.testing.assert_array_equal(values_of(taken[0]), X * W)
        np.testing.assert_array_equal(values_of(taken[1]), s)
        np.testing.assert_array_equal(values_of(taken[2]), s.max())
        np.testing.assert_array_equal(values_of(taken[4]), reference)
    adapter.request("configure", capture="breakpoint")
    run(model, 6)
    adapter.none("snapshot", 0.2)


def test_capture_all_takes_programs_that_come_later_and_ends_with_the_session(adapter, model):
    adapter.request("configure", capture="all", sampleEvery=2, snapshotMaxBytes=16)
    run(model)
    # a value that is too large is told at once, one that is copied when the copy is done
    taken = sorted(snapshots(adapter, 5), key=lambda snapshot: snapshot["instruction"])
    assert [bool(s.get("placeholder")) for s in taken] == [True, True, False, False, True]
    watched = adapter.request("watch", expression="s", path=model.__file__, what="stats", everyN=1)
    adapter.request("configure", capture="all", sampleEvery=2, snapshotMaxBytes=16)  # the same again: the count goes on
    run(model)
    assert adapter.event("snapshot")["watchId"] == watched["watchId"]
    adapter.none("snapshot", 0.2)
    adapter.request("detach")
    adapter.event("eof")
    agent._session.connection.thread.join(10)
    run(model, 2)
    _core.synchronize_copies()
    assert [e for e in _core.poll_events() if e["kind"] == "capture"] == []


@pytest.mark.parametrize("milliseconds, late", [(20, True), (5000, False)])
def test_the_snapshot_timeout_is_honoured(adapter, model, milliseconds, late):
    run(model)
    adapter.request("configure", snapshotTimeoutMs=milliseconds)
    adapter.request("watch", expression="s", path=model.__file__, what="values", everyN=1)
    _core.delay_copies(250)
    run(model)
    snapshot = adapter.event("snapshot")
    assert (snapshot.get("reason"), "data" in snapshot) == (("the copy did not start within 20 ms", False) if late else (None, True))


@pytest.mark.parametrize("setting, text", [
    ({"capture": "some"}, "capture is 'some'; it must be one of breakpoint, watched, all"),
    ({"sampleEvery": 0}, "sampleEvery is 0; it must be from 1"),
    ({"snapshotTimeoutMs": 0}, "snapshotTimeoutMs is 0; it must be from 1 to 60000"),
    ({"snapshotTimeoutMs": 60001}, "snapshotTimeoutMs is 60001"),
    ({"snapshotMaxBytes": "1"}, "snapshotMaxBytes"),
])
def test_settings_that_cannot_be_meant_are_refused(adapter, model, setting, text):
    with pytest.raises(Refused, match=text):
        adapter.request("configure", **{"capture": "all", **setting})
    run(model)
    adapter.none("snapshot", 0.2)


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
    ({"expression": "h * 2"}, "only variables are watched"),
    ({"expression": "h", "what": "bytes"}, "a watch shows stats or values"),
    ({"expression": "h", "everyN": 0}, "everyN is 0"),
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


def test_steps_are_told_once_a_tick_however_many_there_are(adapter, model, monkeypatch):
    now = [time.monotonic() + 1000]
    monkeypatch.setattr(session, "time", types.SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    run(model)
    now[0] += 2 * TICK
    first = adapter.event("step")
    for _ in range(20):
        run(model)
    adapter.none("step")
    now[0] += 2 * TICK
    second = adapter.event("step")
    assert second["step"] - first["step"] >= 20 and second["launches"] - first["launches"] >= 20
    now[0] += 2 * TICK
    adapter.none("step")  # nothing has run


def test_programs_and_their_texts(adapter, model):
    run(model)
    told = adapter.event("program", where=lambda e: e["name"] == "forward" and e["instructions"] == 5)
    answer = adapter.request("programs")
    assert answer["selector"]["misses"] >= 1 and answer["selector"]["segments"] >= 1
    assert answer["advice"]["forward"]["verdict"] in ("pays", "does not pay", "not enough data")
    listed = {p["id"]: p for p in answer["programs"]}[told["id"]]
    path = model.__file__
    assert listed["segments"] >= 1
    assert (listed["file"], listed["line"], listed["launches"], listed["backward"]) == (path, line_of("h = x", path), 1, False)
    for level in ("graph", "tensor", "tile"):
        shown = adapter.request("program", program=told["id"], level=level)
        lines = shown["text"].splitlines()
        assert {entry["instruction"] for entry in shown["lineMap"]} >= {0, 1, 4}
        assert all(entry["file"] == path and 0 < entry["line"] <= len(lines) for entry in shown["lineMap"])
    code = adapter.request("disassemble", program=told["id"], offset=1, count=10)
    assert (code["total"], [i["index"] for i in code["instructions"]]) == (5, [1, 2, 3, 4])
    assert code["instructions"][0]["text"] == "%2 = ADD(%1, 1.5) f32[8,4]"
    assert code["instructions"][0]["bytes"].startswith("01 01")
    assert (code["instructions"][0]["line"], code["instructions"][0]["symbol"]) == (line_of("s = h", path), "forward")
    with pytest.raises(Refused, match="there is no program 999999"):
        adapter.request("program", program=999999, level="tensor")
    with pytest.raises(Refused, match="level"):
        adapter.request("program", program=told["id"], level="machine")


def test_a_program_is_told_by_area_and_by_instruction(adapter, model):
    run(model, 2)
    told = adapter.event("program", where=lambda e: e["name"] == "forward" and e["instructions"] == 5)
    model.forward(dvm.tensor(X[:3]), dvm.tensor(W[:3])).numpy()  # other shapes, the same program
    number, path = told["id"], model.__file__
    listed = next(p for p in adapter.request("programs")["programs"] if p["id"] == number)
    assert listed["shapes"] == ["f32[3…8,4]", "f32[3…8,4]"] and listed["inputs"] == 2 and listed["ns"] > 0
    answer = adapter.request("areas", program=number)
    areas = answer["areas"]
    assert [a["index"] for a in areas] == list(range(len(areas))) and all(a["reason"] and a["kind"] and a["tiles"] > 0 for a in areas)
    assert sum(a["instructions"] for a in areas) + answer["noWork"] == 5
    rows = [row for area in [*[a["index"] for a in areas], -1]
            for row in adapter.request("instructions", program=number, area=area)["instructions"]]
    assert sorted(row["index"] for row in rows) == [0, 1, 2, 3, 4]
    second = next(row for row in rows if row["index"] == 1)
    assert (second["text"], second["name"], second["line"]) == ("%2 = ADD(%1, 1.5) f32[3,4]", "s", line_of("s = h", path))
    assert (second["file"], second["function"], second["backward"]) == (path, "forward", False)
    part = adapter.request("instructions", program=number, area=areas[0]["index"], offset=1, count=2)
    assert part["total"] == areas[0]["instructions"] and len(part["instructions"]) == min(2, part["total"] - 1)
    with pytest.raises(Refused, match="there is no program 999999"):
        adapter.request("areas", program=999999)


def test_a_source_line_names_its_instructions(adapter, model):
    run(model)
    told = adapter.event("program", where=lambda e: e["name"] == "forward" and e["instructions"] == 5)
    answer = adapter.request("line", path=model.__file__, line=line_of("y = s", model.__file__))
    (found,) = [p for p in answer["programs"] if p["id"] == told["id"]]
    assert found["found"] == [2, 3, 4] and answer["line"] == answer["endLine"] == line_of("y = s", model.__file__)
    assert adapter.request("line", path=model.__file__, line=1)["programs"] == []


def test_memory(adapter, model):
    adapter.request("memory")
    run(model, 3)
    told = adapter.request("memory")
    assert told["peak"]["bytes"] > 0 and told["step"] >= 3
    mine = [b for b in told["buffers"] if b.get("place", {}).get("path") == model.__file__]
    assert mine and all(b["bytes"] >= 128 for b in mine)
    live = sum(b["bytes"] for b in told["buffers"] if b["freed"] is None)
    assert live <= told["peak"]["bytes"]
    last = adapter.request("memory", steps=[told["step"], told["step"]])
    assert 0 < len(last["buffers"]) <= len(told["buffers"])
    number = next(b["program"] for b in mine if b["program"] > 0)
    plan = adapter.request("memory", program=number)["plan"]
    assert plan["peakBytes"] > 0 and {"op", "value", "bytes", "aligned", "where", "name"} <= set(plan["steps"][0])
    with pytest.raises(Refused, match="no program 999999"):
        adapter.request("memory", program=999999)
    with pytest.raises(Refused, match="it must be the first and the last step"):
        adapter.request("memory", steps=[1])


def test_status(adapter, model):
    run(model, 2)
    told = adapter.request("status")
    assert (told["device"], told["devices"][:2], told["rank"], told["reload"]) == ("cpu", ["cpu", "npu-sim:910b"], None, None)
    assert set(told["stats"]["time_us"]) >= {"record", "kernels"} and told["stats"]["functions"]
    assert told["programs"] >= 1 and told["launches"] >= 2 and 0 < told["selectorHitRate"] <= 1 and told["step"] >= 2
    assert adapter.request("device", device="cpu") == {"device": "cpu", "switched": False, "retiled": 0}
    with pytest.raises(Refused, match="a GPU, which this version does not run on; available: 'cpu'"):
        adapter.request("device", device="cuda:0")


def test_a_switch_of_devices_is_in_force_at_the_next_launch(adapter, model):
    reference = run(model, 2)
    answer = adapter.request("device", device="npu-sim:950")
    try:
        assert (answer["device"], answer["switched"]) == ("npu-sim:950", True) and answer["retiled"] >= 1
        np.testing.assert_array_equal(run(model), reference)
        text = adapter.request("program", program=_core.programs()[-1].id, level="tile")["text"]
        assert "target=npu-sim:950" in text and "load.fp32" in text
    finally:
        adapter.request("device", device="cpu")
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


def test_a_switch_asked_for_at_a_stop_is_made_when_the_step_has_ended(adapter, model):
    reference = run(model, 2)
    captured = adapter.event("program")["id"]
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": captured, "instruction": 2}])
    program = Running(run, model)
    adapter.event("vmstop")
    programs = len(_core.programs())
    try:
        answer = adapter.request("device", device="npu-sim:950")
        assert answer == {"device": "cpu", "switched": False, "retiled": 0, "pending": "npu-sim:950"}
        adapter.request("instructionBreakpoints", items=[])
        adapter.request("go")
        np.testing.assert_array_equal(program.join(), reference)
        assert adapter.event("device")["device"] == "npu-sim:950"
        assert adapter.event("notice", where=lambda e: e["category"] == "device")["text"] == "the program runs on npu-sim:950 now"
        np.testing.assert_array_equal(run(model), reference)
        assert dvm.device() == "npu-sim:950" and len(_core.programs()) == programs
        _core.plant_fault("memory", of="move")
        kept = model.forward(dvm.tensor(X), dvm.tensor(W))
        with pytest.raises(Refused, match="npu-sim:910b has no room for .* Nothing was moved, and 'npu-sim:950' stays in use"):
            adapter.request("device", device="npu-sim:910b")
        np.testing.assert_array_equal(kept.numpy(), reference)
    finally:
        _core.clear_faults()
        adapter.request("device", device="cpu")


def test_python_stopped_inside_a_captured_function(adapter, model):
    """The stop is made by hand: a thread waits inside the function, as in pydevd's wait loop."""
    reference = run(model)
    arrived, go = threading.Event(), threading.Event()

    def forward(x, w):
        h = x * w
        s = h + 1.5
        arrived.set(), go.wait()  # the line it stands on
        y = s / (s.max() + 1)
        return y

    captured = dvm.jit(forward)
    program = Running(lambda: captured(dvm.tensor(X), dvm.tensor(W)).numpy())
    arrived.wait()
    ident = program.thread.ident
    frame = adapter.request("pythonStop", thread=ident)["tensor"]
    assert (frame["line"], frame["path"], frame["backward"]) == (line_of("# the line it stands on", __file__), __file__, False)
    assert (frame["instruction"], frame["function"].rpartition(".")[2]) == (2, "forward")
    tensors = {t["name"]: t for t in adapter.request("tensors")["tensors"]}
    assert all(tensors[name]["computed"] for name in ("x", "w", "h", "s"))
    assert adapter.request("evaluate", expression="s.max()")["result"] == str((X * W + np.float32(1.5)).max())
    with pytest.raises(Refused, match="the step is Python's"):
        adapter.request("step", kind="line")
    reference_number = tensors["h"]["ref"]
    adapter.request("go")
    go.set()
    np.testing.assert_array_equal(program.join(), reference)
    with pytest.raises(Refused, match="not of this stop"):
        adapter.request("tensor", ref=reference_number)


def test_python_stopped_outside_of_captured_functions_has_no_tensor_line(adapter):
    assert adapter.request("pythonStop") == {"tensor": None}


def test_the_whole_program_is_known_from_an_earlier_call(adapter, model):
    arrived, go, wait = threading.Event(), threading.Event(), []

    def forward(x, w):
        h = x * w
        if wait:
            arrived.set(), go.wait()
        return (h + 1) / 2

    captured = dvm.jit(forward)
    captured(dvm.tensor(X), dvm.tensor(W))
    wait.append(1)
    program = Running(lambda: captured(dvm.tensor(X), dvm.tensor(W)))
    arrived.wait()
    frame = adapter.request("pythonStop", thread=program.thread.ident)["tensor"]
    assert (frame["instruction"], frame["instructions"], frame["opcode"], frame["area"]) == (1, 3, "ADD", 0)
    go.set()
    program.join()


def test_a_digest_has_the_same_number_in_its_step_whether_others_came_too_late_or_not():
    told, kept = [], types.SimpleNamespace(takes=lambda watch: True, add=lambda *snapshot: 7)
    connection = types.SimpleNamespace(event=lambda name, /, **body: told.append(body))
    made = watches.Watches(types.SimpleNamespace(kept=kept, connection=connection))
    made.add(watches.Watch(3, "w", _core.HOOK_CAPTURE, 1, program=-1, instruction=0, across=True))

    def taken(step, placeholder=""):
        made.snapshot({"kind": "capture", "hook": 3, "program": 1, "instruction": 0, "step": step, "shape": (1,), "dtype": 0, "launch": 1,
                       "time_ns": 0, "placeholder": placeholder, "data": b"1234"})

    for step, placeholder in ((4, ""), (5, ""), (5, "late"), (5, ""), (6, "")):
        taken(step, placeholder)
    made.lost()
    for step in (6, 7):
        taken(step)
    assert [(body["step"], body["ordinal"], "missing" in body) for body in told] == [
        (5, 0, False), (5, 1, True), (5, 2, False), (6, 0, False), (7, 0, False)]
