"""Devices: where programs run. This version has one, `cpu`."""

from __future__ import annotations

import os

from ..errors import DeviceError

# prefix of a device's name -> what it is; those not available say so instead of computing something else
_PLANNED = {"npu-sim": "the Ascend simulation", "ascend": "a real Ascend NPU", "npu": "a real Ascend NPU"}
AVAILABLE = ("cpu",)


def set_device(name: str) -> None:
    """Chooses the device of all later launches. Raises DeviceError for a name that is unknown or not available in this version."""
    if name in AVAILABLE:
        return
    available = ", ".join(repr(device) for device in AVAILABLE)
    planned = _PLANNED.get(str(name).partition(":")[0].lower())
    if planned:
        raise DeviceError(f"device {name!r} is {planned}, which is not part of this version; available: {available}")
    raise DeviceError(f"there is no device {name!r}; available: {available}")


def device() -> str:
    """The name of the device in use."""
    return "cpu"


class Device:
    """What scripts written for DVM ask about the hardware."""

    @staticmethod
    def arch() -> str:
        """ "CPU": neither of DVM's architecture names is true here."""
        return "CPU"

    @staticmethod
    def core_num() -> int:
        """Cores this process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @staticmethod
    def soc_name() -> str:
        """The SIMD level the kernels run at."""
        from .. import _core

        return _core.simd_level()
