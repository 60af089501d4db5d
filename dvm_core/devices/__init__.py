"""Devices: where programs run. `cpu` is this processor; `npu-sim` simulates an Ascend NPU on it, see docs/devices.md."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import Any

from ..errors import DeviceError

NEVER_RUN = "never run on hardware"
# what else has a name, and why it cannot be had
_ELSEWHERE = {"npu": "a real Ascend NPU under another name: it is 'ascend:0' here", "cuda": "a GPU", "gpu": "a GPU", "rocm": "a GPU"}

_PATIENCE = 60.0  # seconds until captured calls that do not end are an error


def profiles() -> dict[str, dict[str, Any]]:
    """The devices by name: arch, simulated, faithful, elsewhere (a library runs it, there is no tile code), ub_bytes, ub_reserve,
    vector_cores, cube_cores, events, memory_bytes. Ascend NPUs are among them once they are open."""
    from .. import _core

    return {profile["name"]: profile for profile in _core.profiles()}


def names() -> list[str]:
    """What set_device may be asked for: the devices there are, and the first Ascend NPU where pyACL is installed."""
    found = list(profiles())
    if "ascend:0" not in found and (sys.modules.get("acl") or importlib.util.find_spec("acl")):
        found.append("ascend:0")
    return found


def set_device(name: str) -> None:
    """Chooses the device of all later launches, also in the middle of a run. Waits for the captured calls of other threads (a step ends
    where it began), moves the buffers that live on the device in use or belong to arrays, and is in force at the next launch, which is made
    from the same bytecode. Nothing is captured again, and tensors need not be moved by the caller.

    Raises DeviceError for a name that is unknown or not available, for captured calls that do not end within a minute, and for a move that
    fails (no room on the new device, a copy that fails): the device in use then stays, and everything where it was."""
    end = time.monotonic() + _PATIENCE
    while not switched(name, 0.1):
        if time.monotonic() > end:
            raise DeviceError(
                f"device {name!r}: a captured call of another thread has not ended for {_PATIENCE:.0f} s; {device()!r} stays in use"
            )
        time.sleep(0.01)  # those that were held back may begin: what runs may wait for them


def switched(name: str, seconds: float) -> bool:
    """The same, but captured calls of other threads are waited for that long only. False: they still run, and nothing has changed."""
    from .. import _core

    if isinstance(name, str) and name.partition(":")[0] == "ascend":
        from . import ascend

        ascend.open_device(name)
    elif name not in profiles():
        raise unknown(name)
    try:
        return _core.set_device(name, int(seconds * 1000)) is not None
    except _core.Error as error:
        raise DeviceError(f"device {name!r}: {error}. Nothing was moved, and {device()!r} stays in use") from None


def unknown(name: Any) -> DeviceError:
    """What is said of a name that is no device's."""
    available = ", ".join(repr(device) for device in profiles())
    elsewhere = _ELSEWHERE.get(str(name).partition(":")[0].lower())
    if elsewhere:
        return DeviceError(f"device {name!r} is {elsewhere}, which this version does not run on; available: {available}")
    return DeviceError(f"there is no device {name!r}; available: {available}")


def device() -> str:
    """The name of the device in use."""
    from .. import _core

    return _core.device()


def cast_route(device: str, source: str, target: str) -> list[str]:
    """The dtypes a cast goes through on a device, each rounded to, both ends included: ["float32", "float16", "bool"] on a faithful NPU."""
    from .. import _core, dtypes

    codes = {entry.name: code for code, entry in dtypes.BY_CODE.items()}
    if source not in codes or target not in codes:
        raise DeviceError(f"no dtype {source if source not in codes else target!r}; there are {', '.join(codes)}")
    return [source, *(dtypes.BY_CODE[code].name for code in _core.cast_route(device, codes[source], codes[target]))]


def faithful() -> bool:
    """Whether the device in use does what the hardware does, also where that is wrong."""
    return device().endswith(":faithful")


def simulated() -> bool:
    """Whether the device in use is a simulated NPU."""
    return device().startswith("npu-sim:")


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
        """The simulated chip ("910b", "950"), or the real one as CANN names it; on the cpu the SIMD level the kernels run at."""
        from .. import _core

        if device().startswith("ascend:"):
            from . import pyacl

            return pyacl.soc_name(pyacl.load())
        return device().split(":")[1] if ":" in device() else _core.simd_level()


for _name in ("arch", "core_num", "soc_name"):
    setattr(device, _name, getattr(Device, _name))  # dvm.device.arch(), as scripts of 2024 ask
