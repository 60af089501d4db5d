"""What is known about a debugged process from outside of it, and how it is ended."""
from __future__ import annotations

import contextlib
import os
import signal
import sys

from dvm_wire.doors import start_time, stat_fields


def command_line(pid: int) -> list[str]:
    """The arguments of a running process, [] where they cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [part.decode("utf-8", "replace") for part in file.read().split(b"\0") if part]
    except OSError:
        return []


def tracer_of(pid: int) -> int:
    """The process that traces it, as gdb does while it injects a debugger; 0 for none, or where that is not told."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("TracerPid:")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def asleep_since(pid: int) -> str:
    """A text that stays the same while a process sleeps and does nothing; "" while it works, waits for a disk, or is gone."""
    fields = stat_fields(pid)
    return " ".join(fields[11:13]) if len(fields) > 13 and fields[0] == "S" else ""


def children(pid: int) -> list[int]:
    """The child processes of a process, [] where they cannot be read. Threads are looked at one by one: a child hangs on its forker."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except (OSError, ValueError):
        pass
    return found


def launcher_of(debugpy: int) -> int | None:
    """The launcher that debugpy's adapter has started, if it is a child of it: with a terminal, the client starts it."""
    for child in children(debugpy):
        if any("debugpy" in part and "launcher" in part for part in command_line(child)):
            return child
    return None


class Debuggee:
    """The session's own process, once debugpy has named it."""

    def __init__(self) -> None:
        self.pid = 0
        self.exited = False
        self.doomed = False  # the session's end is its end
        self._started = ""

    def named(self, pid: int, doomed: bool) -> None:
        self.pid = pid
        self.doomed = doomed
        self._started = start_time(pid)

    def kill(self) -> None:
        """Ends the process, and its group where it leads one, if it is still the one that was named."""
        if not self.pid or sys.platform == "win32" or not self._started or start_time(self.pid) != self._started:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
