"""What is checked of what: a kernel, a captured function, a program, or all that a call launches."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _core, devices
from ..errors import ArgumentError, Error, convert, where
from .areas import casts_of, cut_of, findings_of, lacking_of, order_of
from .names import Names
from .report import AreaReport, Finding, Report

_ORDERS = 16  # of each sum that are tried


def check(target: Any, *args: Any, device: str | None = None, **kwargs: Any) -> Report:
    """Checks code by the rules of a simulated NPU: `device`, or the one in use if that is one, else npu-sim:910b.

    target: a kernel (`@dvm.kernel`, `dvm.Kernel`), a captured function, a program of `dvm.programs()` or its number. With args it is called
    on the device and everything that launches is checked, coverage and the order of sums included; so is any function that takes none
    (`k.run`, `main`). Else the code is made for the shapes of the last launch (or the declared ones) and nothing of it runs. The device in
    use stays. Raises ArgumentError where there is no code.
    """
    name = chip(device)
    from ..frontends.builder import Kernel
    from ..programs import Program

    if isinstance(target, int) and not 0 <= target < 1 << 63:
        raise ArgumentError(f"there is no program {str(target)[:20]}; dvm.programs() has those there are")
    if not callable(target) and not isinstance(target, (int, Kernel, Program, _core.Program)):
        raise ArgumentError(f"check takes a kernel, a captured function, a program or its number, not {type(target).__name__}")
    names = (getattr(target, name, "") for name in ("__qualname__", "name", "__name__"))
    report = Report(name, next(filter(None, names), f"program {target}"))
    if args or kwargs or _runs_by_itself(target):
        watch(report, lambda: _read(target(*args, **kwargs)))
        return report
    with on(name):
        report.findings += kernel_findings(target, name)
        if not report.findings:
            for program in programs_of(target):
                examine(report, program, name)
    return report


def chip(device: str | None) -> str:
    """The device whose rules count. Raises ArgumentError for one that has none."""
    name = device if device is not None else devices.device() if _simulated(devices.device()) else "npu-sim:910b"
    if name not in devices.profiles() or not _simulated(name):
        simulated = ", ".join(item for item in devices.profiles() if _simulated(item))
        raise ArgumentError(f"{name!r} is no simulated device, whose rules could be checked; there are {simulated}")
    return name


def watch(report: Report, call: Callable[[], Any]) -> None:
    """Runs `call` on the report's device and examines what it launches; an error of ours ends it and is a finding."""
    before = {program.id: program.launches for program in _core.programs()}
    report.ran = True
    _core.sum_spreads()
    _core.set_sum_orders(_ORDERS)
    try:
        with on(report.device):
            call()
            report.device = _still_simulated(report.device)
    except (Error, _core.Error) as raised:
        error = convert(raised)
        kind = "rule" if error.rule else "unwritten" if _core.COVERAGE_FAULT in error.message else "failed"
        report.findings.append(Finding(kind, error.message.partition("\n")[0], ((error.file, error.line),), rule=error.rule))
    finally:
        _core.set_sum_orders(0)
    for program in _core.programs():
        if program.launches != before.get(program.id, 0):
            examine(report, program, "")
    seen = set()
    for spread in _core.sum_spreads():
        if spread["differing"] and (spread["place"], spread["op"], spread["shape"]) not in seen:
            seen.add((spread["place"], spread["op"], spread["shape"]))
            report.findings.append(order_of(spread, *where(spread["place"])))


def _still_simulated(chosen: str) -> str:
    # The device in use after a call, which may have chosen another: what it launched last ran there.
    used = devices.device()
    if not _simulated(used):
        raise ArgumentError(f"the call chose the device {used!r}, which has no rules that could be checked: leave it on {chosen!r}")
    return used


def examine(report: Report, program: Any, device: str) -> None:
    """Adds a program to a report: its code for a device, or ("") that of its last launch."""
    names, chip_name = Names(program), device or report.device
    try:
        facts = _core.check(program.id, device)
    except _core.Error as raised:
        error = convert(raised)
        report.findings.append(Finding("failed", error.message, ((error.file, error.line),), program.id))
        return
    report.programs.append((program.id, program.name))
    for number, area in enumerate(facts["areas"]):
        report.areas.append(AreaReport(program.id, number, area, names))
        report.findings += findings_of(program.id, number, area, names)
    if report.areas and report.areas[-1].program == program.id:
        report.areas[-1].elsewhere = list(_elsewhere(program, facts, chip_name))
    if facts["overflows"]:  # the first is the whole of it, later ones are its halves
        report.findings.append(cut_of(program.id, facts["overflows"][0], len(facts["areas"]), names))
    dtypes = [dtype for _, dtype in program.input_shapes] + [item.dtype for item in program.instructions]
    report.findings += casts_of(program.id, program.instructions, names, dtypes.__getitem__)
    report.findings += lacking_of(program.id, devices.profiles()[chip_name]["arch"], program.instructions, names, dtypes.__getitem__)


def kernel_findings(target: Any, device: str) -> list[Finding]:
    """What a kernel asks of a chip that it has not."""
    from ..frontends import builder_chip
    from ..frontends.builder import Kernel, KernelFunction

    kernel = target.kobj if isinstance(target, KernelFunction) else target
    if not isinstance(kernel, Kernel):
        return []
    errors = list(builder_chip.lacking(kernel.kind, kernel._reached(), device))
    return [Finding("rule", error.message, ((error.file, error.line),), rule=error.rule) for error in errors]


def programs_of(target: Any) -> list[Any]:
    """The core programs of a target. A kernel whose shapes are all known gets its code here."""
    from ..frontends.builder import Kernel, KernelFunction
    from ..programs import Program

    if isinstance(target, int):
        return [_core.program(target)]
    if isinstance(target, Program):
        return [target.core]
    if isinstance(target, _core.Program):
        return [target]
    if isinstance(target, (Kernel, KernelFunction)):
        kernel = target.kobj if isinstance(target, KernelFunction) else target
        if kernel.launch is None and any(node.op in ("Load", "ViewLoad") and node.dims is None for node in kernel._reached()):
            text = "takes any shape, so its code is made when it is called: check(kernel, *arrays), or dvm check --run, or a whole script"
            raise ArgumentError(f"{kernel.name} {text}")
        return kernel._code()
    name = getattr(target, "__qualname__", None)
    found = [program for program in _core.programs() if name and program.name == name]
    if not found:
        raise ArgumentError(f"{name or target!r} has launched nothing yet: check(target, *arguments) calls it")
    return found


@contextlib.contextmanager
def on(device: str) -> Iterator[None]:
    """A block with another device."""
    before = devices.device()
    devices.set_device(device)
    try:
        yield
    finally:
        devices.set_device(before)


def _runs_by_itself(target: Any) -> bool:
    # A function that needs no arguments and has no programs of its own: what it calls is meant.
    from ..frontends.builder import KernelFunction

    if isinstance(target, KernelFunction) or not (inspect.isfunction(target) or inspect.ismethod(target)):
        return False
    parameters = inspect.signature(target).parameters.values()
    needed = any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    return not needed and all(program.name != target.__qualname__ for program in _core.programs())


def _simulated(device: str) -> bool:
    return devices.profiles()[device]["simulated"]


def _read(result: Any) -> None:
    # What is pending runs when it is read.
    if isinstance(result, dict):
        result = list(result.values())
    for item in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(item, (list, tuple, dict)):
            _read(item)
        elif hasattr(item, "shape"):
            np.asarray(item)


def _elsewhere(program: Any, facts: dict[str, Any], device: str) -> Iterable[str]:
    # How the other chips would take the same program.
    mine = devices.profiles()[device]["arch"]
    for name, profile in devices.profiles().items():
        if not profile["simulated"] or profile["faithful"] or profile["arch"] == mine:
            continue
        try:
            other = _core.check(program.id, name)
        except _core.Error as error:
            yield f"on {name}: {error}"
            continue
        vector = [area for area in other["areas"] if area["limit"] and area["kind"] != "move"]
        most = max(vector, key=lambda area: area["peak"], default=None)
        count, here = len(other["areas"]), len(facts["areas"])
        cut = f", in {count} areas instead of {here}" if count != here else ""
        if most is None:
            yield f"on {name}: fits{cut}"
            continue
        tiles = f"tiles of {most['tile'][0]} x {most['tile'][1]}"
        yield f"on {name}: fits{cut}, at most {most['peak']:,} of {most['limit']:,} bytes of UB ({tiles})"
