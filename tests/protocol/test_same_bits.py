"""A debugger never changes a bit: the losses of the digits example, alone, under a debugger, watched, and stopped and gone on."""
import shutil
import subprocess
import sys

import pytest
from harness import PROGRAMS, ROOT, environment, line_of

STEPS = 12
EXAMPLE = ROOT / "examples" / "digits"

pytest.importorskip("mindspore")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits it's & größer")
    for name in ("model.py", "train.py"):
        shutil.copy(EXAMPLE / name, folder / name)
    return folder


def arguments(losses):
    return ["--steps", str(STEPS), "--losses", str(losses)]


@pytest.fixture(scope="module")
def alone(example):
    losses = example / "alone.txt"
    subprocess.run([sys.executable, str(example / "train.py"), *arguments(losses)], check=True, cwd=example, env=environment(),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=200)
    found = losses.read_text().split()
    assert len(found) == STEPS and len(set(found)) > STEPS // 2
    return found


def run(session, example, name, at=lambda client: None, during=lambda session: None):
    losses = example / f"{name}.txt"
    session.launch(at, program=str(example / "train.py"), args=arguments(losses), cwd=str(example), python=[sys.executable],
                   dvm={"hotReload": "off"})
    during(session)
    session.event("terminated", timeout=200)
    return losses.read_text().split()


def test_losses_are_those_of_a_run_alone_with_nothing_set(adapter, example, alone):
    assert run(adapter(), example, "attached") == alone


def test_losses_are_those_of_a_run_alone_watched_and_stopped(adapter, example, alone):
    """Watches of results, inputs, parameters and expressions; stops forward, backward and by numbers."""
    model = example / "model.py"

    def at(client):
        client.set_breakpoints(str(model), [
            {"line": line_of(model, "scores = scores /"), "hitCondition": "<= 3"},
            {"line": line_of(model, "ops.gelu(h"), "mode": "backward", "hitCondition": "<= 2"}])
        client.request("setExceptionBreakpoints", filters=["nan", "inf"])
        client.request("dvm/watch", expression="scores", path=str(model), line=line_of(model, "scores = q"), what="stats", everyN=1)
        client.request("dvm/watch", expression="mixed", path=str(model), line=line_of(model, "mixed = weights"), what="values", everyN=2)
        for text in ("images", "self.positions", "model.classify.weight.std()", "abs(scores / q.max()).mean()"):
            client.request("dvm/watch", expression=text, what="stats", everyN=3)

    def during(session):
        names = []
        for _ in range(5):
            stop = session.event("stopped", timeout=100)["body"]
            frame = session.stack(stop["threadId"])[0]
            names.append(frame["name"])
            tensors = session.variables(session.scopes(frame["id"])["Tensors"]["variablesReference"])
            assert tensors
            session.request("continue", threadId=stop["threadId"])
        assert sum(name.startswith("backward of") for name in names) == 2, names
        seen = set()
        while len(seen) < 6:
            seen.add(session.event("dvm/snapshot", timeout=100)["body"]["name"])

    assert run(adapter(), example, "watched", at, during) == alone


def test_without_vector_extensions(adapter):
    """Levels of SIMD may differ from each other (fused multiply-add in products); attached and alone may not."""
    program, steps = PROGRAMS / "attachable.py", ["20", "0"]
    said = subprocess.run([sys.executable, str(program), *steps], check=True, timeout=200, env={**environment(), "DVM_SIMD": "baseline"},
                          capture_output=True, text=True).stdout
    session = adapter()
    line = {"line": line_of(program, "s = h + 1.5"), "mode": "forward", "hitCondition": "4"}
    session.start(program, args=steps, env={"DVM_SIMD": "baseline"}, at=lambda client: client.set_breakpoints(str(program), [line]))
    session.stopped(reason="breakpoint")
    session.request("dvm/watch", expression="h", what="values")
    session.request("dvm/watch", expression="w.std()", what="stats")
    session.go_on()
    session.run_out()
    losses = [[line.split()[2] for line in text.splitlines() if line.startswith("step")] for text in (said, session.printed())]
    assert losses[0] == losses[1] and len(set(losses[0])) == 20
