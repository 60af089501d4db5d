"""The benchmarks as commands: what is asked for and not there is said, and without peers nothing breaks."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def run(*arguments, **environment):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=FOLDER,
                          env=os.environ | environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["vectors", "products", "attention", "blocks"])
def test_a_row_that_is_not_there_is_refused_with_those_that_are(name):
    code, out, err = run(f"{name}.py", "--only", "nosuch")
    assert code == 2 and not out and "no row has 'nosuch'; there are: " in err


@pytest.mark.parametrize("name", ["calls", "compiling", "selector", "decoder", "memory", "models", "networks", "reload", "debugger", "run"])
def test_help_measures_nothing(name):
    code, out, _ = run(f"{name}.py", "--help")
    assert code == 0 and "--quick" in out


def test_a_contender_that_is_not_there_is_refused():
    code, _, err = run("decoder.py", "decoder", "nobody")
    assert code == 2 and "a contender of decoder is one of dvm" in err


def test_a_sweep_without_peers_is_told_as_such():
    text = "import command; from timing import Row, Sweep; command.tell([Sweep('sums', [Row('3', {'dvm': 1.0})])], True)"
    code, out, err = run("-c", text)
    assert code == 0 and out.startswith("sums: 1 shapes; no peer is installed"), err


# Stands for the modules of four groups: the first and the last measure, one raises after a row, one ends with its process.
GROUPS = """
import os, sys, types

def module(name, **functions):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(functions)

def vectors(quick):
    from timing import Row, Sweep
    yield Sweep("a sweep", [Row("3 x 4", {"dvm": 1.0, "peer": 2.0})])

def decoder(repeats):
    from timing import Row
    yield Row("before it failed", {"dvm": 3e-6, "peer": 6e-6})
    raise ValueError("the peer computes something else")

def selector(quick):
    os.abort()
    yield

def checks(seconds):
    from timing import Row, Share
    yield Share("a share", {"ready": 0.5})
    yield Row("bytes", {"dvm": 2.0, "peer": 5.0}, unit="MB")

module("vectors", sweeps=vectors)
module("decoder", rows=decoder)
module("selector", measured=selector)
module("checks", rows=checks)
"""


def test_a_group_that_fails_is_told_and_the_others_are_reported(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(GROUPS)
    code, out, err = run("run.py", "--quick", "--only", "ec", "--out", str(tmp_path / "bench.json"), PYTHONPATH=str(tmp_path))
    assert code == 1, err
    told = json.loads((tmp_path / "bench.json").read_text())
    assert told["failed"].keys() == {"decoder", "selector"}
    assert told["failed"]["decoder"] == "exit code 1: ValueError: the peer computes something else"
    assert told["failed"]["selector"].startswith("ended by signal 6")
    assert [(row["name"], row["ratios"]["peer"]) for row in told["rows"]] == [("before it failed", 2.0), ("bytes", 2.5)]
    assert told["rows"][1]["MB"] == {"dvm": 2.0, "peer": 5.0}
    assert told["sweeps"][0]["best"]["geomean"] == 2.0 and told["shares"][0]["shares"] == {"ready": 0.5}
    assert "[2/4] decoder" in out and "before it failed" in out and "failed: decoder, selector" in out and "Traceback" in out


# The module of a group writes a line that is no row where its rows go; it would measure for an hour.
GARBAGE = """
import sys, time, types

def rows(repeats):
    with open(sys.argv[sys.argv.index("--part") + 1], "a") as part:
        part.write("no row\\n")
    time.sleep(3600)
    yield

sys.modules["decoder"] = types.ModuleType("decoder")
sys.modules["decoder"].rows = rows
"""


def test_a_row_that_cannot_be_read_fails_its_group_alone(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(GARBAGE + GROUPS.split('module("vectors"')[0] + """
def checks(seconds):
    from timing import Share
    yield Share("a share", {"ready": 0.5})

module("checks", rows=checks)
module("vectors", sweeps=lambda quick: [])
module("selector", measured=lambda quick: [])
""")
    code, out, err = run("run.py", "--quick", "--only", "ec", "--out", str(tmp_path / "bench.json"), PYTHONPATH=str(tmp_path))
    assert code == 1, err
    told = json.loads((tmp_path / "bench.json").read_text())
    assert told["failed"].keys() == {"decoder"} and told["failed"]["decoder"].startswith("JSONDecodeError: ")
    assert told["shares"][0]["shares"] == {"ready": 0.5} and "failed: decoder" in out


def test_how_long_the_whole_takes_is_told_beforehand():
    code, out, _ = run("run.py", "--help")
    assert code == 0 and "minutes on two cores" in " ".join(out.split()) and "calls" in out
