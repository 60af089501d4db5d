"""Doors: how a debugger enters a running program that waits for none.

A program that imports dvm_core listens on a socket in a folder that only its user can enter, and writes beside it, for its user alone, the
address and a token: PID-START.json and PID-START.sock, START being the kernel's time of the process's start, which tells it from a later
one with the same number. Where there are no Unix sockets, or the folder's path is too long for one, it is a port of the loopback device.
Who knocks (`knock`) sends one frame with the token and gets one frame back.
"""
from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .access import new_token
from .blocking import read_frame, write_frame
from .frames import WireError
from .lastrun import cache

_LONGEST = 100  # bytes of a Unix socket's path that every system takes
_MOST_BYTES = 4096  # of a door's file
_NO_SIGNAL_0 = os.name == "nt"  # os.kill(pid, 0) is Ctrl+C there, not a question
_JOB = ".job"  # ends the name of the file that leads to who speaks for a job's ranks
_MARK = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"


class Shut(Exception):
    """The process's door cannot be entered; the text says why, in a sentence without its subject."""


class NoDoor(Shut):
    """The process has none."""


def start_time(pid: int) -> str:
    """When a process was started, in the kernel's own unit; "" if it is gone. Tells a process from a later one with the same number."""
    fields = stat_fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""  # of a zombie only the number is left


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on, [] for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses before them may hold anything.
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _machine() -> str:
    """Tells process numbers of this machine and namespace from others': a home may be shared, and numbers are not."""
    parts = []
    with contextlib.suppress(OSError):
        parts.append(Path(_MARK[0]).read_text()[:8])
    with contextlib.suppress(OSError):
        parts.append("".join(filter(str.isdigit, os.readlink(_MARK[1]))))
    return "-".join(parts) or "here"


def folders(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Where a process with that environment may have its door; it takes the first one it can make."""
    found = [] if environment.get("DVM_CACHE") or not environment.get("XDG_RUNTIME_DIR") else [Path(environment["XDG_RUNTIME_DIR"]) / "dvm"]
    return [base / "doors" / _machine() for base in [*found, cache(environment)]]


def _stem(pid: int) -> str:
    return f"{pid}-{start_time(pid) or 0}"


class Door:
    """An open door of this process."""

    def __init__(self) -> None:
        """Raises OSError where none can be made."""
        self.token = new_token()
        self.pid = os.getpid()
        error: OSError | None = None
        for folder in folders():
            try:
                _private(folder)
                self._file = folder / f"{_stem(self.pid)}.json"
                self._listen(folder)
                return
            except OSError as failed:
                error = failed
        raise error or OSError("there is no folder for it")

    def _listen(self, folder: Path) -> None:
        sweep(folder)
        path = self._file.with_suffix(".sock")
        if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST:
            self.socket = socket.socket(socket.AF_UNIX)
            path.unlink(missing_ok=True)
            self.socket.bind(str(path))
            os.chmod(path, 0o600)
            address: dict[str, Any] = {"socket": str(path)}
        else:
            self.socket = socket.socket()
            self.socket.bind(("127.0.0.1", 0))
            address = {"port": self.socket.getsockname()[1]}
        self.socket.listen(8)
        _write(self._file, {**address, "token": self.token})

    def close(self) -> None:
        """In a forked child only its copy of the socket."""
        self.socket.close()
        if os.getpid() == self.pid:
            _remove(self._file)


def _write(file: Path, told: dict[str, Any]) -> None:
    """At once, and for this user alone."""
    partial = file.with_name(file.name + ".part")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(told, out)
    os.replace(partial, file)


def _private(folder: Path) -> None:
    """Makes the folder, for this user alone. Raises OSError if it is another's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
        file.with_suffix(".sock").unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Removes what processes that are gone have left, where it can be asked whether a process lives."""
    if _NO_SIGNAL_0:
        return
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            stem = "-".join(file.name.partition(".")[0].split("-")[:2])
            pid = stem.partition("-")[0]
            if pid.isdecimal() and not _lives(int(pid), stem):
                file.unlink(missing_ok=True)


def _lives(pid: int, stem: str) -> bool:
    if os.path.isdir("/proc/self"):
        return _stem(pid) == stem
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with, {} where it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0") if entry)
            return {name: value for name, _, value in pairs}
    except OSError:
        return {}


def knock(pid: int, message: dict[str, Any], timeout: float = 10.0) -> dict[str, Any]:
    """The answer of a process's door to `message`. Raises Shut."""
    told = _find(pid)
    family, address = (socket.AF_UNIX, told["socket"]) if told.get("socket") is not None else (socket.AF_INET, ("127.0.0.1", told["port"]))
    try:
        with socket.socket(family) as sock:
            sock.settimeout(timeout)
            sock.connect(address)
            write_frame(sock, {**message, "token": told["token"]})
            answer = read_frame(sock)
    except TimeoutError:
        raise Shut(f"did not answer within {timeout:.0f} s: it may be stopped, or busy in a long native call") from None
    except (OSError, WireError) as error:
        raise Shut(f"does not answer ({error})") from None
    if answer is None:
        raise Shut("did not answer: it ended, or does not take orders from this user")
    return answer


def _gone(pid: int) -> bool:
    try:
        if not _NO_SIGNAL_0:
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # somebody else's
        pass
    return False


def _find(pid: int) -> dict[str, Any]:
    seen = dict.fromkeys([*folders({**os.environ, **environment_of(pid)}), *folders()])
    reason = "has not imported dvm_core (yet), so it has no door; or it runs where another cache or another home is used"
    if _gone(pid):
        raise Shut("does not exist")
    for file in (folder / f"{_stem(pid)}.json" for folder in seen):
        try:
            text = _read(file)
        except OSError:
            continue
        told = None if text is None else _told(text)
        if told is not None:
            return told
        reason = f"has a door that cannot be read: {file}"
    raise NoDoor(reason)


def _read(file: Path) -> bytes | None:
    """What this user alone has written there, None if it is no file. Raises OSError, and Shut if others can write to it."""
    # Not to wait for a writer, where it is a pipe.
    with open(os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
        status = os.fstat(opened.fileno())
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077):
            raise Shut(f"has a door that others than you can write to: {file}")
        return opened.read(_MOST_BYTES + 1) if stat.S_ISREG(status.st_mode) else None


def has_door(pid: int) -> bool:
    """Whether the process has one that can be found."""
    try:
        _find(pid)
    except NoDoor:
        return False
    except Shut:  # one that is not as it should be
        return not _gone(pid)
    return True


def leave_job(launcher: int, marks: tuple[str, ...], told: dict[str, str]) -> None:
    """Leaves address and token of who speaks for the ranks that the process `launcher` started, where those find it (`job`). marks: what
    tells its jobs apart. Raises OSError."""
    error = OSError("there is no folder for it")
    for folder in folders():
        try:
            _private(folder)
            _write(folder / _job_name(launcher, marks), told)
            return
        except OSError as failed:
            error = failed
    raise error


def _job_name(launcher: int, marks: tuple[str, ...]) -> str:
    return f"{_stem(launcher)}-{zlib.crc32(chr(0).join(marks).encode('utf-8', 'surrogateescape')):08x}{_JOB}"


def job(launcher: int, marks: tuple[str, ...]) -> dict[str, str] | None:
    """What `leave_job` has left, None if it has left nothing that can be used."""
    for folder in folders():
        with contextlib.suppress(OSError, Shut, ValueError, RecursionError):
            told = json.loads((_read(folder / _job_name(launcher, marks)) or b"")[:_MOST_BYTES])
            if isinstance(told, dict) and all(isinstance(told.get(name), str) for name in ("address", "token")):
                return told
    return None


def _told(text: bytes) -> dict[str, Any] | None:
    """What a door's file says, None if that leads nowhere."""
    try:
        told = json.loads(text) if len(text) <= _MOST_BYTES else None
        if not isinstance(told, dict):
            return None
        token, port, path = told.get("token"), told.get("port"), told.get("socket")
        if not isinstance(token, str) or not token.isascii():
            return None
        if path is not None:
            fits = isinstance(path, str) and hasattr(socket, "AF_UNIX") and 0 < len(os.fsencode(path)) <= _LONGEST and "\0" not in path
        else:
            fits = type(port) is int and 0 < port < 1 << 16
    except (ValueError, RecursionError):  # among them what no file system can name
        return None
    return told if fits else None


__all__ = [
    "Door", "NoDoor", "Shut", "environment_of", "folders", "has_door", "job", "knock", "leave_job", "start_time", "stat_fields", "sweep",
]
