"""What a client should not send leaves the session alive: each of these once made debugpy, or its server in the program, deaf."""
import _socket
import asyncio
import io
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest
from dvm_adapter import registry
from dvm_adapter.channel import Channel
from dvm_adapter.client import read_message
from dvm_adapter.log import Log
from dvm_adapter.session import Session
from harness import BOUND, PROGRAMS, line_of

PLAIN = PROGRAMS / "plain.py"

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("evaluate", {"expression": {}}), ("evaluate", {"expression": "1", "frameId": "x"}), ("evaluate", {}),
    ("setBreakpoints", {"source": {"path": str(PLAIN)}, "breakpoints": "x"}),
    ("setBreakpoints", {"source": 5, "breakpoints": [{"line": 1}]}),
    ("setBreakpoints", {"source": {"path": str(PLAIN)}, "breakpoints": [None]}),
    ("setFunctionBreakpoints", {"breakpoints": "x"}), ("setFunctionBreakpoints", {"breakpoints": [{}]}),
    ("setExceptionBreakpoints", {"filters": [[]]}), ("setExceptionBreakpoints", {"filters": [], "filterOptions": [1]}),
    ("next", {}), ("pause", {"threadId": "x"}), ("stackTrace", {"threadId": 1, "startFrame": "x"}),
    ("variables", {"variablesReference": 1.5}),
    ("completions", {}), ("gotoTargets", {}), ("readMemory", {"memoryReference": 5}), ("disassemble", {"instructionCount": "a"}),
]


@pytest.fixture(scope="module")
def stopped(lasting_adapter):
    session = lasting_adapter()
    line = line_of(PLAIN, "total = a + b")
    session.start(PLAIN, at=lambda client: client.set_breakpoints(str(PLAIN), [line]))
    session.stopped(reason="breakpoint")
    return session


def test_arguments_of_a_wrong_type_are_refused_and_the_session_goes_on(stopped):
    for command, arguments in WRONG:
        assert "failed in the debug adapter" not in stopped.refusal(command, **arguments), command
    stopped._send({"type": "request", "command": ["threads"]})  # no command to answer
    assert stopped.request("threads")["threads"]
    assert stopped.request("evaluate", expression="1 + 1", frameId=stopped.stack(1)[0]["id"])["result"] == "2"


@pytest.mark.parametrize("source", [{}, {"path": ""}, {"path": "a\0b.py"}, {"name": "plain.py"}, {"sourceReference": 5}])
def test_breakpoints_in_a_source_without_a_path_are_answered(stopped, source):
    (answer,) = stopped.request("setBreakpoints", source=source, breakpoints=[{"line": 1}])["breakpoints"]
    assert not answer["verified"] and "path" in answer["message"]
    assert stopped.request("threads")["threads"]


def test_breakpoints_in_what_has_no_lines_are_answers(stopped, tmp_path):
    with zipfile.ZipFile(archive := tmp_path / "library.zip", "w") as file:
        file.writestr("part.py", "a = 1\nb = 2\n")
    (binary := tmp_path / "binary.py").write_bytes(bytes(range(256)))
    odd = (f"{archive}/part.py", str(archive), str(tmp_path), str(binary), _socket.__file__, "/nowhere/x.py", "<stdin>", "git:/a.py",
           "C:\\a.py", "//server/share/a.py")
    for path in odd:
        (answer,) = stopped.request("setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}])["breakpoints"]
        assert answer["source"]["path"] == path and (answer["verified"] or answer["message"]), answer
        stopped.set_breakpoints(path, [])
    assert stopped.request("threads")["threads"]


def test_a_folder_of_the_mappings_that_is_not_here_is_said():
    async def work(session):
        given = {"program": "/nowhere.py", "pathMappings": [{"localRoot": "/not/here/", "remoteRoot": "/app"}]}
        await session._serve("launch", {"seq": 5, "type": "request", "command": "launch", "arguments": given})

    said, answer = told(work)
    assert said["body"]["category"] == "important" and "there is no folder /not/here here" in said["body"]["output"]
    assert not answer["success"] and "/nowhere.py" in answer["message"]


@pytest.mark.parametrize("wrong", [{"line": "x"}, {"line": -5}, {"line": 10**20}, {"line": 1.5}, {}, {"line": 1, "condition": 5},
                                   {"line": 1, "hitCondition": 5}, {"line": 1, "logMessage": 5}], ids=str)
def test_a_mistake_in_one_breakpoint_is_an_answer_about_that_one(stopped, wrong):
    line = line_of(PLAIN, "total = a + b")
    bad, good = stopped.request("setBreakpoints", source={"path": str(PLAIN)}, breakpoints=[wrong, {"line": line}])["breakpoints"]
    assert not bad["verified"] and bad["message"]
    assert good["verified"]


def test_continue_pressed_twice(session):
    session.start("real.py", args=["100000", "0.01"], at=lambda client: client.set_breakpoints(
        str(PROGRAMS / "real.py"), [line_of(PROGRAMS / "real.py", "s = h + scale")]))
    session.stopped(reason="breakpoint")
    session.set_breakpoints(str(PROGRAMS / "real.py"), [])
    for _ in range(3):
        session.go_on()
        assert session.request("threads", timeout=5)["threads"]
    session.request("pause", threadId=1)
    session.stopped(reason="pause")


def test_debugpys_line_0_of_a_file_it_found_empty_is_not_shown():
    from dvm_adapter.breakpoints import Breakpoint

    point = Breakpoint(1, "a.py", {"line": 7})
    point.python = {"verified": True, "line": 0}
    assert point.shown()["line"] == 7
    point.tensor = {"verified": False, "message": "stops once", "hint": True}  # what a forward line is told beside debugpy's word
    assert point.shown()["verified"] and point.shown()["message"] == "stops once"
    point.tensor = {"verified": False, "message": "not here"}
    assert "message" not in point.shown()


def told(work):
    """What a session that `work(session)` is done with has written: the whole messages."""
    written = bytearray()
    transport = SimpleNamespace(get_write_buffer_size=lambda: 0)
    writer = SimpleNamespace(write=written.extend, is_closing=lambda: False, close=lambda: None, transport=transport)

    async def run():
        session = Session(Channel("client", asyncio.StreamReader(), writer, Log()), Log())
        session.client_arguments = {"adapterID": "dvm"}
        await work(session)

    asyncio.run(run())
    stream, messages = io.BytesIO(bytes(written)), []
    while (message := read_message(stream)) is not None:
        messages.append(message)
    return messages


def test_nothing_is_told_after_the_end_of_the_program_but_answers():
    async def work(session):
        session.output.event({"category": "stdout", "output": "x" * (2 << 20)})  # is cut, which is said a second later
        session.python_events.all_over({})
        session.output.event({"category": "stdout", "output": "late"})
        session.output.say("late", "important")
        session.event("dvm/notice", {"text": "late"})
        session.output.finish()
        await session._serve("dvm/odd", {"seq": 5, "type": "request", "command": "dvm/odd"})

    messages = told(work)
    assert [message.get("event") or message.get("command") for message in messages] == ["output", "terminated", "dvm/odd"]
    assert "left out" in messages[0]["body"]["output"]


def test_no_event_comes_between_a_list_of_breakpoints_and_its_answer():
    """What a client has asked for itself is not told to it as news."""
    asked = 0
    for stored in (PROGRAMS.parent / "golden").iterdir():
        lines = stored.read_text(encoding="utf-8").splitlines()
        for line, after in zip(lines, lines[1:], strict=False):
            if line.startswith("→ set") and "Breakpoints " in line:
                asked += 1
                assert after.startswith(("← set", "✗ set")), (stored.name, line, after)
    assert asked > 10


def served(handler):
    """What is written for a request with that handler."""
    try:
        registry.request("test/odd", needs=registry.Needs.NOTHING)(handler)
        return told(lambda session: session._serve("test/odd", {"seq": 5, "type": "request", "command": "test/odd"}))
    finally:
        del registry.requests["test/odd"]


@pytest.mark.parametrize(("body", "written"), [({"x": object()}, False), ({"x": {1, 2}}, False), ({1j: 2}, False), ({"x": "\ud800"}, True),
                                            ({"x": float("nan")}, True), ({"x": "\u2028 é 漢"}, True), (None, True)])
def test_a_request_is_answered_once_also_where_its_answer_cannot_be_written(body, written):
    """A body that is no JSON must not leave the client waiting, nor a NaN or half a surrogate make the frame one that it drops."""
    async def handler(session, arguments):
        return body

    (answer,) = served(handler)
    assert (answer["request_seq"], answer["success"]) == (5, written)
    if not written:
        assert answer["message"].startswith("test/odd failed in the debug adapter: TypeError")


def test_what_is_asked_right_behind_a_disconnect_is_answered(session):
    session.start(PROGRAMS / "fake_debuggee.py", args=["1"], at=lambda client: client.set_breakpoints(
        str(PROGRAMS / "fake_debuggee.py"), [line_of(PROGRAMS / "fake_debuggee.py", "h = x * 2")]))
    session.stopped()
    for odd in ({"requestId": [1]}, {"requestId": {}}, {"requestId": "1"}):
        assert "whole number" in session.refusal("cancel", **odd)
    session.request("cancel", progressId="dvm-" + "9" * 5000)
    frame = session.stack(1)[0]["id"]
    asked = [session.begin("evaluate", expression="slow", frameId=frame, context="watch"),
             *(session.begin(command, terminateDebuggee=True) for command in ("disconnect", "disconnect")), session.begin("threads")]
    answers = [one.get(timeout=BOUND) for one in asked]
    assert answers[1]["success"] and all(answer["command"] for answer in answers)
    assert "adapter closed" not in str(answers)
    assert session.process.wait(BOUND) == 0


def test_a_request_still_at_work_when_the_client_disconnects_holds_nothing_back(session):
    session.start(PROGRAMS / "fake_debuggee.py", args=["1"], at=lambda client: client.set_breakpoints(
        str(PROGRAMS / "fake_debuggee.py"), [line_of(PROGRAMS / "fake_debuggee.py", "h = x * 2")]))
    session.stopped()
    frame = session.stack(1)[0]["id"]
    session.begin("evaluate", expression="slow", frameId=frame, context="watch")
    assert session.request("threads")["threads"]  # answered beside it
    assert session.request("disconnect", terminateDebuggee=True) == {}
    assert session.process.wait(BOUND) == 0
