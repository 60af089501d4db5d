"""Whole conversations about what else the adapter does: steps, points of all kinds, and what the real engine is asked for while it runs."""
import shutil

import golden
import pytest
from harness import PROGRAMS, line_of

FAKE = PROGRAMS / "fake_debuggee.py"
LINE = line_of(FAKE, "h = x * 2")


def finish(session, name, paths, *how):
    session.run_out()
    session.close()
    golden.check(name, golden.conversation(session.log_file, paths, *how))


def test_conditions_hit_counts_log_points_instructions_and_steps(session):
    points = [{"line": LINE, "condition": "x is not None", "hitCondition": ">= 2"}, {"line": LINE + 1, "logMessage": "h is {h}"},
              {"line": LINE, "hitCondition": "often"}, {"line": LINE, "condition": "x >"}, {"line": LINE, "column": 9}]

    def configure(client):
        client.set_breakpoints(str(FAKE), points[:2])
        client.set_breakpoints(str(FAKE), points[2:])
        client.set_breakpoints(str(FAKE), points[:2])
        client.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": "0x0000000380000004"},
                                                                 {"instructionReference": "nothing"}])

    session.start(FAKE, args=["2"], at=configure)
    thread = session.stopped()["threadId"]
    top = session.stack(thread, startFrame=0, levels=1)[0]
    session.request("stepInTargets", frameId=top["id"])
    for command, granularity in (("next", "instruction"), ("stepIn", "line"), ("next", "statement")):
        session.request(command, threadId=thread, granularity=granularity)
        session.stopped(reason="step")
        session.stack(thread, startFrame=0, levels=1)
    session.refusal("stepBack", threadId=thread)
    session.request("setInstructionBreakpoints", breakpoints=[])
    session.set_breakpoints(str(FAKE), [])
    session.go_on(thread)
    finish(session, "points_and_steps", {str(PROGRAMS): "<programs>"})


@pytest.fixture
def real(session, tmp_path):
    """A stop of the real engine in the second step of a program of three, which may be edited."""
    pytest.importorskip("dvm_core._core")
    session.program = str(shutil.copy(PROGRAMS / "real.py", tmp_path / "real.py"))
    session.start(session.program, args=["3", "0"], cwd=str(tmp_path), dvm={"hotReload": "manual"},
                  at=lambda client: client.set_breakpoints(session.program, [{"line": line_of(session.program, "s = h + scale"),
                                                                              "hitCondition": "2"}]))
    session.stopped()
    session.frame = session.stack(1, startFrame=0, levels=1)[0]["id"]
    return session


def test_tensors_pages_programs_memory_and_files(real, tmp_path):
    frame = {"frameId": real.frame}
    real.request("dvm/view", expression="h", rows=[0, 4], columns=[0, 2], most=[2, 2], texts=True, **frame)
    real.request("dvm/viewStats", expression="w", **frame)
    real.request("dvm/compare", a={"expression": "h", **frame}, b={"expression": "x", **frame}, tolerance=0.5)
    real.refusal("dvm/view", expression="h[9]", **frame)
    for level in ({"level": "graph"}, {"level": "areas", "area": 0}):
        real.request("dvm/program", id=1, **level)
    real.request("dvm/line", path=real.program, line=line_of(real.program, "y = s.log()"))
    real.request("dvm/breakInstruction", program=1, instruction=2)
    real.request("dvm/breakInstruction", program=1, instruction=2, on=False)
    real.request("dvm/memory", program=1)
    real.request("dvm/export", format="npy", expression="h", path=str(tmp_path / "h.npy"), **frame)
    real.refusal("dvm/export", format="gif", path=str(tmp_path / "h.gif"))
    real.set_breakpoints(real.program, [])
    real.go_on()
    finish(real, "pages_and_files", {str(tmp_path): "<folder>"}, "continue", ("breakpoint",))


def test_edits_while_it_stands(real, tmp_path):
    def saved(old, new):
        text = open(real.program).read()
        assert old in text
        with open(real.program, "w") as file:
            file.write(text.replace(old, new))
        return real.request("dvm/reload", path=real.program)["outcome"]

    assert saved("s.log() / 2", "s.log( / 2") == "refused"
    assert saved("s.log( / 2", "s.log() / 4") == "applied"
    real.request("dvm/undoReload")
    real.set_breakpoints(real.program, [])
    real.go_on()
    finish(real, "edits", {str(tmp_path): "<folder>"}, "continue", ("breakpoint", "invalidated", "dvm/reload"))


def test_a_nan_tile_steps_another_device_and_memory(session, tmp_path):
    pytest.importorskip("dvm_core._core")
    program = str(shutil.copy(PROGRAMS / "real.py", tmp_path / "real.py"))
    session.start(program, args=["3", "0", "-9"], cwd=str(tmp_path), dvm={"hotReload": "off"},
                  at=lambda client: client.request("setExceptionBreakpoints", filters=["nan"]))
    thread = session.stopped()["threadId"]
    session.request("exceptionInfo", threadId=thread)
    session.request("setExceptionBreakpoints", filters=[])
    session.request("dvm/device", device="npu-sim:910b")
    session.set_breakpoints(program, [line_of(program, "s = h + scale")])
    session.go_on(thread)
    session.stopped()
    for _ in range(2):
        session.request("stepIn", threadId=thread, granularity="instruction")
        session.stopped(reason="step")
        session.stack(thread, startFrame=0, levels=2)
    session.request("dvm/status")
    session.request("dvm/memoryView", most=[4, 2])
    session.set_breakpoints(program, [])
    session.go_on(thread)
    finish(session, "nan_tiles_device_memory", {str(tmp_path): "<folder>"}, "continue", ("breakpoint", "dvm/memory"))


RAISES = """import time

def refuse(value):
    raise ValueError(value)

try:
    refuse("two")
except ValueError:
    pass
while True:
    time.sleep(0.01)
"""


def test_python_exceptions_and_a_pause(session, tmp_path):
    (script := tmp_path / "raises.py").write_text(RAISES)
    session.start(script, cwd=str(tmp_path), at=lambda client: client.request("setExceptionBreakpoints", filters=["raised"]))
    thread = session.stopped()["threadId"]
    session.request("exceptionInfo", threadId=thread)
    session.stack(thread, startFrame=0, levels=1)
    session.request("setExceptionBreakpoints", filters=["uncaught"])
    session.go_on(thread)
    session.request("pause", threadId=thread)
    session.stopped()
    session.request("terminate")
    finish(session, "exceptions_and_pause", {str(tmp_path): "<folder>"}, "terminate")
