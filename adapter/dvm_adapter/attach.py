"""Attaching by process id: through the door of a program that has imported dvm_core, else by debugpy's injection, if that can work."""
from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dvm_wire import ENV_LAUNCHED
from dvm_wire.doors import NoDoor, Shut, environment_of, knock, start_time

from .channel import Message
from .config import environment_for
from .errors import RequestError
from .processes import command_line, tracer_of

if TYPE_CHECKING:
    from .session import Session

_KNOCK = 30.0  # seconds for the door's first answer: a program deep in a native call that holds the GIL gives none
_IMPORTING = 5.0  # seconds from its start in which a program may yet import dvm_core
_LOOK = 0.2  # seconds between knocks meanwhile
_LEAVING = 3.0  # seconds for the debugger of a session that was killed to leave, whose agent has left already
_ENTER = 60.0  # seconds for Python's debugger to be loaded and connected
_PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")
_OLDEST = (3, 8)  # that debugpy injects itself into
_NONE_HERE = os.name == "nt"
_LISTEN = "have the program call dvm.debug.listen, and attach with \"connect\""


def check(pid: int) -> None:
    """Raises RequestError for a process that nobody may attach to."""
    if _NONE_HERE:  # nor can it be asked whether it lives: os.kill(pid, 0) is Ctrl+C there
        raise RequestError(f"there is no attaching by process id on Windows: {_LISTEN}", show=True)
    try:
        owner = os.stat(f"/proc/{pid}").st_uid if os.path.isdir("/proc/self") else None
        if owner is None:
            os.kill(pid, 0)
    except PermissionError:
        owner = -1
    except (OSError, OverflowError):
        raise RequestError(f"there is no process {pid}", show=True) from None
    if owner is not None and hasattr(os, "getuid") and owner != os.getuid():
        raise RequestError(f"process {pid} belongs to another user ({_name_of(owner)}): only that user can attach to it", show=True)
    if environment_of(pid).get(ENV_LAUNCHED) == "1":
        raise RequestError(f"process {pid} was started by a debugger, and is debugged by it", show=True)


def _name_of(owner: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(owner).pw_name
    except (ImportError, KeyError):
        return str(owner)


async def at_door(pid: int) -> Message | str:
    """What the process says at its door; a text that says why there is nobody. Raises RequestError if it cannot be attached to at all."""
    try:
        told = await _first_answer(pid)
        end = time.monotonic() + _LEAVING
        while told.get("debugged") and told.get("agent") is False and time.monotonic() < end:
            await asyncio.sleep(_LOOK)
            told = await _first_answer(pid)
    except NoDoor as reason:
        return str(reason)
    except Shut as reason:  # nor is it injected: a process that has no time to answer would be stopped for long
        raise RequestError(f"process {pid} {reason}", show=True) from None
    if told.get("debugged"):
        raise RequestError(f"process {pid} is attached to a debugger already: end that session first", show=True)
    return told


async def _first_answer(pid: int) -> Message:
    """What a knock is answered with; a process that was started just now is given time to import dvm_core. Raises Shut."""
    while True:
        try:
            return await asyncio.to_thread(knock, pid, {"cmd": "hello"}, _KNOCK)
        except NoDoor:
            if not _young(pid):
                raise
        await asyncio.sleep(_LOOK)


def _young(pid: int) -> bool:
    try:
        return float(_read("/proc/uptime").split()[0]) - int(start_time(pid)) / os.sysconf("SC_CLK_TCK") < _IMPORTING
    except (IndexError, ValueError):  # gone, or a system that does not say
        return False


async def enter(session: Session, pid: int, access: str, answer: asyncio.Future[Any]) -> None:
    """Leads Python's debugger of the process to our debugpy, once that waits for it. Raises RequestError."""
    waiting = session.python_events.waiting
    await asyncio.wait({answer, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        return  # refused by debugpy: the answer says why
    host, port = waiting.result()
    children = session.config.arguments.get("subProcess") is not False
    environment = environment_for(session.config, session.agents.address, session.agents.token)
    ask = {"cmd": "attach", "host": host, "port": port, "access": access, "subProcess": children, "environment": environment}
    try:
        told = await asyncio.to_thread(knock, pid, ask, _ENTER)
        reason = "" if told.get("ok") else str(told.get("error"))
    except Shut as error:
        reason = str(error)
    if reason:
        raise RequestError(f"process {pid} {reason}", show=True)


async def injected(session: Session, pid: int, answer: asyncio.Future[Any]) -> None:
    """Returns when debugpy is in the process, or is answering. Raises RequestError at once where its injection has failed."""
    failed = session.python_events.injection_failed
    await asyncio.wait({answer, failed, session.python_events.ready}, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        raise RequestError(f"debugpy could not inject itself into process {pid}; the console has what gdb said. Else: {_LISTEN}", show=True)


def check_injection(pid: int, no_door: str) -> None:
    """Whether debugpy can inject itself into the process. no_door: why it has to. Raises RequestError with what to do."""
    def refused(reason: str, remedy: str) -> RequestError:
        return RequestError(f"process {pid} {no_door}. Injecting the debugger {reason}: {remedy}", show=True)

    if sys.platform != "linux":
        return  # debugpy says by itself what is missing there
    version = _python_of(pid)
    if version is None:
        line = " ".join(command_line(pid))[:80] or "its command line cannot be read"
        raise RequestError(f"process {pid} is no Python program ({line})", show=True)
    if version < _OLDEST:
        raise refused(f"needs Python {_OLDEST[0]}.{_OLDEST[1]}, and it runs {version[0]}.{version[1]}", _LISTEN)
    if platform.machine() not in ("x86_64", "AMD64", "i386", "i686"):
        raise refused(f"does not work on {platform.machine()}, for which debugpy has no library", _LISTEN)
    if tracer := tracer_of(pid):
        raise refused(f"is not possible while process {tracer} traces it", f"end process {tracer} first")
    if shutil.which("gdb") is None:
        raise refused("needs gdb, which is not installed", f"install it (apt install gdb, dnf install gdb), or {_LISTEN}")
    scope = _read(str(_PTRACE)).strip()
    if scope == "3":
        raise refused(f"is forbidden on this machine ({_PTRACE} is 3) until it starts anew", _LISTEN)
    if scope in ("1", "2") and os.geteuid() != 0:
        raise refused(f"is forbidden ({_PTRACE} is {scope})", f"sudo sysctl kernel.yama.ptrace_scope=0, or {_LISTEN}")


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _python_of(pid: int) -> tuple[int, int] | None:
    """The version of Python that a process runs, None if it runs none."""
    try:
        names = [os.path.basename(os.readlink(f"/proc/{pid}/exe"))]
    except OSError:
        names = []
    names += [os.path.basename(line.rpartition(" ")[2]) for line in _read(f"/proc/{pid}/maps").splitlines()]
    found = next((match for name in names if (match := re.match(r"(?:lib)?python(\d)\.(\d+)", name))), None)
    return (int(found[1]), int(found[2])) if found else None
