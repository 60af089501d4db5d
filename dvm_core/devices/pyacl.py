"""pyACL (`import acl`), CANN's runtime for Python: every call checked, every failure an error with call, code, meaning and what to do.

Calls, results and codes as in the vendor's reference (hiascend.com, "appdevgapi", pages aclpythondevg_01_*). Most calls give an error code,
alone or last in a tuple.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import DeviceError

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2  # aclrtMemcpyKind
HUGE_FIRST = 0  # aclrtMemMallocPolicy: large pages if the block is large enough
INITIALISED_ALREADY = 100002  # by another library of this process: then it is theirs to finalise
NO_MEMORY = 207001

_RESTART = "start the process again; if it comes again, look at the device with npu-smi and at CANN's log"
_REPORT = "this is a mistake of this package: report it with the call"
# code -> (what it means, what to do)
CODES: dict[int, tuple[str, str]] = {
    100000: ("an argument is wrong", _REPORT),
    100001: ("acl.init has not been called", _REPORT),
    100002: ("acl.init was called before", _REPORT),
    107000: ("an argument is wrong", _REPORT),
    107001: ("there is no device of that number", "`npu-smi info` lists the devices; ASCEND_RT_VISIBLE_DEVICES may hide some"),
    107002: ("the thread has no context", _REPORT),
    107003: ("the stream is not of this context", _REPORT),
    200000: ("no memory on the host", "free some memory"),
    200001: ("this CANN has no such function", "install a newer CANN"),
    207000: ("this device cannot do it", "use another device"),
    207001: ("no memory on the device", "use smaller tensors, or end what else uses the device (npu-smi info)"),
    207004: ("there is no device", "check the driver with npu-smi info"),
    207005: ("no resource of that kind is left", "end what else uses the device (npu-smi info)"),
    207006: ("no permission for the device", "the user must be in the driver's group (HwHiAiUser)"),
    207007: ("no event is left", "end what else uses the device (npu-smi info)"),
    207008: ("no stream is left", "end what else uses the device (npu-smi info)"),
    500000: ("something went wrong inside", _RESTART),
    507000: ("something went wrong in the runtime", _RESTART),
    507010: ("the device does not answer", _RESTART),
    507014: ("an operator took too long", _RESTART),
    507015: ("an operator failed on a core", _RESTART),
    507033: ("the device could not be set up", "check driver and firmware with npu-smi info"),
    507034: ("an operator took too long on a vector core", _RESTART),
    507035: ("an operator failed on a vector core", _RESTART),
    507899: ("something went wrong in the driver", "check driver and firmware with npu-smi info"),
    # of aclnn functions
    161001: ("an argument is missing", _REPORT),
    161002: ("an argument is not what the operator takes", "docs/devices.md lists what each op takes there"),
    361001: ("the runtime failed inside the operator", _RESTART),
    561003: ("the operator's kernel is not installed", "install CANN's kernels package for this chip"),
    561107: ("ASCEND_OPP_PATH is not set", "source set_env.sh of the CANN toolkit"),
}
_KINDS = {
    1: "a mistake in the call or the environment",
    2: "a resource is missing",
    3: "the service is busy",
    5: "an error inside of CANN or the device",
}


class AclError(DeviceError):
    """A call of CANN's libraries that failed. call, code."""

    def __init__(self, message: str, call: str, code: int) -> None:
        super().__init__(message)
        self.call, self.code = call, code


def failure(acl: Any, call: str, code: int) -> AclError:
    """The error for a call's code."""
    meaning, advice = CODES.get(code, (_KINDS.get(code // 100_000, "an unknown error"), "look the code up in CANN's reference, aclError"))
    said = ""
    try:
        said = str(acl.get_recent_err_msg() or "").strip()
    except Exception:  # older CANNs have no such function, and the error at hand matters more
        said = ""
    return AclError(f"{call} failed with {code}: {meaning}; {advice}" + (f". CANN says: {said}" if said else ""), call, code)


def load() -> Any:
    """The acl module. Raises DeviceError if it cannot be imported."""
    try:
        return importlib.import_module("acl")
    except ImportError as error:
        raise DeviceError(
            f"an Ascend device needs pyACL, which cannot be imported ({error}): install the CANN toolkit and `source set_env.sh` of it; "
            "`npu-sim:910b` and `npu-sim:950` simulate such a device"
        ) from None


class Calls:
    """The calls of one acl module: `calls("rt.malloc", 64, 0)` gives what acl.rt.malloc gives without the code, which must be 0."""

    def __init__(self, acl: Any) -> None:
        self.acl = acl

    def __call__(self, name: str, *arguments: Any) -> Any:
        code, value = self.attempt(name, *arguments)
        if code:
            raise failure(self.acl, f"acl.{name}", code)
        return value

    def attempt(self, name: str, *arguments: Any) -> tuple[int, Any]:
        """(code, the rest of the result)."""
        function = self.acl
        for part in name.split("."):
            function = getattr(function, part)
        given = function(*arguments)
        if not isinstance(given, tuple):
            return given, None
        return given[-1], given[0] if len(given) == 2 else given[:-1]


# how CANN's names of chips begin -> DVM's name of the architecture
_ARCHS = {"Ascend910B": "AscendC220", "Ascend910_93": "AscendC220", "Ascend910_95": "AscendC310", "Ascend950": "AscendC310"}


def soc_name(acl: Any) -> str:
    """The chip as CANN names it ("Ascend910B3"), "" if it does not say."""
    return str(acl.get_soc_name() or "") if hasattr(acl, "get_soc_name") else ""


def arch(acl: Any) -> str:
    """DVM's name of the chip's architecture; "Ascend" for chips DVM does not know."""
    name = soc_name(acl)
    return next((found for start, found in _ARCHS.items() if name.startswith(start)), "Ascend")


def found() -> str:
    """For `dvm doctor`: what there is of pyACL and devices, in words. Raises DeviceError if there is none."""
    acl = load()
    count = Calls(acl)("rt.get_device_count")
    chip = f", {soc_name(acl)}" if soc_name(acl) else ""
    return f"pyACL at {getattr(acl, '__file__', None) or 'an unknown place'}, {count} devices{chip}"
