"""The reload thread outlives what a save does to it, and a swap that is interrupted leaves nothing half done."""
from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import threading

import pytest
from dvm_wire.saves import read
from reload_kit import Answers, Calls, program  # noqa: F401 - a fixture

from dvm_core.hotreload import Host, Reloader, SourceBook, names
from dvm_core.hotreload.apply import Assignment, Patch

# ruff: noqa: F811 - fixtures are named as what they are imported as
TEXT = "RATE = 1\n\n\ndef scale(x):\n    return x * RATE\n"


def test_a_new_import_that_ends_the_program_is_refused_and_the_next_save_answered(program, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ends_at_import.py").write_text("import sys\nsys.exit(3)\n")
    p = program(TEXT)
    answer = p.call_until(p.save("import ends_at_import\n" + TEXT), lambda: None)
    assert answer.outcome == "refused"
    assert p.call_until(p.save(TEXT.replace("x * RATE", "x * RATE * 2")), lambda: p.module.scale(1)).outcome == "applied"


def test_a_new_import_that_takes_its_time_holds_up_no_other_save(program, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(names, "IMPORT_WAIT", 0.05)
    (tmp_path / "takes_its_time.py").write_text("""import gc, sys, threading
collects = gc.isenabled()
sys.go = threading.Event()
sys.go.wait(20)
ready = 7
""")
    p = program(TEXT)
    new = "import takes_its_time\n" + TEXT.replace("x * RATE", "x * RATE * takes_its_time.ready")
    answer = p.call_until(p.save(new), lambda: None)
    assert answer.outcome == "refused" and answer.reasons == [
        "line 1: `import takes_its_time` is still running after 0.05 s: save again when it has ended"]
    assert p.call_until(p.save(TEXT.replace("x * RATE", "x * RATE * 2")), lambda: p.module.scale(1)).outcome == "applied"
    sys.go.set()
    del sys.go
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert p.call_until(p.save(new), lambda: p.module.scale(1)).outcome == "applied" and p.module.scale(2) == 14
    assert sys.modules.pop("takes_its_time").collects and gc.isenabled()


def test_an_answer_that_nobody_can_be_given_leaves_the_next_save_its_own(program):
    def unheard(answer):
        raise BrokenPipeError

    p = program(TEXT)
    p.reloader.reload(str(p.path), TEXT + "# more\n", unheard)
    assert p.call_until(p.save(TEXT.replace("x * RATE", "x * RATE * 2")), lambda: p.module.scale(1)).outcome == "applied"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_assignment_that_is_interrupted_is_taken_back_with_those_before_it(error):
    values = {"a": 1, "b": 2, "c": 3}

    def interrupted(new):
        values["b"] = new
        if new == 20:
            raise error

    patch = Patch([Assignment(lambda: values["a"], lambda new: values.update(a=new), 10), Assignment(lambda: values["b"], interrupted, 20),
                   Assignment(lambda: values["c"], lambda new: values.update(c=new), 30)])
    with pytest.raises(error):
        patch.apply()
    assert values == {"a": 1, "b": 2, "c": 3} and patch.applied == 0


def test_all_is_put_back_though_one_place_refuses():
    values = {"a": 1, "c": 3}

    def refusing(new):
        if new is None:
            raise ValueError("no")

    patch = Patch([Assignment(lambda: values["a"], lambda new: values.update(a=new), 10), Assignment(lambda: None, refusing, 20),
                   Assignment(lambda: values["c"], lambda new: values.update(c=new), 30)])
    patch.apply()
    with pytest.raises(ValueError, match="no"):
        patch.revert()
    assert values == {"a": 1, "c": 3}


def test_what_is_no_file_is_refused_and_leaves_no_descriptor(tmp_path):
    for _ in range(3):
        with pytest.raises(OSError, match="is no regular file"):
            read(str(tmp_path))
    free = os.dup(0)
    os.close(free)
    with pytest.raises(OSError, match="is no regular file"):
        read(str(tmp_path))
    assert os.dup(0) == free
    os.close(free)


def test_a_module_that_the_program_reloads_itself_is_compared_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "reloads_itself.py"
    path.write_text("def scale(x):\n    return x * 2\n")
    module = importlib.import_module("reloads_itself")
    book = SourceBook()
    book.remember(str(path))
    calls = Calls()
    reloader = Reloader(book, Host(calls, step=lambda: calls.step))

    def save(text):
        path.write_text(text)
        answers = Answers()
        reloader.reload(str(path), None, answers.append)
        while not answers:
            calls.call(lambda: module.scale(1))
        return answers[0]

    assert save("def scale(x):\n    return x * 3\n").outcome == "applied"
    assert save("def scale(x, y):\n    return x * 4\n").outcome == "refused"
    path.write_text("def scale(x, y=1):\n    return x * 55\n")
    importlib.reload(module)
    answer = save("def scale(x, y=1):\n    return x * 666\n")
    assert answer.outcome == "refused" and "needs restart" in answer.reasons[0] and module.scale(1) == 55
    sys.modules.pop("reloads_itself")


def test_a_program_of_small_stacks_is_parsed_on_a_large_one(program):
    before = threading.stack_size(128 << 10)
    try:
        p = program(TEXT)
        answer = p.call_until(p.save(TEXT.replace("x * RATE", " + ".join(["x"] * 900))), lambda: p.module.scale(1))
        assert answer.outcome == "applied" and p.module.scale(1) == 900 and threading.stack_size() == 128 << 10
    finally:
        threading.stack_size(before)


@pytest.mark.parametrize(("last", "told"), [
    ("step(x)", "train.py applied at step 2 · RATE: 0.5 → 0.25"),
    ("", "train.py refused: the program ended before a captured call came; its next start has the edit"),
])
def test_a_save_right_before_the_programs_end_is_answered(tmp_path, last, told):
    (tmp_path / "train.py").write_text(f"""import sys
import dvm_core as dvm
from dvm_core import agent
from dvm_core.frontends import reloadable
from dvm_core.hotreload import SourceBook, reloader

RATE = 0.5
reloader.BOUNDARY_WAIT = 60


@dvm.jit
def step(x):
    return x * RATE


x = dvm.tensor([1.0])
step(x)
book = SourceBook()
book.remember(__file__)
text = open(__file__).read().replace("RATE = 0.5\\n", "RATE = 0.25\\n")
agent.make_reloader(book, print).reload(__file__, text, agent.tell)
while not reloadable.waiting():
    pass
{last}
raise KeyError("the program's own")
""")
    run = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60,
                         env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert told in run.stderr and run.stderr.count("Traceback") == 1 and run.returncode == 1, run.stderr
