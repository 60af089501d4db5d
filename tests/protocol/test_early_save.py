"""A save of the script after its start, and before the program has imported the tensor engine."""
import time

import pytest

pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")

SCRIPT = """\
import os
import time

open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)

import numpy as np

import dvm_core as dvm

RATE = 0.5


@dvm.jit
def scaled(x):
    return x * RATE


while True:
    print(float(scaled(dvm.tensor(np.ones(4, np.float32))).numpy()[0]), flush=True)
    time.sleep(0.01)
"""


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_is_answered_and_what_runs_is_what_later_saves_are_compared_with(session, tmp_path):
    script = tmp_path / "early.py"
    script.write_text(SCRIPT)
    session.start(script, cwd=str(tmp_path))
    until((tmp_path / "ready").exists)
    script.write_text(SCRIPT.replace("RATE = 0.5", "RATE = 0.25"))
    (tmp_path / "go").touch()
    answer = session.event("dvm/reload", timeout=60)["body"]
    assert answer["outcome"] == "applied" and [(c["old"], c["new"]) for c in answer["changes"]] == [("0.5", "0.25")]
    until(lambda: "0.25" in session.printed().split())
    script.write_text(SCRIPT)
    answer = session.event("dvm/reload", timeout=60)["body"]
    assert answer["outcome"] == "applied" and [(c["old"], c["new"]) for c in answer["changes"]] == [("0.25", "0.5")]
    session.close()
