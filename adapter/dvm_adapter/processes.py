"""What is known about a debugged process from outside of it, and how it is ended."""
from __future__ import annotations

import contextlib
import os
import signal
import sys


def command_line(pid: int) -> list[str]:
    """The arguments of a running process, [] where they cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [part.decode("utf-8", "replace") for part in file.read().split(b"\0") if part]
    except OSError:
        return []


def start_time(pid: int) -> str:
    """When a process was started, in the kernel's own unit; "" if it is gone. Tells a process from a later one with the same number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything; the fields after it are numbers. Start time is the 22nd field.
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


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
