"""Stops in the tensor engine, over a real socket, without a Python debugger: lines, instructions, numeric checks, steps, conditions."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import gc
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, LINE_Y, Capture, X, breakpoint_on, model, op, same, source  # noqa: F401 - the fixtures among them

from dvm_core import programs


def test_hello_says_who_it_is(adapter):
    version = list(sys.version_info[:2])
    assert adapter.hello == {"type": "hello", "token": adapter.token, "pid": os.getpid(), "python": version, "device": "cpu",
                             "cwd": os.getcwd()}


def test_every_request_is_answered(adapter):
    with pytest.raises(Refused, match="unknown command 'nothing'; known: areas, .*assign, begunAs, breakpoints, .*configure"):
        adapter.request("nothing")
    with pytest.raises(Refused, match='argument "lines" is None; it must be list'):
        adapter.request("breakpoints")
    with pytest.raises(Refused, match="this needs a stop on a tensor line"):
        adapter.request("tensors")


def test_backward_line(adapter):
    reference = model(X)
    assert breakpoint_on(adapter, LINE_S)["verified"]
    program = Running(model, X)
    stop = adapter.event("vmstop")
    frame = stop["FRAME"]
    assert (stop["reason"], stop["bp"], stop["epoch"]) == ("breakpoint", [7], frame["ref"])
    assert (frame["line"], frame["backward"], frame["instruction"], frame["instructions"]) == (LINE_S, True, 3, 5)
    assert (frame["opcode"], frame["function"], frame["path"], frame["name"]) == ("MUL", "forward", model.path, "s = exp(h)")
    assert frame["instruction"] in frame["areaInstructions"] and frame["area"] < frame["areas"]
    tensors = {t["name"]: t for t in adapter.request("tensors")["tensors"]}
    assert list(tensors)[:3] == ["y", "s", "grad(s)"]
    assert tensors["y"]["computed"] and not tensors["grad(s)"]["computed"]
    assert tensors["grad(s)"]["summary"].startswith("f32[3,4]")
    adapter.request("go")
    assert same(program.join(), reference)
    with pytest.raises(Refused, match="needs a stop"):
        adapter.request("tensors")


def test_forward_mode_leaves_stream_lines_to_python(adapter):
    assert not breakpoint_on(adapter, LINE_S, "forward")["verified"]
    model(X)
    bound = adapter.event("bound")
    assert (bound["id"], bound["verified"], bound["tensorLine"]["backward"]) == (7, True, False)
    adapter.none("vmstop")


@pytest.mark.parametrize("known", [True, False])
def test_a_step_of_python_ends_at_the_next_part_of_its_function(adapter, known):
    """As between the parts that PyTorch compiles around a graph break: the next one is called by code that Python's debugger steps over.
    Whether it was compiled before or is only now; not on another thread, and not once the step has ended."""
    here = model.path
    model.path = here if known else f"{here}.other"  # of the first part
    reference = model(X, "graph")
    model.path = here
    namespace, gate = {}, threading.Event()
    lines = "def forward(wait, launch):\n    wait()\n    return launch()\n\n\n"
    exec(compile(lines, model.path, "exec"), namespace)
    program = Running(namespace["forward"], gate.wait, lambda: model(X, "graph"))
    while sys._current_frames()[program.thread.ident].f_code.co_name != "wait":
        time.sleep(0.01)
    adapter.request("follow", thread=program.thread.ident)
    if known:
        assert same(Running(model, X, "graph").join(), reference)  # another thread
        adapter.none("vmstop", 0.1)
    gate.set()
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["thread"], stop["bp"]) == ("step", program.thread.ident, [])
    assert (stop["FRAME"]["instruction"], stop["FRAME"]["line"]) == (0, LINE_H)
    adapter.request("go")
    result = program.join()
    assert same(result, reference) and same(result, model(X, "graph"))
    adapter.none("vmstop", 0.1)


def test_the_head_of_a_captured_function_is_told_where_its_calls_stop(adapter):
    """A breakpoint on a `def` stops once, in Python, when that is defined: the hint comes with the first program, or at once after it."""
    hint = "stops once, when Python defines forward; to stop in its calls set it at line 2, where the body begins"
    assert breakpoint_on(adapter, 1, "forward") == {"id": 7, "verified": False, "message": ""}
    model(X)
    for told in (adapter.event("bound"), breakpoint_on(adapter, 1, "both")):
        assert (told["id"], told["verified"], told["message"], told["hint"]) == (7, False, hint, True)
    assert "hint" not in breakpoint_on(adapter, LINE_H, "forward")


def test_forward_lines_of_graph_mode_stop_here(adapter):
    breakpoint_on(adapter, LINE_S, "forward")
    program = Running(model, X, "graph")
    stop = adapter.event("vmstop")
    assert (stop["FRAME"]["instruction"], stop["FRAME"]["backward"]) == (1, False)
    adapter.request("go")
    program.join()


def test_both_stops_twice_in_graph_mode(adapter):
    breakpoint_on(adapter, LINE_H, "both")
    program = Running(model, X, "graph")
    for expected in (0, 4):
        assert adapter.event("vmstop")["FRAME"]["instruction"] == expected
        adapter.request("go")
    program.join()


def test_a_breakpoint_that_goes_takes_its_hooks_with_it(adapter):
    reference = model(X)
    breakpoint_on(adapter, LINE_S)
    adapter.request("breakpoints", lines=[])
    assert same(model(X), reference)
    adapter.none("vmstop", 0.1)


def test_instruction_breakpoints(adapter):
    number = model(X)[2]
    results = adapter.request("instructionBreakpoints", items=[{"id": 1, "program": number, "instruction": 2},
                                                               {"id": 2, "program": number, "instruction": 99}])["results"]
    assert [r["verified"] for r in results] == [True, False]
    assert results[1]["message"] == f"there is no instruction 99 in program {number}"
    program = Running(model, X)
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["bp"], stop["FRAME"]["instruction"]) == ("instruction", [1], 2)
    adapter.request("go")
    program.join()
    adapter.request("instructionBreakpoints", items=[])


def test_steps(adapter):
    reference = model(X)
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": reference[2], "instruction": 0}])
    program = Running(model, X)
    first = adapter.event("vmstop")
    names = []
    for kind, expected in (("instruction", 1), ("line", 2), ("line", 3)):
        adapter.request("step", kind=kind)
        stop = adapter.event("vmstop")
        assert (stop["reason"], stop["FRAME"]["instruction"]) == ("step", expected)
        assert stop["epoch"] > first["epoch"]
        names.append([t["name"] for t in adapter.request("tensors")["tensors"] if t["computed"]])
    assert "h" in names[0] and "s" in names[1] and "y" in names[2]
    assert adapter.request("frames")["tensor"]["instruction"] == 3
    adapter.request("step", kind="out")
    adapter.event("vmdone")
    assert same(program.join(), reference)
    adapter.request("instructionBreakpoints", items=[])


def test_a_step_stops_at_a_breakpoint_on_its_way_and_the_launch_does_not_stop_there_again(adapter):
    number = model(X)[2]
    adapter.request("instructionBreakpoints", items=[{"id": n, "program": number, "instruction": n} for n in (1, 3)])
    program = Running(model, X)
    assert adapter.event("vmstop")["bp"] == [1]
    adapter.request("step", kind="out")
    stop = adapter.event("vmstop")
    assert (stop["bp"], stop["FRAME"]["instruction"], stop["reason"]) == ([3], 3, "breakpoint")
    adapter.request("go")
    program.join()
    adapter.none("vmstop", 0.1)
    adapter.request("instructionBreakpoints", items=[])


def test_stepping_needs_a_stop(adapter):
    with pytest.raises(Refused, match="this needs a stop on a tensor line"):
        adapter.request("step", kind="line")
    with pytest.raises(Refused, match="there is no step 'back'; there are instruction, line, out, into"):
        adapter.request("step", kind="back")


@pytest.mark.parametrize("condition, stops", [
    ("s.max() > 7", True), ("s.max() > 70", False), ("y[0, 0] < rate", True), ("y[0, 0] > rate", False), ("unknown > 1", True)])
def test_conditions(adapter, condition, stops):
    breakpoint_on(adapter, LINE_S, condition=condition)
    program = Running(model, X)
    if stops:
        adapter.event("vmstop")
        adapter.request("go")
    program.join()
    if "unknown" in condition:
        assert "no tensor `unknown` here" in adapter.event("notice")["text"]
    adapter.none("vmstop", 0.05)


def test_hit_conditions_survive_a_new_list(adapter):
    breakpoint_on(adapter, LINE_S, hitCondition="3")
    model(X)
    breakpoint_on(adapter, LINE_S, hitCondition="== 3", condition="True")
    model(X)
    adapter.none("vmstop", 0.1)
    program = Running(model, X)
    adapter.event("vmstop")
    adapter.request("go")
    program.join()
    assert "a hit count is a number" in breakpoint_on(adapter, LINE_S, hitCondition="often")["message"]


def test_a_bad_entry_is_refused_alone(adapter):
    good = {"id": 7, "path": model.path, "line": LINE_S, "mode": "backward"}
    assert breakpoint_on(adapter, LINE_S)["message"] is not None
    bad = [{**good, "id": 1, "hitCondition": 3}, {**good, "id": 2, "condition": True}, {**good, "id": 3, "line": "4"}, "five",
           {**good, "id": 4, "path": "nul\0"}, {**good, "id": 5, "mode": ["backward"]}, {**good, "id": [6]}]
    results = adapter.request("breakpoints", lines=[*bad, good])["results"]
    assert [result.get("verified") for result in results[:-1]] == [False] * len(bad)
    for result, said in zip(results, ["hitCondition must be a text; this is 3", "condition must be a text; this is True", '"line" is \'4\'',
                                      "'five'", '"path"', "there is no mode", '"id" is [6]'], strict=False):
        assert said in result["message"]
    program = Running(model, X)
    assert adapter.event("vmstop")["bp"] == [7]
    # Refused in its new form, it is in force in neither.
    assert breakpoint_on(adapter, LINE_S, hitCondition=3)["verified"] is False
    adapter.request("go")
    program.join()
    model(X)
    adapter.none("vmstop", 0.1)
    items = adapter.request("instructionBreakpoints", items=[{"id": 1, "program": "x", "instruction": 0}, None])["results"]
    assert [item["verified"] for item in items] == [False, False]


def test_a_line_without_a_gradient_says_so(adapter):
    waits = breakpoint_on(adapter, LINE_Y)
    assert (waits["verified"], waits["message"]) == (False, "")
    program = Running(model, X)
    said = "nothing on this line has a gradient; nearest lines that have: 2, 3"
    bound = adapter.event("bound")
    assert (bound["id"], bound["verified"], bound["message"]) == (7, False, said)
    program.join()
    assert breakpoint_on(adapter, LINE_Y)["message"] == said  # also where the program is known already
    assert breakpoint_on(adapter, 5)["message"] == said
    assert breakpoint_on(adapter, LINE_S)["verified"]
    assert breakpoint_on(adapter, LINE_Y, "both")["verified"]


def test_log_points_never_stop(adapter):
    breakpoint_on(adapter, LINE_S, logMessage="s is {s.max():} {round(s.max())} {nope}")
    model(X)
    notice = adapter.event("notice", where=lambda n: n["category"] == "logpoint")
    assert f"<{os.path.basename(model.path)}:{LINE_S}: `nope`: no tensor `nope` here; there are " in notice["text"]
    assert (notice["line"], notice["path"]) == (LINE_S, model.path)
    adapter.none("vmstop", 0.1)


def test_nan_says_what_made_it(adapter):
    adapter.request("filters", conditions={"nan": ""})
    x = X.copy()
    x[1, 2] = np.nan
    program = Running(model, x)
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["FRAME"]["instruction"], stop["FRAME"]["opcode"]) == ("nan", 0, "MUL")
    assert stop["text"] == "MUL made 1 NaN in h, f32[3,4], 12 elements; the first at [1, 2]: NaN from x = NaN"
    adapter.request("go")
    program.join()
    adapter.request("filters", conditions={})
    assert same(model(X), model(X))


def test_values_without_a_name_are_called_as_in_the_programs_listing(adapter):
    def run():
        with Capture("unnamed") as c:
            v = c.graph.input(X.ctypes.data, X.shape, 1, None, X, "")
            h = c.graph.op(op("MUL"), (v, -1), imms=(2.0,))
            y = c.graph.op(op("EXP"), (h,))
            return c.graph.flush(keep=[y]).program.id

    number = run()
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": number, "instruction": 1}])
    program = Running(run)
    adapter.event("vmstop")
    listing = programs.program(number).text("tensor")[0]
    assert "%2 = EXP(%1) f32[3,4]" in listing and "%1 = MUL(%i0, 2.0) f32[3,4]" in listing
    assert [t["name"] for t in adapter.request("tensors")["tensors"]] == ["%1", "%2"]
    assert adapter.request("evaluate", expression="%i0")["name"] == "%i0"
    adapter.request("go")
    program.join()
    adapter.request("instructionBreakpoints", items=[])


def test_infinity_is_its_own_filter(adapter):
    x = X.copy()
    x[0, 3] = 0
    adapter.request("filters", conditions={"nan": ""})
    model(x)
    adapter.none("vmstop", 0.1)
    adapter.request("filters", conditions={"inf": ""})
    program = Running(model, x)
    stop = adapter.event("vmstop")
    assert stop["text"] == "DIV made 1 infinity in y, f32[3,4], 12 elements; the first at [0, 3]: Inf from s = 1.0, x = 0.0"
    adapter.request("step", kind="out")
    adapter.event("vmdone")
    program.join()
    adapter.request("filters", conditions={})


def test_evaluate(adapter):
    number = model(X)[2]
    adapter.request("instructionBreakpoints", items=[{"id": 1, "program": number, "instruction": 3}])
    program = Running(model, X)
    adapter.event("vmstop")
    whole = adapter.request("evaluate", expression="s")
    assert (whole["name"], whole["shape"], whole["computed"], whole["dtype"]) == ("s", [3, 4], True, "float32")
    assert float(adapter.request("evaluate", expression="abs(s).max()")["result"]) == pytest.approx(np.exp(4), rel=1e-6)
    part = adapter.request("evaluate", expression="s[1, ::2] * 2")
    assert part["shape"] == [2]
    values = adapter.request("elements", ref=part["ref"], start=0, count=10)["values"]
    np.testing.assert_allclose([float(v) for v in values], np.exp(2 * X)[1, ::2] * 2, rtol=1e-6)
    assert adapter.request("evaluate", expression="x.sum()")["result"] == str(X.sum())
    with pytest.raises(Refused, match=r"`grad\(s\)` is not yet computed"):
        adapter.request("evaluate", expression="grad(s) + 1")
    with pytest.raises(Refused, match="evaluate it in the Python frame below"):
        adapter.request("evaluate", expression="np")
    told = [adapter.request("evaluate", expression=name) for name in ("%i0", "%1", " %2 ", "%4")]
    assert [(t["name"], t["computed"]) for t in told] == [("x", True), ("h", True), ("s", True), ("grad(s)", False)]
    for name in ("%0", "%i1", "%99"):
        with pytest.raises(Refused, match=f"there is no {name} in what this stop shows; %i0"):
            adapter.request("evaluate", expression=name)
    adapter.request("go")
    program.join()
    adapter.request("instructionBreakpoints", items=[])


def test_references_die_with_the_stop(adapter):
    breakpoint_on(adapter, LINE_S)
    program = Running(model, X)
    adapter.event("vmstop")
    reference = adapter.request("tensors")["tensors"][0]["ref"]
    assert adapter.request("tensor", ref=reference)["computed"]
    adapter.request("go")
    program.join()
    for command in ("tensor", "elements", "evaluateMemory"):
        with pytest.raises(Refused, match=f"tensor reference {reference} is not of this stop"):
            adapter.request(command, ref=reference, start=0, count=1, offset=0)
    with pytest.raises(Refused, match="is not of this stop"):
        adapter.request("tensor", ref=reference + 1)


def test_what_was_looked_at_at_a_stop_lives_no_longer_than_without_a_debugger(adapter):
    """A debugger that keeps a tensor alive uses up memory, and misleads whoever looks for what does."""
    x = X.copy()
    seen = weakref.ref(x)
    breakpoint_on(adapter, LINE_S)
    program = Running(model, x)
    adapter.event("vmstop")
    tensors = adapter.request("tensors")["tensors"]
    adapter.request("tensor", ref=tensors[0]["ref"], maxBytes=64)
    assert adapter.request("evaluate", expression="s.max()")["result"]
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()
    del program, x
    model(X)  # the launch before it is let go of
    gc.collect()
    assert seen() is None

