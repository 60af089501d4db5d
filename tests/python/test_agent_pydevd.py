"""The contract with pydevd: every internal that dvm_core.agent.python_stop leans on, exercised under a real debugpy.

When debugpy's version is raised, these tests say what has moved."""
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "adapter"))

from dvm_adapter.client import Client  # noqa: E402

from dvm_core.agent import debug, python_stop, tracing  # noqa: E402

TARGET = ROOT / "tests" / "data" / "agent" / "pydevd_target.py"


before_312 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="debugpy uses sys.monitoring: nothing is ever turned off")


def line_of(text):
    return next(n for n, line in enumerate(TARGET.read_text().splitlines(), 1) if text in line)


class Session(Client):
    def debug(self, what, *breakpoints, **more):
        points = [{"line": line} for line in breakpoints]
        self.launch(lambda client: client.request("setBreakpoints", source={"path": str(TARGET)}, breakpoints=points),
                    program=str(TARGET), args=[what], cwd=str(ROOT), python=[sys.executable], console="internalConsole",
                    redirectOutput=True, env={"PYTHONPATH": str(ROOT)}, **more)

    def stopped(self):
        body = self.event("stopped")["body"]
        return body, self.request("stackTrace", threadId=body["threadId"])["stackFrames"]

    def value(self, expression, frame):
        return self.request("evaluate", expression=expression, frameId=frame["id"], context="watch")["result"]

    def go_on(self, command="continue", thread=1):
        self.request(command, threadId=thread)

    def ended(self):
        self.event("terminated")
        return "".join(body["output"] for body in self.seen("output") if body.get("category") == "stdout")


@pytest.fixture
def session():
    environment = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONPATH": str(ROOT)}
    for name in ("DVM_AGENT", "DVM_TOKEN", "DVM_LAUNCHED"):
        environment.pop(name, None)
    client = Session([sys.executable, "-m", "debugpy.adapter"], env=environment)
    yield client
    client.close()


def test_suspended_in_place_the_users_frame_is_on_top(session):
    session.debug("stops")
    for i in range(5):
        body, frames = session.stopped()
        assert body["reason"] == "breakpoint"
        assert [f["name"] for f in frames[:3]] == ["stop", "stops", "<module>"]
        assert frames[0]["line"] == line_of("stops here")
        assert session.value("local", frames[0]) == str(i * 10)
        session.go_on()
    assert "attached True" in session.ended()


def test_evaluation_runs_on_the_stopped_thread_and_variables_can_be_set(session):
    session.debug("stops")
    _, frames = session.stopped()
    assert session.value("__import__('threading').current_thread().name", frames[0]) == "'MainThread'"
    assert session.value("python_stop.inside_debugger()", frames[0]) == "True"
    assert session.value("python_stop.is_suspended(threading.main_thread().ident)", frames[0]) == "True"
    assert session.value("python_stop.is_suspended(0)", frames[0]) == "False"
    scope = session.request("scopes", frameId=frames[0]["id"])["scopes"][0]
    session.request("setVariable", variablesReference=scope["variablesReference"], name="local", value="41")
    session.go_on("next")
    body, frames = session.stopped()
    assert (body["reason"], frames[0]["line"]) == ("step", line_of("the next line"))
    session.go_on("next")
    _, frames = session.stopped()
    assert session.value("after", frames[0]) == "42"


def test_a_step_over_and_out_go_on_in_python(session):
    session.debug("stops", justMyCode=False)
    session.stopped()
    session.go_on("next")
    assert session.stopped()[1][0]["line"] == line_of("the next line")
    session.go_on("stepOut")
    assert session.stopped()[1][0]["name"] == "stops"


def test_a_step_never_lands_in_our_files(session):
    session.debug("steps_over_ours", line_of("a function of the package"), justMyCode=False)
    session.stopped()
    session.go_on()
    _, frames = session.stopped()
    assert frames[0]["line"] == line_of("a function of the package")
    session.go_on("stepIn")
    _, frames = session.stopped()
    assert frames[0]["line"] == line_of("after it")


@pytest.mark.parametrize("just_my_code", [True, False])
def test_steps_out_of_a_function_that_we_called_come_back_to_the_user(session, just_my_code):
    session.debug("called_by_ours", line_of("called by the package"), justMyCode=just_my_code)
    _, frames = session.stopped()
    assert [f["name"].rpartition(".")[2] for f in frames[:3]] == ["callback", "called_by_ours", "<module>"]
    session.go_on("stepOut")
    _, frames = session.stopped()
    assert frames[0]["line"] in (line_of("# calls the package"), line_of("# after the call"))
    session.go_on()
    session.ended()


def test_stepping_over_a_return_into_us_comes_back_to_the_user(session):
    session.debug("called_by_ours", line_of("called by the package"))
    lines = []
    for _ in range(3):
        lines.append(session.stopped()[1][0]["line"])
        session.go_on("next")
    assert lines[1] == line_of("return seen")
    assert lines[2] in (line_of("# calls the package"), line_of("# after the call"))


def test_replies_are_not_held_back(session):
    session.debug("stops")
    _, frames = session.stopped()
    option = "__import__('pydevd').get_global_debugger().writer.sock.getsockopt(6, 1)"
    assert session.value(option, frames[0]) == "1"


def test_other_threads_stop_too(session):
    session.debug("with_another_thread")
    body, _ = session.stopped()
    assert body["allThreadsStopped"]
    other = next(t["id"] for t in session.request("threads")["threads"] if t["name"] == "other")
    frames = session.request("stackTrace", threadId=other)["stackFrames"]
    assert "spin" in [f["name"] for f in frames]
    session.go_on()
    assert "END" in session.ended()


def test_a_waiting_thread_joins_a_stop_without_one_of_its_own(session):
    session.debug("joins", line_of("a breakpoint here"))
    body, frames = session.stopped()
    assert frames[0]["name"] == "other"
    frames = session.request("stackTrace", threadId=1)["stackFrames"]
    assert frames[0]["name"] == "joins"
    assert session.value("arrived", frames[0]) == "[]"
    session.go_on(thread=body["threadId"])
    assert "joined [1]" in session.ended()
    assert len(list(session.seen("stopped"))) == 1


def test_a_thread_has_one_queue_whoever_asks_first(session):
    session.debug("asks_at_once")
    assert "queues 200" in session.ended()


def test_a_breakpoint_in_swapped_code_is_hit(session):
    session.debug("swapped", line_of("in the new code"))
    session.stopped()
    session.go_on()
    _, frames = session.stopped()
    assert (frames[0]["line"], session.value("x", frames[0])) == (line_of("in the new code"), "1")
    session.go_on()
    assert "value 2" in session.ended()


@before_312
def test_tracing_goes_off_in_all_threads_and_comes_back(session):
    session.debug("untraced")
    _, frames = session.stopped()
    assert frames[0]["line"] == line_of("stops here")
    assert session.value("threads_run()", frames[0]) == "False"
    # the other threads have come to stand with it
    line = line_of("in every thread")
    session.request("setBreakpoints", source={"path": str(TARGET)}, breakpoints=[{"line": line}])
    assert session.value("anything_set(python_stop.debugger())", frames[0]) == "True"
    session.go_on()
    found = set()
    while found != {"before", "meanwhile"}:
        body, frames = session.stopped()
        assert frames[0]["line"] == line
        found.add(session.value("name", frames[0]).strip("'"))
        if found == {"before", "meanwhile"}:
            session.request("setBreakpoints", source={"path": str(TARGET)}, breakpoints=[])
            session.value("done.append(1)", frames[0])
        session.go_on(thread=body["threadId"])
    said = [line for line in session.ended().splitlines() if line.startswith(("traced", "set"))]
    assert said == ["set False run True", "traced True ['before']", "traced False ['before']", "traced False ['before', 'meanwhile']",
                    "traced True ['before', 'meanwhile']"]


@before_312
def test_tracing_is_left_as_it_was_found(session):
    session.debug("leaves")
    assert "traced True hooked True False" in session.ended()


def test_tracing_that_could_not_come_back_is_not_turned_off(monkeypatch):
    switch = tracing.Tracing()
    switch.wanted = False
    monkeypatch.setattr(tracing, "APPLIES", True)
    monkeypatch.setattr(tracing, "debugger", lambda attached=True: types.SimpleNamespace(trace_dispatch=None, enable_tracing=None))
    with pytest.raises(python_stop.Incompatible, match="disable_tracing"):
        switch.look()
    assert switch.on


def test_without_debugpy_nothing_is_attached_and_nothing_is_done():
    assert not python_stop.attached()
    python_stop.prepare()
    python_stop.code_changed()
    assert not python_stop.inside_debugger() and not python_stop.is_suspended(1) and not python_stop.join(sys._getframe())
    with pytest.raises(python_stop.Incompatible, match="no Python debugger is attached"):
        python_stop.suspend_here(sys._getframe())


@before_312  # the parts of its tracing among them
def test_each_part_of_pydevd_that_is_missing_is_told_of():
    said = subprocess.run([sys.executable, str(TARGET.with_name("pydevd_missing.py"))], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONPATH": str(ROOT)})
    first, *others = said.stdout.splitlines() or [said.stderr]
    assert not others and first.startswith("parts ") and int(first.split()[1]) > 50, said


def test_a_missing_internal_is_named():
    with pytest.raises(python_stop.Incompatible, match=r"has no object.do_wait_suspend: stops in the tensor engine need debugpy 1\.8\.22"):
        python_stop._need(object(), "do_wait_suspend")


def test_a_debugpy_that_does_not_fit_listens_all_the_same_and_is_told_of(monkeypatch, capsys):
    monkeypatch.setattr(debug, "_debugpy", lambda: types.SimpleNamespace(listen=lambda address: ("127.0.0.1", 4711)))
    monkeypatch.setattr(debug, "listening", None)
    monkeypatch.setattr(python_stop, "debugger", lambda attached=True: object())
    assert debug.listen() == debug.listening == ("127.0.0.1", 4711)
    assert "has no object.on_configuration_done" in capsys.readouterr().err


def test_the_top_frame_is_the_users():
    frame = sys._getframe()
    assert python_stop.top_user_frame(frame) is frame
    assert python_stop.top_user_frame(None) is None
