"""Python runs untraced while nothing needs tracing, and everything that needs it still stops. With the real debugpy and tensor engine."""
import queue
import subprocess
import sys
import time

import pytest
from harness import PROGRAMS, RequestFailed, environment, line_of

pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="debugpy uses sys.monitoring: nothing is ever turned off")

PROGRAM = PROGRAMS / "traced.py"
HOT = line_of(PROGRAM, "every beat")


def value(session, expression):
    """Evaluated in the running program, on none of its threads; before its names exist, nothing."""
    inside = f"eval({expression!r}, __import__('sys').modules['__main__'].__dict__)"
    try:
        return session.request("evaluate", expression=inside, context="repl")["result"]
    except RequestFailed:
        return ""


def wait(session, expression, seconds=15):
    end = time.monotonic() + seconds
    while value(session, expression) != "True":
        assert time.monotonic() < end, f"{expression} does not become true"
        time.sleep(0.02)


def runs_untraced(session):
    wait(session, "not traced")
    before = value(session, "beats")
    wait(session, f"beats > {before} and not traced")


def running(session, what, **more):
    session.start(PROGRAM, args=[what], **more)
    runs_untraced(session)


def test_untraced_with_nothing_set_traced_with_a_breakpoint_and_untraced_without(session):
    running(session, "hot")
    assert value(session, "__import__('threading').gettrace() is None") == "True"
    for _ in range(2):
        session.set_breakpoints(str(PROGRAM), [HOT])
        session.stopped(reason="breakpoint")
        assert session.stack(1)[0]["line"] == HOT
        session.go_on()
        session.stopped(reason="breakpoint")
        session.set_breakpoints(str(PROGRAM), [])
        session.go_on()
        runs_untraced(session)


@pytest.mark.parametrize(("what", "text"), [("sleeps", "after the sleep"), ("captured", "in the captured function")])
def test_a_breakpoint_set_while_the_program_sleeps_or_captures_is_hit(session, what, text):
    line = line_of(PROGRAM, text)
    running(session, what)
    session.set_breakpoints(str(PROGRAM), [line])
    session.stopped(reason="breakpoint")
    frames = session.stack(1)
    assert frames[0]["line"] == line
    assert (frames[0]["name"] == "s = h + 1  # in the captured function") == (what == "captured")


def test_steps_after_a_stop_and_a_condition(session):
    running(session, "hot")
    now = int(value(session, "beats"))
    session.set_breakpoints(str(PROGRAM), [{"line": HOT, "condition": f"beats > {now + 1000} and beats % 10 == 0"}])
    session.stopped(reason="breakpoint")
    assert int(value(session, "beats")) % 10 == 0
    session.set_breakpoints(str(PROGRAM), [])
    time.sleep(0.5)  # some looks of the agent: a stopped program stays traced
    for command, line in (("next", "if pause:"), ("stepOut", "        beat()"), ("next", "while not done"), ("next", "        beat()"),
                          ("stepIn", "traced = sys")):
        session.request(command, threadId=1)
        session.stopped(reason="step")
        assert session.stack(1)[0]["line"] == line_of(PROGRAM, line), command
    session.go_on()
    runs_untraced(session)


def test_pause_and_steps_from_it(session):
    running(session, "hot")
    for _ in range(2):
        session.request("pause", threadId=1)
        session.stopped(reason="pause")
        session.request("next", threadId=1)
        session.stopped(reason="step")
        session.go_on()
        runs_untraced(session)


def test_function_breakpoints(session):
    running(session, "hot")
    session.request("setFunctionBreakpoints", breakpoints=[{"name": "beat"}])
    session.stopped()
    assert session.stack(1)[0]["name"] == "beat"
    session.request("setFunctionBreakpoints", breakpoints=[])
    session.go_on()
    runs_untraced(session)


def test_a_name_in_capitals_is_an_op_and_needs_no_tracing(session):
    running(session, "captured")
    wanted = [{"name": "MUL", "hitCondition": "2"}, {"name": "beat", "condition": "0"}, {"name": "MULL"},
              {"name": "ADD", "condition": "1 +"}]
    answers = session.request("setFunctionBreakpoints", breakpoints=wanted)["breakpoints"]
    assert len({answer["id"] for answer in answers}) == 4
    assert not answers[2]["verified"] and answers[2]["message"].startswith("there is no op 'MULL'; do you mean MUL")
    assert answers[3]["reason"] == "failed" and "is not an expression" in answers[3]["message"]
    body = session.stopped(reason="function breakpoint", description="Paused on an op")
    assert body["hitBreakpointIds"] == [answers[0]["id"]]
    assert session.stack(1)[0]["line"] == line_of(PROGRAM, "h = x * scale")
    (again,) = session.request("setFunctionBreakpoints", breakpoints=[{"name": "MUL", "hitCondition": "> 1000000"}])["breakpoints"]
    assert again["id"] == answers[0]["id"] and again["verified"]
    session.go_on()
    runs_untraced(session)


def test_stop_on_entry_steps_over_the_start_of_the_tensor_engine(session):
    session.start(PROGRAM, args=["hot"], stopOnEntry=True)
    session.stopped(reason="entry")
    while "dvm.jit" not in (line := PROGRAM.read_text().splitlines()[session.stack(1)[0]["line"] - 1]):
        session.request("next", threadId=1)
        session.stopped(reason="step")
    assert line == "@dvm.jit"
    time.sleep(0.5)
    session.request("next", threadId=1)
    session.stopped(reason="step")
    session.go_on()
    runs_untraced(session)


@pytest.mark.parametrize(("what", "line"), [("raises", "ends the program"), ("raises_in_thread", "ends the thread")])
def test_an_uncaught_exception_stops_once_where_it_was_raised(session, what, line):
    session.start(PROGRAM, args=[what], at=lambda client: client.request("setExceptionBreakpoints", filters=["uncaught"]))
    thread = session.stopped(reason="exception")["threadId"]
    assert "traced False" in session.printed()
    assert session.stack(thread)[0]["line"] == line_of(PROGRAM, line)
    assert "in a thread" in (text := session.request("exceptionInfo", threadId=thread)["description"]) or text == "on purpose"
    session.go_on(thread)
    session.run_out()
    assert len(list(session.seen("stopped"))) == 1
    assert "Error" in "".join(body["output"] for body in session.seen("output") if body.get("category") == "stderr")


def test_an_uncaught_exception_stops_once_with_tracing_on(session):
    def configure(client):
        client.request("setExceptionBreakpoints", filters=["uncaught"])
        client.set_breakpoints(str(PROGRAM), [line_of(PROGRAM, "after the sleep")])

    session.start(PROGRAM, args=["raises"], at=configure)
    wait(session, "beats > 5 and traced")
    session.set_breakpoints(str(PROGRAM), [])  # turned off, so that the program goes on to raise
    session.stopped(reason="exception")
    session.go_on()
    session.run_out()
    assert len(list(session.seen("stopped"))) == 1


def test_a_filter_for_raised_exceptions_needs_tracing(session):
    running(session, "hot")
    session.request("setExceptionBreakpoints", filters=["raised"])
    wait(session, "traced")
    session.request("setExceptionBreakpoints", filters=["uncaught"])
    runs_untraced(session)


def test_the_program_may_stop_itself(session):
    session.start(PROGRAM, args=["stops_itself"])
    for _ in range(2):
        session.stopped()
        assert session.stack(1)[0]["line"] == line_of(PROGRAM, "after the call of breakpoint")
        session.go_on()
    session.run_out()
    assert session.printed().count("traced False") == 2


def test_backward_stops_work_untraced(session):
    line = line_of(PROGRAM, "in the captured function")
    running(session, "captured")
    listed = session.request("dvm/programs")["programs"][0]
    address = "0x" + format((listed["id"] << 32) + (1 << 31), "016x")
    session.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": address}])
    for _ in range(2):
        thread = session.stopped(reason="instruction breakpoint")["threadId"]
        assert session.stack(thread)[0]["instructionPointerReference"] == address
        session.go_on(thread)
    session.stopped()
    session.request("setInstructionBreakpoints", breakpoints=[])
    for _ in range(listed["instructions"] + 1):  # to the end of the launch, and on in Python
        session.request("next", threadId=thread)
        session.stopped(reason="step")
    assert line and session.stack(thread)[0]["line"] != line
    session.go_on(thread)
    runs_untraced(session)


def test_threads_follow(session):
    running(session, "threads")
    wait(session, "len(threads_traced) >= 2 and not any(threads_traced.values())")
    line = line_of(PROGRAM, "in a thread")
    session.set_breakpoints(str(PROGRAM), [line])
    thread = session.stopped(reason="breakpoint")["threadId"]
    assert thread != 1 and session.stack(thread)[0]["line"] == line
    # the other threads stand, too
    before = value(session, "beats")
    time.sleep(0.2)
    assert value(session, "beats") == before
    session.set_breakpoints(str(PROGRAM), [])
    session.go_on(thread)
    wait(session, "len(threads_traced) == 4 and not any(threads_traced.values()) and not traced", 20)


def test_a_forked_child_starts_traced_and_goes_untraced_by_itself(adapter):
    root = adapter()
    configurations = queue.Queue()

    def reverse(request):
        configurations.put(request["arguments"]["configuration"])
        return {}

    root.reverse = reverse
    root.start(PROGRAM, args=["forks"], subProcess=True, dvm={"hotReload": "off"})
    child = adapter()
    child.attach(PROGRAM, line_of(PROGRAM, "in the child"), **configurations.get(timeout=30))
    assert "traced False" in root.printed()
    child.stopped(reason="breakpoint")
    child.set_breakpoints(str(PROGRAM), [])
    child.go_on()
    runs_untraced(child)
    child.set_breakpoints(str(PROGRAM), [HOT])
    child.stopped(reason="breakpoint")


def test_a_program_that_listens_is_traced_only_for_a_client_that_needs_it(adapter):
    process = subprocess.Popen([sys.executable, PROGRAM, "listens"], env=environment(), stdout=subprocess.PIPE, text=True)

    def runs_on_untraced():
        began = time.monotonic()
        while process.stdout.readline() != "traced False\n" or time.monotonic() < began + 1:  # what it said before is read by then
            assert time.monotonic() < began + 15

    def attach(*lines):
        session = adapter()
        session.attach(PROGRAM, *lines, connect={"host": "127.0.0.1", "port": port})
        return session

    try:
        port = int(process.stdout.readline().split()[1])
        runs_on_untraced()
        session = attach()
        runs_on_untraced()
        session.set_breakpoints(str(PROGRAM), [HOT])
        session.stopped(reason="breakpoint")
        session.close(terminate=False)  # while it stands
        runs_on_untraced()
        session = attach(HOT)
        session.stopped(reason="breakpoint")
        session.close(terminate=False)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
