"""Inside a function that ms.jit compiles for the virtual machine: stops at its lines forward and backward, and watches."""
import importlib.metadata
import shutil

import pytest
import some
from harness import BOUND, PROGRAMS, line_of

pytest.importorskip("dvm_core._core")
try:
    version = importlib.metadata.version("mindspore")
except importlib.metadata.PackageNotFoundError:
    version = ""
if not version.startswith(("2.9.", "2.10.")):
    pytest.skip("back ends of others are there since MindSpore 2.9", allow_module_level=True)
if shutil.which("g++") is None:
    pytest.skip("no C++ compiler", allow_module_level=True)


def test_a_compiled_function_is_stopped_in_and_watched(session):
    program = PROGRAMS / "mindspore_compiled.py"
    path, line = str(program), line_of(program, "scores = ops.tanh")
    session.start(program, args=["100000", "0.01"], at=lambda client: client.set_breakpoints(path, [line]))
    body = session.event("stopped", timeout=BOUND)["body"]  # MindSpore is loaded, and the plug-in may be compiled first
    assert body["reason"] == "breakpoint" and body["hitBreakpointIds"] == [1]
    frames = session.stack(1)
    assert frames[0]["line"] == line
    assert next(frame for frame in frames if frame["name"] == "train")["line"] == line_of(program, "loss, gradients =")
    assert session.request("evaluate", expression="h[1, 2]", frameId=frames[0]["id"], context="watch")["result"]

    session.set_breakpoints(path, [{"line": line, "mode": "backward"}])
    session.go_on()
    session.stopped(reason="breakpoint")
    frames = session.stack(1)
    assert frames[0]["line"] == line and frames[0]["name"] == some.containing("backward")

    session.set_breakpoints(path, [])
    assert session.request("dvm/watch", expression="scores", what="stats")["matched"]
    session.go_on()
    assert session.event("dvm/snapshot")["body"]["name"] == "scores"
