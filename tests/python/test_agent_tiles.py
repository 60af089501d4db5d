"""Stops between tile instructions: breakpoints, steps, and what lies in local memory, over a real socket."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import base64
import time

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, LINE_Y, X, model, same, source  # noqa: F401 - the fixtures among them

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent.tiles import lines_of

H, S = X * 2, np.exp(X * 2)


@pytest.fixture(autouse=True)
def on_the_cpu():
    yield
    dvm.set_device("cpu")


def listing(adapter, program):
    return adapter.request("tileDisassemble", program=program)["instructions"]


def local(adapter):
    """Name -> values of what the tile's instructions have made."""
    told = adapter.request("tileValues")["tensors"]
    found = {}
    for tensor in told:
        data = adapter.request("tensor", ref=tensor["ref"])["data"]
        found[tensor["name"]] = np.frombuffer(base64.b64decode(data), tensor["dtype"]).reshape(tensor["shape"])
    return found


def at_tile(adapter, program, line, **more):
    (answer,) = adapter.request("instructionBreakpoints", items=[{"id": 7, "program": program, "area": 0, "line": line, **more}])["results"]
    return answer


def test_a_stop_at_a_tile_instruction_shows_local_memory_and_steps_through_the_tile(adapter):
    plain = model(X)
    program = plain[2]
    lines = listing(adapter, program)
    assert [line["text"].split(".")[0].strip() for line in lines][:2] == ["Muls", "Exp"]
    assert [line["sourceLine"] for line in lines][:3] == [LINE_H, LINE_S, LINE_Y]
    answer = at_tile(adapter, program, 1)
    assert answer["verified"] and answer["message"] == f"tile instruction 1 of area 0 of {_core.program(program).name}"
    running = Running(model, X)
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["bp"]) == ("instruction", [7])
    frame = stop["FRAME"]
    assert (frame["line"], frame["opcode"], frame["instruction"]) == (LINE_S, "EXP", 1)
    assert frame["tile"] == {"area": 0, "tile": 0, "tiles": 1, "line": 1, "row": 0, "rows": 1, "col": 0, "cols": 12,
                             "text": lines[1]["text"]}
    values = local(adapter)
    assert [name.split()[-1] for name in values] == ["h"] and same([next(iter(values.values())).reshape(3, 4)], [H])
    # the launch itself stands before the area: nothing of it is computed
    assert not any(t["computed"] for t in adapter.request("tensors")["tensors"] if t["name"] in ("h", "s", "y"))
    adapter.request("step", kind="instruction")
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["FRAME"]["tile"]["line"], stop["FRAME"]["line"]) == ("step", 2, LINE_Y)
    values = local(adapter)
    assert any(np.allclose(v.reshape(3, 4), S, rtol=1e-6) for v in values.values() if v.size == 12)
    with pytest.raises(Refused, match="a copy of a tile's values"):
        adapter.request("write", ref=adapter.request("tileValues")["tensors"][0]["ref"], slice="0, 0", value="1")
    adapter.request("go")
    assert same(running.join(), plain)


def next_stop(adapter):
    """vmstop or vmdone, whichever comes."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with adapter._arrived:
            for event in adapter.events:
                if event["ev"] in ("vmstop", "vmdone"):
                    adapter.events.remove(event)
                    return event
        time.sleep(0.005)
    raise AssertionError("no stop")


@pytest.mark.parametrize("device", ["cpu", "npu-sim:910b"])
def test_every_step_through_an_area_ends_after_it_and_changes_no_bit(adapter, device):
    dvm.set_device(device)
    plain = model(X)
    program = plain[2]
    count = len(listing(adapter, program))
    at_tile(adapter, program, 0)
    running = Running(model, X)
    stop, seen = adapter.event("vmstop"), []
    while stop["ev"] == "vmstop" and "tile" in stop["FRAME"]:
        seen.append(stop["FRAME"]["tile"]["line"])
        adapter.request("step", kind="instruction")
        stop = next_stop(adapter)
    assert seen == list(range(count)) and len(_core.program(program).fused_areas()) == 1
    assert stop["ev"] == "vmdone"
    assert same(running.join(), plain)


def test_a_line_step_leaves_the_tile_and_goes_on_from_the_area(adapter):
    plain = model(X)
    at_tile(adapter, plain[2], 2)
    running = Running(model, X)
    assert adapter.event("vmstop")["FRAME"]["line"] == LINE_Y
    adapter.request("step", kind="line")  # the launch stands on the line of h
    stop = adapter.event("vmstop")
    assert (stop["FRAME"]["line"], "tile" in stop["FRAME"]) == (LINE_S, False)
    adapter.request("step", kind="into")  # in the middle of the area: to what is still to run of it
    assert adapter.event("vmstop")["FRAME"]["tile"]["line"] == 1
    adapter.request("go")
    assert same(running.join(), plain)


STREAM = """import dvm_core as dvm


@dvm.jit
def forward(x, w):
    h = x * w
    s = h.exp() + 1.5
    y = s / (s.max() + 1)
    z = y @ w.T
    return z * 2.0
"""
AREAS = {0: (0, 1, 2, 3, 4, 5), 1: (7, 8)}  # instructions; 6 is the transposition, which a product reads as it lies


@pytest.mark.parametrize("device", ["cpu", "npu-sim:910b"])
def test_from_a_breakpoint_on_any_instruction_of_an_area_a_tile_step_goes_into_it(adapter, tmp_path, device):
    """The program was recorded in stream mode, and the breakpoint cuts its areas where it stands."""
    path = tmp_path / "streamed.py"
    path.write_text(STREAM)
    names = {}
    exec(compile(STREAM, str(path), "exec"), names)
    dvm.set_device(device)
    w = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)

    def forward():
        return names["forward"](dvm.tensor(X), dvm.tensor(w)).numpy()

    plain = forward()
    program = _core.programs()[-1]
    assert {area.index: tuple(area.instructions) for area in program.fused_areas()} == AREAS
    for index in range(len(program.instructions)):
        adapter.request("instructionBreakpoints", items=[{"id": 1, "program": program.id, "instruction": index}])
        running = Running(forward)
        assert adapter.event("vmstop")["FRAME"]["instruction"] == index
        area = next((number for number, instructions in AREAS.items() if index in instructions), None)
        if area is None:
            with pytest.raises(Refused, match="TRANSPOSE is in no fused area: it is a view, or is merged into another instruction"):
                adapter.request("step", kind="tile")
            adapter.request("go")
        else:
            adapter.request("step", kind="tile")
            stop = adapter.event("vmstop")
            assert (stop["FRAME"]["tile"]["area"], stop["FRAME"]["instruction"]) == (area, index)
            while stop["ev"] == "vmstop" and "tile" in stop["FRAME"]:
                adapter.request("step", kind="instruction")
                stop = next_stop(adapter)
            assert (stop["ev"], stop.get("FRAME", {}).get("instruction")) == (("vmstop", 6) if area == 0 else ("vmdone", None))
            if area == 0:
                adapter.request("go")
        assert running.join().tobytes() == plain.tobytes()


def test_into_at_the_begin_of_an_area_is_its_first_tile_instruction(adapter):
    plain = model(X)
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": plain[2], "instruction": 0}])
    running = Running(model, X)
    assert "tile" not in adapter.event("vmstop")["FRAME"]
    adapter.request("step", kind="into")
    assert adapter.event("vmstop")["FRAME"]["tile"]["line"] == 0
    adapter.request("go")
    assert same(running.join(), plain)


def test_a_condition_is_asked_before_the_area_and_what_is_no_tile_instruction_is_said(adapter):
    program = model(X)[2]
    assert at_tile(adapter, program, 99)["message"] == f"program {program} has no tile instruction 99 in area 0"
    at_tile(adapter, program, 0, condition="x.max() > 100")
    Running(model, X).join()
    adapter.none("vmstop", 0.1)
    at_tile(adapter, program, 0, hitCondition="2")
    Running(model, X).join()
    running = Running(model, X)
    assert adapter.event("vmstop")["bp"] == [7]
    adapter.request("go")
    running.join()
    adapter.request("instructionBreakpoints", items=[])
    Running(model, X).join()
    adapter.none("vmstop", 0.1)


def test_listings_are_read_with_their_strips():
    text = """vmain.aiv(rows=1) {
  g0: load.fp32 %0 // bound
prologue:
0: BroadcastX.fp32.8 0x0, g1 ; %0
tile:
0: strip // next(2)
1:   Muls.fp32.1024 v0, g0, g1 ; %0
2:   Exp.fp32.1024 g2, v0 ; %1
3: Add.fp32.1024 0x40, g2, g2 ; %2
    {simd, bar(1)}
}
"""
    assert [(line.line, line.instruction, line.strip) for line in lines_of(text)] == [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 3)]
    assert lines_of(text)[3].operand == "0x40 Add.fp32"
