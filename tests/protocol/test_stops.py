"""Stops of two engines as one: the tensor line on top, steps to whom they belong, everything exactly once. With a fake agent."""
import asyncio
import time
from types import SimpleNamespace

import pytest
import some
from dvm_adapter.stops import Stop, Stops
from harness import PROGRAMS, line_of

FAKE = PROGRAMS / "fake_debuggee.py"
LINE = line_of(FAKE, "h = x * 2")
LABEL = "── Python ──"
BACKWARD = {"line": LINE, "mode": "backward"}


def stops(session):
    return [body["reason"] for body in session.seen("stopped")]


def test_a_forward_stop_has_the_tensor_line_on_top_of_python(session):
    session.start(FAKE, args=["2"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]))
    session.stopped(reason="breakpoint", hitBreakpointIds=[1], threadId=1, description="Paused on tensor line")
    body = session.request("stackTrace", threadId=1)
    assert [frame["name"] for frame in body["stackFrames"]] == ["h = x * 2", LABEL, "step", "train", "<module>"]
    assert body["totalFrames"] == 5
    top, label, python = body["stackFrames"][:3]
    assert top == {"id": some.ours, "name": "h = x * 2", "line": LINE, "column": 5, "endLine": LINE,
                   "source": {"name": "fake_debuggee.py", "path": str(FAKE)}}
    assert label["presentationHint"] == "label" and session.request("scopes", frameId=label["id"])["scopes"] == []
    # Python stands on the same line: its scopes are there without another name
    assert list(session.scopes(top["id"])) == ["Tensors", "Locals", "Globals"]
    assert python["line"] == LINE
    # a step belongs to Python here
    session.request("next", threadId=1)
    session.stopped(reason="step", description="Paused on step")
    assert [frame["line"] for frame in session.stack(1)][2] == LINE + 1
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    session.run_out()
    assert stops(session) == ["breakpoint", "step"]


def test_the_stack_is_paged_over_both_engines(session):
    session.start(FAKE, args=["1"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]))
    session.stopped()
    whole = session.stack(1)
    for start in range(7):
        for levels in range(1, 6):
            page = session.request("stackTrace", threadId=1, startFrame=start, levels=levels)
            assert [f["id"] for f in page["stackFrames"]] == [f["id"] for f in whole][start:start + levels], (start, levels)
            assert page["totalFrames"] == 5


def test_a_backward_stop_is_announced_once_and_steps_are_the_vms(session):
    answers = []
    session.start(FAKE, args=["2"], at=lambda client: answers.extend(client.set_breakpoints(str(FAKE), [BACKWARD])))
    assert answers[0]["verified"] is False and answers[0]["reason"] == "pending"
    changed = session.event("breakpoint")["body"]["breakpoint"]
    assert changed == some.with_items(id=answers[0]["id"], verified=True)
    body = session.stopped(reason="breakpoint", hitBreakpointIds=[answers[0]["id"]])
    thread = body["threadId"]
    frames = session.stack(thread)
    assert [frame["name"] for frame in frames] == ["backward of h = x * 2", LABEL, "train", "<module>"]
    first = frames[0]["instructionPointerReference"]
    # Python stands elsewhere, and its scopes say so
    assert list(session.scopes(frames[0]["id"]))[1] == some.containing("Locals of train")
    session.request("next", threadId=thread, granularity="instruction")
    session.stopped(reason="step", threadId=thread)
    second = session.stack(thread)[0]["instructionPointerReference"]
    assert int(second, 16) == int(first, 16) + 1
    session.request("next", threadId=thread)  # to the end of the launch: the step goes on in Python
    session.stopped(reason="step")
    frames = session.stack(thread)
    assert frames[0]["name"] == "train" and frames[0]["line"] == line_of(FAKE, 'agent.send(ev="step"')
    session.set_breakpoints(str(FAKE), [])
    session.go_on(thread)
    session.run_out()
    assert stops(session) == ["breakpoint", "step", "step"]


def test_continue_lets_the_vm_and_python_go(session):
    session.start(FAKE, args=["3"], at=lambda client: client.set_breakpoints(str(FAKE), [{"line": LINE, "mode": "both"}]))
    for number in range(6):  # each step: once forward, once backward
        session.stopped(reason="breakpoint", hitBreakpointIds=[1])
        assert (session.stack(1)[0]["name"] == "h = x * 2") == (number % 2 == 0)
        session.go_on()
    session.run_out()
    assert stops(session) == ["breakpoint"] * 6
    assert "total 15" in session.printed()


def test_a_stop_on_another_thread_names_that_thread(session):
    session.start(FAKE, args=["1", "--thread"], at=lambda client: client.set_breakpoints(str(FAKE), [{"line": LINE, "mode": "both"}]))
    for _ in range(2):
        thread = session.stopped(reason="breakpoint")["threadId"]
        names = {t["id"]: t["name"] for t in session.request("threads")["threads"]}
        assert names[thread] == "trainer"
        assert session.stack(thread)[1]["name"] == LABEL
        main = next(number for number, name in names.items() if name == "MainThread")
        assert LABEL not in [frame["name"] for frame in session.stack(main)]
        session.go_on(thread)
    session.run_out()


def test_nan_stops_explain_themselves(session):
    session.start(FAKE, args=["1"], at=lambda client: client.request("setExceptionBreakpoints", filters=["nan"]))
    body = session.stopped(reason="exception", text="1 of 12 elements, first at [0, 3]")
    assert body["description"] == "Paused on NaN in step"
    info = session.request("exceptionInfo", threadId=body["threadId"])
    details = some.with_items(typeName="NaN", stackTrace=some.containing(f'fake_debuggee.py", line {LINE}, in backward of step'))
    assert info == {"exceptionId": "NaN", "description": "1 of 12 elements, first at [0, 3]", "breakMode": "always", "details": details}
    session.go_on()
    session.run_out()


def test_references_of_an_earlier_stop_are_refused_and_never_reused(session):
    session.start(FAKE, args=["2"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]))
    session.stopped()
    frame = session.stack(1)[0]["id"]
    reference = session.scopes(frame)["Tensors"]["variablesReference"]
    memory = session.variables(reference)[0]["memoryReference"]
    session.go_on()
    session.stopped()
    later = session.stack(1)[0]["id"]
    assert later > reference
    for command, arguments in (("scopes", {"frameId": frame}), ("variables", {"variablesReference": reference}),
                               ("evaluate", {"expression": "x", "frameId": frame}),
                               ("readMemory", {"memoryReference": memory, "count": 4})):
        assert "earlier stop" in session.refusal(command, **arguments)
    # one past the newest is no reference either
    newest = session.scopes(later)["Tensors"]["variablesReference"]
    assert "no such reference" in session.refusal("variables", variablesReference=newest + 1)
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    session.run_out()


def test_while_the_program_runs_requests_for_a_stop_say_so(session):
    session.start(FAKE, args=["50", "0.05"])
    session.event("dvm/step")
    for command in ("scopes", "variables", "readMemory", "exceptionInfo"):
        assert session.refusal(command) == "notStopped"
    assert session.request("threads")["threads"]
    assert session.request("dvm/status")["connected"] is True


def test_instruction_breakpoints_stop_and_keep_their_ids(session):
    session.start(FAKE, args=["3", "0.3"])
    session.event("dvm/step")
    reference = "0x" + format((3 << 32) + (1 << 31), "016x")
    answers = session.request("setInstructionBreakpoints", breakpoints=[
        {"instructionReference": reference, "offset": 1}, {"instructionReference": reference, "offset": 99},
        {"instructionReference": "x"}])["breakpoints"]
    assert [a["verified"] for a in answers] == [True, False, False]
    assert answers[1]["message"] == "past the end" and answers[2]["message"] == some.containing("'x' is not an instruction address")
    body = session.stopped(reason="instruction breakpoint", hitBreakpointIds=[answers[0]["id"]])
    assert int(session.stack(body["threadId"])[0]["instructionPointerReference"], 16) == int(reference, 16) + 1
    again = session.request("setInstructionBreakpoints", breakpoints=[
        {"instructionReference": reference, "offset": 1, "hitCondition": "2"}])
    assert again["breakpoints"][0]["id"] == answers[0]["id"]
    assert "jumping out" in session.refusal("goto", threadId=1, targetId=1)
    session.request("setInstructionBreakpoints", breakpoints=[])
    session.go_on()
    session.run_out()


def test_disconnect_at_a_vm_stop_ends_everything(session):
    session.start(FAKE, args=["2"], at=lambda client: client.set_breakpoints(str(FAKE), [BACKWARD]))
    session.stopped()
    session.request("disconnect", timeout=6)
    session.process.wait(5)


def test_a_stop_of_the_vm_while_python_is_looked_at_comes_next_and_nothing_runs_in_between(session):
    print_line = line_of(FAKE, "main goes on")
    session.start(FAKE, args=["1", "--thread", "--second"], at=lambda client: client.set_breakpoints(str(FAKE), [
        {"line": LINE, "mode": "backward"}, print_line]))
    main = session.stopped(reason="breakpoint", hitBreakpointIds=[2])["threadId"]
    assert session.stack(main)[0]["line"] == print_line
    assert "description" not in next(session.seen("stopped"))  # Python's own, not on a tensor line
    time.sleep(1.5)  # the other thread's program stops meanwhile
    assert stops(session) == ["breakpoint"]
    session.go_on(main)
    body = session.stopped(reason="breakpoint", hitBreakpointIds=[1])
    assert body["threadId"] != main
    assert session.stack(body["threadId"])[0]["name"] == "backward of h = x * 2"
    assert session.stack(main)[0]["line"] == print_line and "main goes on" not in session.printed()
    session.go_on(body["threadId"])
    session.run_out()
    assert "main goes on" in session.printed() and len(stops(session)) == 2


def test_a_stop_of_the_vm_is_announced_even_if_python_takes_long_to_stand(session):
    session.start(FAKE, args=["1", "0", "--late"], at=lambda client: client.set_breakpoints(str(FAKE), [BACKWARD]))
    session.stopped(reason="breakpoint", threadId=1)
    assert session.request("stackTrace", threadId=1) == {"stackFrames": [some.with_items(name="backward of h = x * 2")], "totalFrames": 1}
    assert list(session.scopes(session.stack(1)[0]["id"])) == ["Tensors"]
    assert session.event("invalidated")["body"] == {"areas": ["stacks"], "threadId": 1}
    assert [frame["name"] for frame in session.stack(1)][2:] == ["train", "<module>"]
    session.go_on()
    session.run_out()
    assert stops(session) == ["breakpoint"]


def test_when_the_tensor_engine_goes_python_is_still_debugged(session):
    session.start(FAKE, args=["2"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]))
    session.stopped()
    frame = session.stack(1)[0]["id"]
    assert session.request("evaluate", expression="leave", frameId=frame)["result"] == "bye"
    session.event("invalidated")
    assert [f["name"] for f in session.stack(1)] == ["step", "train", "<module>"]
    assert session.request("dvm/status")["connected"] is False
    assert "imports dvm_core" in session.refusal("dvm/programs")
    session.go_on()
    session.stopped(reason="breakpoint")
    assert session.stack(1)[0]["name"] == "step"
    session.go_on()
    session.run_out()


@pytest.mark.parametrize("mode, forward, backward", [("forward", True, False), ("backward", False, True), ("both", True, True)])
def test_debugpy_gets_only_lines_that_may_stop_forward(session, mode, forward, backward):
    session.start(FAKE, args=["1"], at=lambda client: client.set_breakpoints(str(FAKE), [{"line": LINE, "mode": mode}]))
    names = []
    while True:
        message = session.event("stopped", "terminated")
        if message["event"] == "terminated":
            break
        names.append(session.stack(1)[0]["name"])
        session.go_on()
    assert names == ["h = x * 2"] * forward + ["backward of h = x * 2"] * backward


def test_the_agent_is_told_whose_stop_is_over():
    asked = []

    async def ask(command, **arguments):
        asked.append((command, arguments))

    session = SimpleNamespace(tensors=SimpleNamespace(ask=ask), has_agent=True, references=SimpleNamespace(clear=lambda: None), member=None)
    made = Stops(session)
    made.current = Stop(1, {}, vm={"thread": 42}, python=False)
    asyncio.run(made.resume({}))
    assert asked == [("go", {"thread": 42})]
