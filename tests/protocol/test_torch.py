"""Inside a model compiled by torch.compile(backend="dvm"): stops at its lines, names, watches and reloads, through the real protocol."""
import importlib.metadata
import shutil
import time

import pytest
import some
from harness import BOUND, PROGRAMS, line_of

pytest.importorskip("dvm_core._core")
try:
    version = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    version = ""
if not version.startswith("2.13."):
    pytest.skip("the front end is for PyTorch 2.13", allow_module_level=True)


def losses(session):
    lines = session.printed().split("\n")[:-1]
    return [float(line.split()[3]) for line in lines if line.startswith("step")]


def wait_for(condition):
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def settled(session):
    """The loss of the steps made from now on."""
    count = len(losses(session))
    wait_for(lambda: len(losses(session)) > count + 3)
    return losses(session)[-1]


def test_a_compiled_model_is_stopped_in_looked_at_watched_and_edited(session, tmp_path):
    program = shutil.copy(PROGRAMS / "torch_model.py", tmp_path / "torch_model.py")  # to edit
    path, line = str(program), line_of(program, "return torch.tanh(h)")
    session.start(program, args=["100000", "0.01"], dvm={"hotReload": "off"}, at=lambda client: client.set_breakpoints(path, [line]))
    body = session.event("stopped", timeout=BOUND)["body"]  # PyTorch is loaded and compiles first
    assert body["reason"] == "breakpoint" and body["hitBreakpointIds"] == [1]
    frames = session.stack(1)
    assert frames[0]["line"] == line and frames[0]["name"] == "return torch.tanh(h)"
    assert [frame["name"] for frame in frames if frame["name"] in ("train", "<module>")] == ["train", "<module>"]
    assert next(frame for frame in frames if frame["name"] == "train")["line"] == line_of(program, "loss = call(x)")
    assert session.request("evaluate", expression="h[1, 2]", frameId=frames[0]["id"], context="watch")["result"]

    session.set_breakpoints(path, [{"line": line, "mode": "backward"}])
    session.go_on()
    session.stopped(reason="breakpoint")
    frames = session.stack(1)
    assert frames[0]["line"] == line and frames[0]["name"] == some.containing("backward")
    assert next(frame for frame in frames if frame["name"] == "train")["line"] == line_of(program, "loss.backward()")

    session.set_breakpoints(path, [])
    matched = session.request("dvm/watch", expression="h", path=path, line=line_of(program, "h = self.lin"), what="stats")["matched"]
    assert len(matched) == 2  # blocks
    for name in ("x", "(h - x.mean()).std()"):  # what the program reads
        session.request("dvm/watch", expression=name, what="stats")
    session.go_on()
    seen = set()
    while len(seen) < 3:
        seen.add(session.event("dvm/snapshot")["body"]["name"])
    old = settled(session)

    text = program.read_text()
    program.write_text(text.replace("* 2.0", "* missing"))
    answer = session.request("dvm/reload", path=path)
    (reason,) = answer["reasons"]
    assert answer["outcome"] == "refused" and f"torch_model.py:{line - 1}: NameError: name 'missing' is not defined" in reason
    assert reason.endswith("was made with the old code") and settled(session) == old
    program.write_text(text.replace("* 2.0", "* 3.0"))
    assert session.request("dvm/reload", path=path)["outcome"] == "applied"
    assert settled(session) != old
