"""The whole of it: our adapter, debugpy and the agent, over DAP, with a real captured training loop."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agent_harness import ROOT, line_of

sys.path.insert(0, str(ROOT / "adapter"))

from dvm_adapter.client import Client  # noqa: E402

PROGRAM = ROOT / "tests" / "data" / "agent" / "train_small.py"


def environment():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DVM_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(ROOT / "adapter"), str(ROOT)]), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


class Session(Client):
    path: Path

    def line(self, text):
        return line_of(text, self.path)

    def stopped(self):
        body = self.event("stopped")["body"]
        self.thread = body["threadId"]
        self.frames = self.stack(self.thread)
        return body

    def go(self, command="continue"):
        self.request(command, threadId=self.thread)

    def tensors(self):
        reference = self.scopes(self.frames[0]["id"])["Tensors"]["variablesReference"]
        return {v["name"]: v["value"] for v in self.variables(reference)}

    def top(self):
        return self.frames[0]["name"], self.frames[0]["line"]

    def break_on_instruction(self, *numbers):
        programs = self.request("dvm/programs")["programs"]
        number = next(p["id"] for p in programs if p["instructions"] == 5)
        points = [{"instructionReference": f"0x{(number << 32) + (1 << 31) + n:016x}"} for n in numbers]
        return self.request("setInstructionBreakpoints", breakpoints=points)["breakpoints"]


@pytest.fixture
def session(tmp_path):
    client = Session([sys.executable, "-m", "dvm_adapter"], env=environment())
    client.path = tmp_path / "train small ü.py"
    shutil.copy(PROGRAM, client.path)
    yield client
    client.close()


def launch(session, *lines, **more):
    session.launch(lambda client: client.set_breakpoints(str(session.path), list(lines)), program=str(session.path),
                   python=[sys.executable], cwd=str(session.path.parent), **more)


def test_a_line_in_a_captured_function(session):
    launch(session, line_of("y = s /", PROGRAM))
    assert session.stopped()["reason"] == "breakpoint"
    assert session.top() == ("y = s / (s.max() + 1)", session.line("y = s /"))
    assert [f["name"] for f in session.frames[1:4]] == ["── Python ──", "forward", "main"]
    told = session.tensors()
    assert told["s"].startswith("f32[8,4]  min 1.5  max 3.5") and {"x", "w", "h"} <= told.keys() and "y" not in told
    value = session.request("evaluate", expression="s.max() - 1", frameId=session.frames[0]["id"], context="watch")
    assert value["result"] == "2.5"
    session.go("next")
    session.stopped()
    assert session.top()[1] == session.line("return y") and "y" in session.tensors()
    session.set_breakpoints(str(session.path), [])
    session.go("stepOut")
    session.stopped()
    assert session.frames[0]["name"] == "main"


def test_steps_of_the_tensor_program_hand_over_to_python(session):
    launch(session, line_of("time.sleep", PROGRAM))
    session.stopped()
    session.set_breakpoints(str(session.path), [])
    assert session.break_on_instruction(3)[0]["verified"]
    session.go()
    assert session.stopped()["reason"] == "instruction breakpoint"
    assert session.frames[0]["instructionPointerReference"].endswith("80000003")
    assert session.tensors()["(s.max())"] == "f32[]  3.5"
    session.break_on_instruction()
    session.go("stepIn")
    assert session.stopped()["reason"] == "step" and session.frames[0]["instructionPointerReference"].endswith("80000004")
    assert session.tensors()["(s.max() + 1)"] == "f32[]  4.5"
    session.go("next")
    session.stopped()
    assert session.frames[0]["name"] == "main"
    session.go()
    session.event("dvm/step")


def test_a_save_is_answered_and_in_force(session):
    launch(session)
    session.event("dvm/step", where=lambda body: body["step"] > 10)
    text = session.path.read_text()
    session.path.write_text(text.replace("h + 1.5", "h + 2.5"))
    told = session.event("dvm/reload")["body"]
    assert (told["outcome"], told["instructionsPatched"], told["instructionsTotal"]) == ("applied", 1, 5)
    session.path.write_text(text.replace("h + 1.5", "h + missing"))
    told = session.event("dvm/reload")["body"]
    assert told["outcome"] == "refused" and "name 'missing' is not defined" in told["reasons"][0]
    assert session.request("dvm/undoReload")["outcome"] == "applied"


def test_a_breakpoint_in_the_programs_own_text(session):
    shutil.copy(PROGRAM.with_name("own_breakpoint.py"), session.path)
    launch(session)
    session.stopped()
    assert session.top() == ("s = h + 1  # stops here", session.line("# stops here"))
    assert session.tensors()["h"] == "f32[2,3]  min 2  max 2  mean 2  std 0"
    session.go()
    session.event("terminated")
    assert "18.0" in "".join(body["output"] for body in session.seen("output"))


def test_attach_to_a_listening_program(session):
    process = subprocess.Popen([sys.executable, str(session.path), "listen"], env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline().split()[1])
        session.request("initialize", adapterID="dvm", clientID="test", linesStartAt1=True, columnsStartAt1=True, pathFormat="path")
        attached = session.begin("attach", connect={"host": "127.0.0.1", "port": port})
        session.event("initialized")
        session.set_breakpoints(str(session.path), [session.line("y = s /")])
        session.request("configurationDone")
        assert attached.get(timeout=20)["success"]
        assert session.stopped()["reason"] == "breakpoint"
        assert session.top()[0] == "y = s / (s.max() + 1)" and "s" in session.tensors()
        session.path.write_text(session.path.read_text().replace("h + 1.5", "h + 2.5"))
        told = session.request("dvm/reload", path=str(session.path))
        assert told["outcome"] == "applied", told
    finally:
        process.kill()
        process.wait()
