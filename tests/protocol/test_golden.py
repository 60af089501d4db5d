"""Whole conversations, as stored texts: a change of behaviour is a diff to read."""
import golden
from harness import PROGRAMS, line_of

FAKE = PROGRAMS / "fake_debuggee.py"
LINE = line_of(FAKE, "h = x * 2")
PATHS = {str(PROGRAMS): "<programs>"}


def finish(session, name):
    session.run_out()
    session.close()
    golden.check(name, golden.conversation(session.log_file, PATHS))


def at_the_line(session, **client):
    """The frame of a stop on the tensor line."""
    session.start(FAKE, args=["1"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]), **client)
    session.stopped()
    return session.stack(1)[0]["id"]


def test_a_forward_stop_from_beginning_to_end(session):
    frame = at_the_line(session)
    x = session.variables(session.scopes(frame)["Tensors"]["variablesReference"])[0]
    children = {child["name"]: child for child in session.variables(x["variablesReference"])}
    session.variables(children["statistics"]["variablesReference"])
    session.variables(children["values"]["variablesReference"], filter="indexed", start=0, count=2)
    session.request("evaluate", expression="x", frameId=frame, context="hover")
    session.refusal("evaluate", expression="nothing", frameId=frame, context="watch")
    session.refusal("setVariable", variablesReference=x["variablesReference"], name="shape", value="1")
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "forward_stop")


def test_a_backward_stop_and_steps_of_the_vm(session):
    session.start(FAKE, args=["1"], at=lambda client: client.set_breakpoints(str(FAKE), [{"line": LINE, "mode": "backward"}]))
    session.event("breakpoint")
    session.stopped()
    top = session.stack(1, startFrame=0, levels=2)[0]
    session.request("disassemble", memoryReference=top["instructionPointerReference"], instructionOffset=-1, instructionCount=3)
    session.refusal("goto", threadId=1, targetId=1)
    session.request("next", threadId=1, granularity="instruction")
    session.stopped()
    session.stack(1, startFrame=0, levels=1)
    session.request("stepOut", threadId=1)
    session.stopped()
    session.stack(1, startFrame=0, levels=1)
    session.go_on()
    finish(session, "backward_stop")


def test_writes_and_data_breakpoints(session):
    frame = at_the_line(session, client_args={"supportsMemoryEvent": True, "supportsInvalidatedEvent": True})
    scope = session.scopes(frame)["Tensors"]["variablesReference"]
    x = session.variables(scope)[0]
    values = session.variables(x["variablesReference"])[5]
    row = session.variables(values["variablesReference"], filter="indexed", start=2, count=1)[0]
    session.request("setVariable", variablesReference=row["variablesReference"], name="1", value="7.5")
    session.request("setVariable", variablesReference=scope, name="x", value="x * 2")
    session.request("setExpression", frameId=frame, expression="x[0]", value="1")
    session.request("writeMemory", memoryReference=x["memoryReference"], offset=4, data="AAAAAA==")
    session.refusal("writeMemory", memoryReference=x["memoryReference"], offset=46, data="AAAAAA==")
    info = session.request("dataBreakpointInfo", name="x", variablesReference=scope)
    session.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "condition": "changed"}, {"dataId": "x"},
                                                       {"dataId": info["dataId"], "condition": "x >"}])
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "writes")


def test_what_is_asked_about_a_stop(session):
    frame = at_the_line(session)
    x = session.variables(session.scopes(frame)["Tensors"]["variablesReference"])[0]
    made_at = next(child for child in session.variables(x["variablesReference"]) if "valueLocationReference" in child)
    session.request("locations", locationReference=made_at["valueLocationReference"])
    session.refusal("locations", locationReference=5)
    session.request("completions", frameId=frame, text="x", column=2)
    session.request("loadedSources")
    session.refusal("exceptionInfo", threadId=1)
    session.request("threads")
    session.request("gotoTargets", source={"path": str(FAKE)}, line=LINE + 1)
    session.request("breakpointLocations", source={"path": str(FAKE)}, line=LINE, endLine=LINE + 1)
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "asked")


def test_values_in_other_forms(session):
    """In hexadecimal, for the clipboard, as bytes, and as a program's listing."""
    frame = at_the_line(session, client_args={"supportsVariableType": True})
    for form in ({}, {"format": {"hex": True}}):
        n = session.request("evaluate", expression="n", frameId=frame, context="watch", **form)
        values = session.variables(n["variablesReference"], **form)[5]
        session.variables(values["variablesReference"], filter="indexed", start=0, count=1, **form)
        session.request("evaluate", expression="n.sum()", frameId=frame, context="repl", **form)
    session.request("evaluate", expression="x", frameId=frame, context="clipboard")
    x = session.request("evaluate", expression="x", frameId=frame, context="watch")
    session.request("readMemory", memoryReference=x["memoryReference"], offset=40, count=16)
    listing = next(source for source in session.request("loadedSources")["sources"] if source.get("sourceReference"))
    session.request("source", sourceReference=listing["sourceReference"], source=listing)
    session.refusal("source", sourceReference=7)
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "forms")


def test_requests_of_our_own(session):
    frame = at_the_line(session)
    session.request("dvm/status")
    watch = session.request("dvm/watch", expression="h", what="stats", everyN=1)["watchId"]
    session.refusal("dvm/watch", expression="h", what="colours")
    session.request("dvm/tensor", expression="x", frameId=frame, maxBytes=8)
    session.request("dvm/programs")
    session.request("dvm/program", id=3, level="tensor")
    session.request("dvm/memory", step=1)
    session.request("dvm/memoryView", most=[4, 2], select=2)
    session.refusal("dvm/reloadListings")
    session.request("setExceptionBreakpoints", filters=[], filterOptions=[{"filterId": "range", "condition": "abs_max > 1e4"},
                                                                          {"filterId": "zeros", "condition": "share >"}])
    session.request("setExceptionBreakpoints", filters=[])
    session.refusal("dvm/unwatch", watchId=watch + 1)
    session.request("dvm/unwatch", watchId=watch)
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "own")


def test_a_program_that_is_started_anew(session):
    """Lines, functions and filters stay in force, the instruction of the first program's does not; the thread is another."""
    def configure(client):
        client.set_breakpoints(str(FAKE), [LINE])
        client.request("setFunctionBreakpoints", breakpoints=[{"name": "train"}])
        client.request("setExceptionBreakpoints", filters=["uncaught", "nan"])

    launch = {"program": str(FAKE), "args": ["3"], "cwd": str(PROGRAMS), "dvm": {"hotReload": "off"}}
    session.launch(configure, **launch)
    session.stopped(reason="function breakpoint")
    session.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": "0x180000001"}])
    session.refusal("restart", arguments={**launch, "program": "/nowhere.py"})
    session.refusal("restart", arguments={**launch, "dvm": {"device": "moon"}})
    session.request("restart", arguments={**launch, "args": ["1"]})
    session.stopped(reason="function breakpoint")
    session.go_on()
    session.stopped(reason="breakpoint")
    session.go_on()
    session.stopped(reason="exception")
    session.go_on()
    finish(session, "restart")


def test_stop_is_pressed_at_a_stop(session):
    at_the_line(session)
    session.request("terminate")
    finish(session, "stop_pressed")


def test_modules_and_a_numeric_filter_that_says_what_it_found(session):
    """Modules are Python's, of the frames that were looked at, and the programs after them."""
    session.start(FAKE, args=["1"], at=lambda client: client.request("setExceptionBreakpoints", filters=["nan"]))
    thread = session.stopped(reason="exception")["threadId"]
    session.request("exceptionInfo", threadId=thread)
    for _ in ("__main__", "runpy"):
        session.event("module")
    total = session.request("modules", startModule=0, moduleCount=1)["totalModules"]
    session.request("modules", startModule=total - 1)
    session.request("modules", startModule=total, moduleCount=5)
    session.go_on()
    finish(session, "found")


def test_progress_that_is_cancelled(session):
    frame = at_the_line(session, client_args={"supportsProgressReporting": True})
    waiting = session.begin("evaluate", expression="slow", frameId=frame, context="watch")
    session.request("cancel", progressId=session.event("progressStart")["body"]["progressId"])
    waiting.get(timeout=20)
    session.event("progressEnd")
    session.set_breakpoints(str(FAKE), [])
    session.go_on()
    finish(session, "cancelled")
