"""Writes, data breakpoints, places for breakpoints and modules, with the real tensor engine."""
import base64
import shutil

import numpy
import pytest
from harness import PROGRAMS, line_of
from test_whole import W, X, steps_printed, tensors

pytest.importorskip("dvm_core._core")


@pytest.fixture
def program(tmp_path):
    return shutil.copy(PROGRAMS / "real.py", tmp_path / "loop.py")


def test_a_written_element_is_what_the_program_computes_with_and_everyone_is_told(session, program):
    line = line_of(program, "s = h + scale")
    session.start(program, args=["1", "0"], at=lambda client: client.set_breakpoints(str(program), [line]),
                  client_args={"supportsMemoryEvent": True})
    session.stopped(reason="breakpoint")
    frame = session.stack(1)[0]["id"]
    h = tensors(session, frame)["h"]
    answer = session.request("setExpression", frameId=frame, expression="h[7, 3]", value="100")
    assert answer["value"] == "100.0"
    assert session.event("memory")["body"] == {"memoryReference": h["memoryReference"], "offset": 0, "count": 128}
    assert session.event("invalidated")["body"]["areas"] == ["variables"]
    session.request("writeMemory", memoryReference=h["memoryReference"], offset=0,
                    data=base64.b64encode(numpy.float32(50).tobytes()).decode())
    scope = session.scopes(frame)["Tensors"]["variablesReference"]
    assert "max 100" in tensors(session, frame)["h"]["value"]
    assert "must be a number" in session.refusal("setVariable", variablesReference=scope, name="h", value="'a'")
    session.go_on()
    session.run_out()
    expected = X * W
    expected[7, 3], expected[0, 0] = 100, 50
    assert float(steps_printed(session)[0][3]) == pytest.approx((numpy.log(expected + 1) / 2).mean(), abs=1e-5)


def test_a_data_breakpoint_stops_after_the_write(session, program):
    line = line_of(program, "y = s.log()")
    session.start(program, args=["3", "0"], at=lambda client: client.set_breakpoints(str(program), [line]))
    session.stopped(reason="breakpoint")
    info = session.request("dataBreakpointInfo", name="s", frameId=session.stack(1)[0]["id"])
    assert info["accessTypes"] == ["write"] and info["canPersist"] and info["description"] == "s of forward"
    session.set_breakpoints(str(program), [])
    (answer,) = session.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "hitCondition": "2"}])["breakpoints"]
    assert "s" in answer["message"] and answer.get("reason") in (None, "pending")
    session.go_on()
    session.stopped(reason="data breakpoint", hitBreakpointIds=[answer["id"]], text="s was written by ADD, with the values it had")
    session.request("setDataBreakpoints", breakpoints=[])
    session.go_on()
    session.run_out()
    assert len({words[3] for words in steps_printed(session)}) == 1


def test_places_for_breakpoints_are_statements_and_operations_in_utf16(session, tmp_path):
    path = tmp_path / "places.py"
    path.write_text('"""Doc."""\n\ndef f(x):\n    # a comment\n    y = "😀" + g(x)\n    return (y +\n            1)\n', encoding="utf-8")
    session.start(PROGRAMS / "plain.py")
    found = session.request("breakpointLocations", source={"path": str(path)}, line=1, endLine=99)["breakpoints"]
    assert sorted({place["line"] for place in found}) == [3, 5, 6]
    columns = [place for place in found if place["line"] == 5 and "column" in place]
    assert [(place["column"], place["endColumn"]) for place in columns] == [(9, 20), (16, 20)]
    assert session.request("breakpointLocations", source={"path": str(path)}, line=4)["breakpoints"] == []
    assert session.request("breakpointLocations", source={"path": "/nowhere.py"}, line=1)["breakpoints"] == []
    session.run_out()


def test_compiled_programs_are_modules_with_columns(session, program):
    session.start(program, args=["2", "0"], at=lambda client: client.set_breakpoints(str(program), [line_of(program, 'print(f"step')]))
    session.stopped()
    told = session.request("modules")
    ours = [module for module in told["modules"] if str(module["id"]).startswith("dvm:")]
    assert [(module["path"], module["instructions"], module["backend"]) for module in ours] == [(str(program), 4, "cpu")]
    assert told["totalModules"] == len(told["modules"])
    assert session.request("modules", startModule=told["totalModules"] - 1, moduleCount=5)["modules"] == ours
    new = session.event("module", where=lambda body: str(body["module"]["id"]).startswith("dvm:"))["body"]
    assert (new["reason"], new["module"]["id"]) == ("new", ours[0]["id"])
    session.set_breakpoints(str(program), [])
    session.go_on()
    session.run_out()


def test_methods_of_tensors_are_completed(session, program):
    line = line_of(program, "s = h + scale")
    session.start(program, args=["1", "0"], at=lambda client: client.set_breakpoints(str(program), [line]))
    session.stopped()
    frame = session.stack(1)[0]["id"]

    def labels(text):
        return [t["label"] for t in session.request("completions", frameId=frame, text=text, column=len(text) + 1)["targets"]]

    assert labels("h.me") == ["mean"] and labels("2 * h[0, :].ma") == ["max"] and labels("%1.sh") == ["shape"]
    assert "h" in labels("h")
    session.go_on()
    session.run_out()


def test_what_takes_long_is_told_and_may_be_cancelled_by_its_progress(session):
    session.start("fake_debuggee.py", args=["1"], at=lambda client: client.set_breakpoints(
        str(PROGRAMS / "fake_debuggee.py"), [line_of(PROGRAMS / "fake_debuggee.py", "h = x * 2")]))
    session.stopped()
    waiting = session.begin("evaluate", expression="slow", frameId=session.stack(1)[0]["id"], context="watch")
    told = session.event("progressStart")["body"]
    assert (told["title"], told["cancellable"]) == ("Evaluating", True)
    session.request("cancel", progressId=told["progressId"])
    assert waiting.get(timeout=20)["message"] == "cancelled"
    assert session.event("progressEnd")["body"] == {"progressId": told["progressId"]}
    session.set_breakpoints(str(PROGRAMS / "fake_debuggee.py"), [])
    session.go_on()
    session.run_out()


def test_a_column_is_said_to_be_the_whole_line(session):
    path = PROGRAMS / "plain.py"
    session.start(path, at=lambda client: client.request(
        "setBreakpoints", source={"path": str(path)}, breakpoints=[{"line": 1, "column": 3}, {"line": 1}]))
    answers = [m["body"]["breakpoints"] for m in session.log if m.get("command") == "setBreakpoints"]
    assert "not at the column" in answers[0][0]["message"] and "column" not in answers[0][1].get("message", "")
