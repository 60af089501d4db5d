"""The session harness: a real adapter over stdio, a real debugpy, and a program."""
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
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


class Session(Client):
    """A client with the tests' shorthands."""

    log_file: str = ""
    capabilities: dict[str, Any]

    def start(self, program: Path | str, *, at: Callable[[Client], Any] = lambda client: None, **arguments: Any) -> None:
        """Launches a program of the programs folder."""
        self.launch(at, program=str(PROGRAMS / program), **{"cwd": str(PROGRAMS), **arguments})

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
