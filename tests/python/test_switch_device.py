"""examples/switch_device.py, in short: a training that goes from device to device gives the losses of one that does not."""
import sys
from pathlib import Path

import pytest

pytest.importorskip("mindspore")
pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import switch_device  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402

NPU = "npu-sim:910b"
STEPS = 9


@pytest.fixture(scope="module")
def plain():
    return switch_device.training(STEPS, lambda step: "cpu")


@pytest.fixture(autouse=True)
def back_on_the_cpu():
    yield
    _core.clear_faults()
    dvm.set_device("cpu")


@pytest.mark.parametrize("devices", [("cpu", NPU), (NPU, "npu-sim:950"), ("cpu", f"{NPU}:faithful")])
def test_losses_are_those_of_a_training_that_stays_on_the_cpu(plain, devices):
    captured = len(dvm.programs())
    assert switch_device.training(STEPS, lambda step: devices[step // 2 % 2]) == plain
    assert len(dvm.programs()) == captured  # nothing was captured again


def test_a_switch_that_fails_changes_nothing_and_the_training_goes_on(plain):
    refused, kept = [], dvm.tensor([1.0, 2.0]) * 2
    kept.numpy()

    def device_of(step):
        if step == 4 and not refused:
            _core.plant_fault("memory", of="move")
            with pytest.raises(dvm.DeviceError, match=f"no room .* Nothing was moved, and {dvm.device()!r} stays in use"):
                dvm.set_device(NPU)
            refused.append(dvm.device())
        return "cpu" if step < 6 else NPU

    assert switch_device.training(STEPS, device_of) == plain
    assert refused == ["cpu"] and kept.numpy().tolist() == [2.0, 4.0]


def test_casts_that_take_a_detour_are_named(plain):
    assert switch_device.detours(NPU) == []
    told = [line.split("   switch_device.py:")[0] for line in switch_device.detours(f"{NPU}:faithful") if "switch_device.py" in line]
    assert told == ["float32 -> float16 -> bool", "bool -> float16 -> float32"]
