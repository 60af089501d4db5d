"""`dvm run --watch` as a user has it: a process that trains, files saved beside it, answers on its stderr."""
import os
import queue
import subprocess
import sys
import threading

import pytest
from dvm_wire import watching

TRAIN = """import sys
import threading
import numpy as np
import dvm
import rates
RATE = 0.5

@dvm.jit
def step(x):
    return x * RATE + rates.shift(1.0)

asked = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), asked.set()), daemon=True).start()
x, last = dvm.tensor(np.ones(4, np.float32)), None
while not asked.is_set():
    value = float(step(x).numpy()[0])
    if value != last:
        print(value, flush=True)
        last = value
    asked.wait(0.002)
"""
RATES = "def shift(x):\n    return x + 1.0\n"
WAIT = 60


class Run:
    """The running script: lines of its two streams, each waited for."""

    def __init__(self, folder, *, cwd=None, script="train.py", watch=True, **environment):
        self.folder = folder
        (folder / "train.py").write_text(TRAIN)
        (folder / "rates.py").write_text(RATES)
        self.process = subprocess.Popen([sys.executable, "-m", "dvm_core", "run", *["--watch"] * watch, script], cwd=cwd or folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment})
        self.out, self.err = queue.Queue(), queue.Queue()
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=self.read, args=(stream, lines), daemon=True).start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.put(line.rstrip("\n"))

    def value(self):
        return float(self.out.get(timeout=WAIT))

    def said(self):
        return self.err.get(timeout=WAIT)

    def save(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        assert old in text
        part = path.with_suffix(".tmp")
        part.write_text(text.replace(old, new))
        os.replace(part, path)  # as editors save

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(WAIT)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        return code


@pytest.fixture
def run(tmp_path):
    made = []

    def start(**how):
        made.append(Run(tmp_path, **how))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_saves_come_into_force_and_each_is_answered(run):
    program = run()
    assert program.value() == 2.5
    program.save("train.py", "RATE = 0.5", "RATE = 0.25")
    said = program.said()
    assert said.startswith("dvm: train.py applied at step ") and "RATE: 0.5 → 0.25" in said and "1 of 2 instructions" in said
    assert program.value() == 2.25
    program.save("rates.py", "x + 1.0", "x + 3.0")
    assert program.said().startswith("dvm: rates.py applied at step ") and program.value() == 4.25
    program.save("rates.py", "def shift", "# a comment\ndef shift")
    assert program.said() == "dvm: rates.py unchanged: no function has changed"
    program.save("rates.py", "x + 3.0", "(x + 3.0")
    assert program.said().startswith("dvm: rates.py refused: rates.py:3: ")
    program.save("rates.py", "(x + 3.0", "x + 4.0")
    assert program.said().startswith("dvm: rates.py applied") and program.value() == 5.25
    assert program.end() == 0


def test_a_file_cut_in_the_middle_of_a_line_is_not_taken_for_the_save(run):
    program = run()
    assert program.value() == 2.5
    path = program.folder / "train.py"
    text = path.read_text()
    head, tail = text.replace("RATE = 0.5", "RATE = 4.25").split(".25")
    with path.open("w", buffering=1) as file:  # `RATE = 4` parses
        file.write(head)
        file.flush()
        file.write(".25" + tail)
    assert "RATE: 0.5 → 4.25" in program.said() and program.value() == 6.25
    assert program.end() == 0


def test_the_script_is_known_though_it_was_named_from_elsewhere(run, tmp_path):
    (tmp_path / "far").mkdir()
    program = run(cwd=tmp_path / "far", script="../train.py")
    assert program.value() == 2.5
    program.save("train.py", "x * RATE", "x * RATE * 2.0")
    assert program.said().startswith("dvm: train.py applied at step ") and program.value() == 3.0
    assert program.end() == 0


def test_where_no_watcher_is_installed_nothing_is_run(tmp_path):
    (tmp_path / "a.py").write_text("print('ran')\n")
    code = ("import sys; sys.modules.update(watchfiles=None, asyncinotify=None); from dvm_core.cli import main; "
            "sys.exit(main(['run', '--watch', 'a.py']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (1, "") and f"pip install {watching.PACKAGE}" in done.stderr


def test_of_files_saved_together_the_one_that_came_too_early_is_tried_again(run):
    program = run()
    assert program.value() == 2.5
    program.save("train.py", "rates.shift(1.0)", "rates.shift(1.0) * rates.FACTOR")
    assert "train.py refused: train.py:10: AttributeError: module 'rates' has no attribute 'FACTOR'" in program.said()
    program.save("rates.py", "def shift", "FACTOR = 2.0\n\n\ndef shift")
    assert program.said().startswith("dvm: rates.py applied at step ")
    assert program.said().startswith("dvm: train.py applied at step ") and program.value() == 4.5
    undo = [sys.executable, "-m", "dvm_core", "reload", "--undo", str(program.process.pid)]
    done = subprocess.run([*undo, "train.py"], cwd=program.folder, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0 and done.stdout.startswith("train.py undone at step ") and program.value() == 2.5
    done = subprocess.run([*undo, "train.py"], cwd=program.folder, capture_output=True, text=True, timeout=WAIT)
    assert done.stdout == "train.py unchanged: no edit of train.py is in force: nothing to undo\n"
    assert program.end() == 0 and program.err.empty()


def test_a_save_right_behind_the_import_of_its_module_is_one(run):
    program = run()
    assert program.value() == 2.5
    program.save("rates.py", "x + 1.0", "x + 3.0")
    assert program.said().startswith("dvm: rates.py applied at step ") and program.value() == 4.5
    assert program.end() == 0
