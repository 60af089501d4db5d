"""Devices: where programs run. `cpu` is this processor; `npu-sim` simulates an Ascend NPU on it, see docs/devices.md."""

from __future__ import annotations

import functools
import os
from typing import Any

from ..errors import DeviceError

# what else has a name, and why it cannot be had
_ELSEWHERE = {"ascend": "a real Ascend NPU", "npu": "a real Ascend NPU", "cuda": "a GPU", "gpu": "a GPU"}


@functools.cache
def profiles() -> dict[str, dict[str, Any]]:
    """The devices by name: arch, simulated, faithful, ub_bytes, ub_reserve, vector_cores, cube_cores, events."""
    from .. import _core

    return {profile["name"]: profile for profile in _core.profiles()}


def set_device(name: str) -> None:
    """Chooses the device of all later launches, also in the middle of a run: a launch that runs ends where it began, the next one is made
    from the same bytecode for the new device. Nothing is captured again, and tensors need not be moved by the caller.

    Raises DeviceError for a name that is unknown or not available; the device in use then stays."""
    from .. import _core

    if name not in profiles():
        available = ", ".join(repr(device) for device in profiles())
        elsewhere = _ELSEWHERE.get(str(name).partition(":")[0].lower())
        if elsewhere:
            raise DeviceError(f"device {name!r} is {elsewhere}, which this version does not run on; available: {available}")
        raise DeviceError(f"there is no device {name!r}; available: {available}")
    _core.set_device(name)


def device() -> str:
    """The name of the device in use."""
    from .. import _core

    return _core.device()


def faithful() -> bool:
    """Whether the device in use does what the hardware does, also where that is wrong."""
    return profiles()[device()]["faithful"]


class Device:
    """What scripts written for DVM ask about the hardware: of the device in use."""

    @staticmethod
    def arch() -> str:
        """DVM's name of the architecture, "AscendC220" or "AscendC310"; "CPU" on the cpu."""
        return profiles()[device()]["arch"]

    @staticmethod
    def core_num() -> int:
        """Vector cores of a simulated NPU; on the cpu the cores this process may use."""
        cores = profiles()[device()]["vector_cores"]
        return cores or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    @staticmethod
    def soc_name() -> str:
        """The simulated chip ("910b", "950"); on the cpu the SIMD level the kernels run at."""
        from .. import _core

        return device().split(":")[1] if ":" in device() else _core.simd_level()


for _name in ("arch", "core_num", "soc_name"):
    setattr(device, _name, getattr(Device, _name))  # dvm.device.arch(), as scripts of 2024 ask
