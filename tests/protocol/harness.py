"""The session harness: a real adapter over stdio, a real debugpy, and a program."""
import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
BOUND = 60  # seconds: on hanging, not on speed
sys.path[:0] = [str(ROOT / "adapter"), str(Path(__file__).resolve().parent)]

from dvm_adapter.client import Client, RequestFailed  # noqa: E402


def environment() -> dict[str, str]:
    """For the adapter and what it starts: this tree's packages, nothing left of a debugger around the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DVM_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(ROOT / "adapter"), str(ROOT)]), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def line_of(path: Path | str, text: str) -> int:
    """The number of the first line that contains `text`."""
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if text in line:
            return number
    raise ValueError(f"{text!r} is not in {path}")


def family(mark: str) -> list[psutil.Process]:
    """All live processes of one trial: they inherit its mark in the environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("DVM_KILL_TEST") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def gone(mark: str) -> None:
    """Waits until nothing of that trial is left."""
    end = time.monotonic() + BOUND
    while left := family(mark):
        assert time.monotonic() < end, left
        time.sleep(0.05)


class Session(Client):
    """A client with the tests' shorthands."""

    log_file: str = ""
    capabilities: dict[str, Any]

    def start(self, program: Path | str, *, at: Callable[[Client], Any] = lambda client: None, **arguments: Any) -> None:
        """Launches a program of the programs folder."""
        self.launch(at, program=str(PROGRAMS / program), **{"cwd": str(PROGRAMS), **arguments})

    def attach(self, path: Path | str, *lines: int, timeout: float = BOUND, **configuration: Any) -> None:
        """Attaches as the configuration says, with breakpoints at those lines of the file."""
        self.request("initialize", timeout=timeout, adapterID="dvm", clientID="test", supportsStartDebuggingRequest=True)
        attached = self.begin("attach", **configuration)
        end = time.monotonic() + timeout
        while True:  # until breakpoints are accepted, or the request is refused
            with contextlib.suppress(TimeoutError):
                self.event("initialized", timeout=0.2)
                break
            if not attached.empty():
                raise RequestFailed(attached.get())
            assert time.monotonic() < end
        self.set_breakpoints(str(path), list(lines))
        self.request("configurationDone", timeout=timeout)
        response = attached.get(timeout=timeout)
        assert response["success"], response

    def stopped(self, **expected: Any) -> dict[str, Any]:
        """The next stop's body."""
        body = self.event("stopped")["body"]
        assert {name: body.get(name) for name in expected} == expected, body
        return body

    def go_on(self, thread: int = 1) -> None:
        self.request("continue", threadId=thread)

    def printed(self) -> str:
        return "".join(body["output"] for body in self.seen("output") if body.get("category") == "stdout")

    def refusal(self, command: str, **arguments: Any) -> str:
        """The text of a request that must fail."""
        try:
            body = self.request(command, **arguments)
        except RequestFailed as failure:
            return str(failure.response.get("message"))
        raise AssertionError(f"{command} succeeded: {body}")

    def run_out(self) -> None:
        """Waits for the program's end."""
        self.event("terminated")


class Terminal:
    """One `dvm debug` with pipes; what it prints is collected by threads."""

    def __init__(self, *arguments: Any, cwd: Path = PROGRAMS, silent: bool = False) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen([sys.executable, "-m", "dvm_core.cli", "debug", *map(str, arguments)], cwd=cwd, text=True,
                                        encoding="utf-8", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**environment(), "DVM_KILL_TEST": self.mark, "PYTHONIOENCODING": "utf-8"})
        self.lines: list[str] = []
        self._coming: queue.Queue[str | None] = queue.Queue()
        if silent:
            self.process.stdout.close()
            self._coming.put(None)
        else:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._coming.put(line.rstrip("\n"))
        self._coming.put(None)

    def type(self, *commands: str) -> None:
        self.process.stdin.write("".join(command + "\n" for command in commands))
        self.process.stdin.flush()

    def until(self, text: str) -> str:
        """Reads up to a line with the text."""
        while True:
            line = self._coming.get(timeout=BOUND)
            assert line is not None, (text, self.lines)
            self.lines.append(line)
            if text in line:
                return line

    def end(self) -> int:
        """Its exit code, once it has ended and nothing it started is left."""
        self.process.stdin.close()
        code = self.process.wait(BOUND)
        while (line := self._coming.get(timeout=BOUND)) is not None:
            self.lines.append(line)
        gone(self.mark)
        return code
