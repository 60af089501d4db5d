"""The benchmarks as commands: what is asked for and not there is said, and without peers nothing breaks."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def run(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=FOLDER)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["vectors", "products", "attention", "blocks"])
def test_a_row_that_is_not_there_is_refused_with_those_that_are(name):
    code, out, err = run(f"{name}.py", "--only", "nosuch")
    assert code == 2 and not out and "no row has 'nosuch'; there are: " in err


@pytest.mark.parametrize("name", ["calls", "selector", "decoder"])
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
