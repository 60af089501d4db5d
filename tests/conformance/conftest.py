"""Every case runs on the cpu and on both simulated NPUs, whose code is checked; DVM_DEVICE=npu-sim:910b:faithful: on that device alone."""

import os

import pytest

import dvm_core as dvm
from dvm_core import _core

DEVICES = (os.environ["DVM_DEVICE"],) if os.environ.get("DVM_DEVICE") else ("cpu", "npu-sim:910b", "npu-sim:950")


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    dvm.set_device(request.param)
    before = {program.id: program.launches for program in _core.programs()}
    yield request.param
    dvm.set_deterministic(True)
    dvm.set_device("cpu")
    if request.param.startswith("npu-sim"):
        for program in _core.programs():
            if program.launches != before.get(program.id, 0):
                for area in _core.check(program.id)["areas"]:  # the code that ran
                    wrong = {kind: area[kind] for kind in ("races", "overwrites", "aliases", "unstored") if area[kind]}
                    assert not wrong, f"{wrong} in program {program.id} on {area['device']}"


@pytest.fixture
def strict(device):
    """For cases of errors: a faithful device does what the hardware does instead, see tests/python/test_misuse.py."""
    if device.endswith(":faithful"):
        pytest.skip("reproduced, not refused, on a faithful device")


# (op, dtype) that chips have not: what a case meets there is the error that says so, and nothing else.
BOTH = ("AscendC220", "AscendC310")
LACKS = {
    **{(op, dtype): BOTH for op in ("MatMul", "GroupedMatMul") for dtype in ("float32", "float64")},
    **{(op, dtype): BOTH for op in ("Load", "ViewLoad", "Cast", "BroadcastS") for dtype in ("float64", "int8", "uint8")},
    **{("GatherLoad", dtype): ("AscendC220",) for dtype in ("float32", "float16", "bfloat16", "int32", "int64", "bool")},
}


def lacks(error, arch):
    """Whether an error says that the chip has not got what LACKS lists for it."""
    if getattr(error, "rule", "") not in ("chip-dtype", "chip-op") or not error.dtypes:
        return False
    return arch in LACKS.get((error.op, error.dtypes[0]), ())


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    if lacks(error, dvm.Device.arch()):
        outcome.force_exception(pytest.skip.Exception(f"{dvm.Device.arch()} has no {error.op} of {error.dtypes[0]}, and said so"))
