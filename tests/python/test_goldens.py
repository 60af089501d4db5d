"""Graph and tile code of a set of kernels, kept as text for each device in tests/data/das. `make goldens` writes them anew."""
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from golden_kernels import CASES

import dvm_core as dvm
from dvm_core import _core

DEVICES = ("cpu", "npu-sim:910b", "npu-sim:950")
FOLDER = Path(__file__).resolve().parents[1] / "data" / "das"
UPDATE = os.environ.get("DVM_GOLDEN") == "update"


@pytest.fixture(autouse=True)
def back_on_the_cpu():
    yield
    dvm.set_device("cpu")


def text_of(name, device):
    """dump before and after the kernel is fused, and das. A cpu's cores and how much of its cache an area takes (what products
    pack, room for near shapes) are left out."""
    _core.forget_segments()  # a near shape's code has other addresses
    kernel, *arrays = CASES[name]
    kernel._build()
    built = kernel.dump()
    dvm.set_device(device)
    try:
        kernel(*arrays)
    except dvm.Error as error:
        return f"{error.message}\n"
    text = "\n".join([built, kernel.dump(), kernel.das()])
    return re.sub(r"(?<=block_dim=)\d+|(?<=, ub=)\d+", "…", text) if device == "cpu" else text


def stored_at(name, device):
    return FOLDER / device.replace(":", "-") / f"{name}.txt"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_the_code_of_a_kernel_is_what_it_was(name, device):
    text, stored = text_of(name, device), stored_at(name, device)
    if UPDATE:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(text, encoding="utf-8")
    want = stored.read_text(encoding="utf-8") if stored.exists() else ""
    changes = "".join(difflib.unified_diff(want.splitlines(True), text.splitlines(True), "stored", "now", n=2))
    assert not changes, f"the code of {name} on {device} has changed; if that is meant: make goldens\n{changes}"


def test_there_is_no_text_without_a_kernel():
    wanted = {stored_at(name, device) for name in CASES for device in DEVICES}
    assert {path for path in FOLDER.rglob("*") if path.is_file()} == wanted


ELSEWHERE = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from test_goldens import CASES, DEVICES, stored_at, text_of
stored = {(name, device): stored_at(name, device).read_text(encoding="utf-8") for name in CASES for device in DEVICES}
print([of for of, text in stored.items() if text_of(*of) != text])
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen by Linux's means")
@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_texts_do_not_depend_on_the_machine(level):
    # another SIMD level (a processor without it takes the best it has) and one core
    environment = {**os.environ, "DVM_SIMD": level}
    found = subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=Path(__file__).parent, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stdout + found.stderr
