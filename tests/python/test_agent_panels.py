"""What the panels ask for while a captured function runs: steps, programs, memory, disassembly, status, devices; stops of Python's."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import threading
import time
import types

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter, line_of  # noqa: F401 - the fixture among them
from agent_watch_kit import W, X, model, run  # noqa: F401 - the fixture among them

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent import session
from dvm_core.agent.connection import TICK


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
