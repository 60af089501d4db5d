"""A debugger never changes a bit: the losses of the digits example, alone, under a debugger, watched, and stopped and gone on."""
import shutil
import subprocess
import sys

import pytest
from harness import ROOT, environment, line_of

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


def test_nothing_set(adapter, example, alone):
    assert run(adapter(), example, "attached") == alone


def test_watched(adapter, example, alone):
    model = example / "model.py"

    def watch(session):
        line = line_of(model, "scores = q")
        session.request("dvm/watch", expression="scores", path=str(model), line=line, what="stats", everyN=1)
        session.request("dvm/watch", expression="mixed", path=str(model), line=line_of(model, "mixed = weights"), what="values", everyN=2)
        for text in ("images", "self.positions", "model.classify.weight.std()", "abs(scores / q.max()).mean()"):
            session.request("dvm/watch", expression=text, what="stats", everyN=3)
        seen = set()
        while len(seen) < 6:
            seen.add(session.event("dvm/snapshot", timeout=100)["body"]["name"])

    assert run(adapter(), example, "watched", during=watch) == alone


def test_stopped_forward_backward_and_at_an_instruction(adapter, example, alone):
    model = example / "model.py"

    def at(client):
        client.set_breakpoints(str(model), [
            {"line": line_of(model, "scores = scores /"), "hitCondition": "<= 3"},
            {"line": line_of(model, "ops.gelu(h"), "mode": "backward", "hitCondition": "<= 2"}])
        client.request("setExceptionBreakpoints", filters=["nan", "inf"])

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

    assert run(adapter(), example, "stopped", at, during) == alone


def test_without_vector_extensions(adapter, example):
    """Levels of SIMD may differ from each other (fused multiply-add in products); attached and alone may not."""
    losses = {}
    for name in ("alone", "attached"):
        file = example / f"{name}-baseline.txt"
        if name == "alone":
            subprocess.run([sys.executable, str(example / "train.py"), *arguments(file)], check=True, cwd=example, timeout=200,
                           env={**environment(), "DVM_SIMD": "baseline"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            session = adapter()
            session.launch(program=str(example / "train.py"), args=arguments(file), cwd=str(example), python=[sys.executable],
                           env={"DVM_SIMD": "baseline"})
            session.event("terminated", timeout=200)
        losses[name] = file.read_text().split()
    assert losses["attached"] == losses["alone"] and len(losses["alone"]) == STEPS
