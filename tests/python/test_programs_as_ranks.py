"""Collectives between programs of their own, through the communicator these have: MPI's, PyTorch's, MindSpore's."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import dvm_core as dvm
from dvm_core.devices import ranks

PROGRAM = Path(__file__).resolve().parents[1] / "data" / "ranks" / "collectives.py"
BESIDE = os.pathsep.join([str(Path(sys.executable).parent), str(Path(importlib.util.find_spec("pytest").origin).parents[4] / "bin")])
PATH = os.pathsep.join([BESIDE, os.environ["PATH"]])  # of this interpreter and of its packages


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


LAUNCHERS = {
    "mpi": ("mpi4py", lambda folder: [shutil.which("mpiexec", path=PATH), "-n", "3", sys.executable]),
    "torch": ("torch", lambda folder: [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]),
    "mindspore": ("mindspore", lambda folder: [
        sys.executable, shutil.which("msrun", path=PATH), "--worker_num=2", "--local_worker_num=2", "--join=True",
        f"--log_dir={folder}", f"--master_port={free_port()}"]),
}


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_programs_exchange_through_the_communicator_they_have(kind, tmp_path):
    package, launcher = LAUNCHERS[kind]
    pytest.importorskip(package)
    command = launcher(tmp_path / "logs")
    if command[0] is None:
        pytest.skip("there is no mpiexec")
    done = subprocess.run([*command, str(PROGRAM), kind, str(tmp_path / "out")], env=os.environ | {"PATH": PATH, "OMP_NUM_THREADS": "1"},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert {path.name for path in tmp_path.glob("out.*")} == {f"out.{rank}" for rank in range(3 if kind == "mpi" else 2)}


def test_without_a_communicator_the_ways_to_one_are_named():
    with pytest.raises(dvm.UnsupportedError, match=r"rank 3 of 8 .* no communicator.*torchrun.*msrun.*mpiexec.*fork\(8\)"):
        dvm.Kernel.init_comm(3, 8, "hccl")
    assert ranks.world() is None


def test_mpi_without_mpi4py_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(dvm.UnsupportedError, match="pip install mpi4py"):
        dvm.Kernel.init_comm(1, 2)


class Failing:
    """As mpi4py's communicator, of ranks one of which has gone."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2

    def Allgather(self, data, found):
        raise RuntimeError("rank 1 has gone")


FAILS = """import sys
import numpy as np
from mpi4py import MPI
import dvm_core as dvm
from dvm_core.tester import Tester
rank = MPI.COMM_WORLD.Get_rank()
dvm.Kernel.init_comm(rank, 2, MPI.COMM_WORLD)
for shape, dtype in (((4,), "int32" if rank else "float32"), ((2, 6) if rank else (3, 4), "float32")):
    t = Tester("vector")
    t.store(t.allreduce("sum", t.load(np.ones(shape, dtype))))
    try:
        t.run()
    except dvm.ShapeError as error:
        assert "do not go together" in str(error)
    else:
        raise AssertionError
empty = Tester("vector")
store = empty.store(empty.allgather(empty.load(np.ones((0 if rank else 2, 3), np.float32))))
empty.run()
assert empty.output(store).shape == (2, 3)
if rank:
    raise ValueError("on purpose")
dvm.Kernel.barrier()
print("waited for nobody")
"""


def test_ranks_that_differ_are_told_and_one_that_fails_ends_all(tmp_path):
    pytest.importorskip("mpi4py")
    if (mpiexec := shutil.which("mpiexec", path=PATH)) is None:
        pytest.skip("there is no mpiexec")
    (script := tmp_path / "fails.py").write_text(FAILS)
    done = subprocess.run([mpiexec, "-n", "2", sys.executable, str(script)], env=os.environ | {"PATH": PATH}, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode and "ValueError: on purpose" in done.stdout + done.stderr and "waited for nobody" not in done.stdout
    assert "AssertionError" not in done.stdout + done.stderr


def test_an_exchange_that_fails_says_of_which_rank():
    dvm.Kernel.init_comm(0, 2, Failing())
    try:
        with pytest.raises(dvm.DeviceError, match="rank 0 of 2: the exchange failed: rank 1 has gone"):
            ranks.gather(b"abc")
        with pytest.raises(dvm.ArgumentError, match=r"rank 0 of 2 already: join\(\) first"):
            dvm.Kernel.fork(2)
    finally:
        dvm.Kernel.join()
