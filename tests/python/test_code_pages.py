"""Code is written into read-only pages through the process's own memory file; a program may close any descriptor it does not know."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
import numpy as np
import dvm_core as dvm

def run(scale):
    @dvm.jit
    def f(x):
        return (x * scale + 1.0).tanh().sum()
    x = np.linspace(0, 1, 37 + int(scale), dtype=np.float32)
    return abs(float(f(dvm.tensor(x))) - np.tanh(x * scale + 1).sum()) < 1e-3

assert run(1.0)
links = {fd: f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")}
memory = [int(fd) for fd, link in links.items() if os.path.islink(link) and os.readlink(link).endswith("/mem")]
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for fd in memory:
    os.dup2(file, fd)
assert run(2.0) and run(3.0)
for fd in memory:
    os.fstat(fd)  # still open: it is the program's
print(len(memory), os.path.getsize(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc/self/mem")
def test_a_descriptor_that_is_another_file_by_now_is_neither_written_nor_closed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "mine")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr
