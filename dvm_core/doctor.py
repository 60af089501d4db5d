"""`dvm doctor`: is everything there, does it compute, and if not, what to do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass

from dvm_wire import watching

OK, MISSING, BROKEN = "ok", "--", "!!"  # BROKEN fails the report; MISSING is an extra that is not installed


@dataclass
class Finding:
    """One line of the report."""

    state: str
    what: str
    detail: str
    advice: str = ""


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if (3, 10) <= sys.version_info < (3, 13):
        return Finding(OK, "Python", version)
    return Finding(
        BROKEN, "Python", f"{version}; 3.10 to 3.12 are supported", "make a virtual environment with one of these: python3.11 -m venv .venv"
    )


def _core() -> Finding:
    try:
        from . import _core as core
    except ImportError as error:
        return Finding(BROKEN, "native core", str(error), "build it: make setup (needs g++ or clang with C++20)")
    return Finding(OK, "native core", f"{len(core.OPS)} opcodes, kernels for {core.simd_level()}")


def _devices() -> Finding:
    from . import devices

    try:
        names = ", ".join(devices.profiles())
    except ImportError as error:
        return Finding(BROKEN, "devices", str(error), "build the native core: make setup")
    return Finding(OK, "devices", f"{names}; simulated ones follow what is published, nothing was ever run on an NPU")


def _ascend() -> Finding:
    from .devices import NEVER_RUN, pyacl
    from .errors import DeviceError

    try:
        found = pyacl.found()
    except DeviceError as error:
        return Finding(MISSING, "Ascend NPU", f"none; the way to one was {NEVER_RUN}", str(error))
    return Finding(OK, "Ascend NPU", f"{found}; the way to it was {NEVER_RUN}")


def _computes() -> Finding:
    import numpy as np

    try:
        from .frontends.array import tensor

        x = np.linspace(-3, 3, 4096, dtype=np.float32).reshape(64, 64)
        found = np.asarray(tensor(x) @ tensor(x.T.copy()) + 1.0)
        wide = x.astype(np.float64)
        terms = np.abs(wide) @ np.abs(wide.T) + 1  # what was added up, signs left out: a sum near 0 has no ulp to speak of
        worst = float((np.abs(found - (wide @ wide.T + 1)) / terms).max() / np.finfo(np.float32).eps)
    except Exception as error:
        return Finding(BROKEN, "a small program", f"{type(error).__name__}: {error}", "build again: make setup; if it stays, report it")
    if worst > x.shape[1]:
        detail = f"differs from NumPy by {worst:.3g} ulp of its terms"
        return Finding(BROKEN, "a small program", detail, "force simpler kernels (DVM_SIMD=baseline) and report it")
    return Finding(OK, "a small program", f"computes (within {worst:.2g} ulp of float64 NumPy, relative to its terms)")


def _package(name: str, wanted: str, why: str, advice: str, required: bool = False) -> Callable[[], Finding]:
    def check() -> Finding:
        bad = BROKEN if required else MISSING
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return Finding(bad, name, f"not installed; {why}", advice)
        if wanted and version.partition("+")[0] != wanted:  # 2.13.0+cpu is a build of 2.13.0
            return Finding(BROKEN, name, f"{version}; {why} with {wanted}", advice)
        return Finding(OK, name, version)

    return check


def _numpy_for_mindspore() -> Finding:
    try:
        numpy, _ = importlib.metadata.version("numpy"), importlib.metadata.version("mindspore")
    except importlib.metadata.PackageNotFoundError:
        return Finding(OK, "numpy version", "any will do without MindSpore")
    if int(numpy.partition(".")[0]) >= 2:
        return Finding(BROKEN, "numpy version", f"{numpy}; MindSpore 2.10 fails with NumPy 2", "pip install 'numpy<2' 'scipy<1.14'")
    return Finding(OK, "numpy version", f"{numpy} suits MindSpore")


def _adapter() -> Finding:
    if importlib.util.find_spec("dvm_adapter") is None or importlib.util.find_spec("dvm_adapter.__main__") is None:
        return Finding(MISSING, "debug adapter", "dvm_adapter is not importable", "install the project again: make setup")
    return Finding(OK, "debug adapter", "python -m dvm_adapter")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _package("numpy", "", "everything needs it", "pip install numpy", required=True),
    _core,
    _devices,
    _ascend,
    _computes,
    _adapter,
    _package("debugpy", "1.8.22", "Python debugging is tested", "pip install debugpy==1.8.22"),
    _package(watching.PACKAGE, "", "hot reload on save needs it", f"pip install {watching.PACKAGE}"),
    _package("mindspore", "2.10.0", "capturing MindSpore models is tested", "pip install mindspore==2.10.0 'numpy<2' 'scipy<1.14'"),
    _numpy_for_mindspore,
    _package("torch", "2.13.0", "capturing PyTorch models is tested", "pip install torch==2.13.0"),
    _package("pygls", "", "shapes and hints beside the source (dvm lsp) need it", "pip install 'pygls>=2'"),
)

_COLORS = {OK: "32", MISSING: "33", BROKEN: "31"}


def report(color: bool = False) -> int:
    """Prints one line per check, with what to do below those that are not fine. Returns 1 if something needed is broken."""
    findings = [check() for check in CHECKS]
    for item in findings:
        mark = f"\x1b[{_COLORS[item.state]}m{item.state}\x1b[0m" if color else item.state
        print(f"{mark}  {item.what:<16}{item.detail}")
        if item.state != OK and item.advice:
            print(f"    {'':<16}{item.advice}")
    broken = [item.what for item in findings if item.state == BROKEN]
    print("everything needed is there" if not broken else f"not in order: {', '.join(broken)}")
    return 1 if broken else 0
