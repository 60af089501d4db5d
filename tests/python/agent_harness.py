"""A debug adapter for tests, as far as the wire goes: the agent of this very process connects to it; programs run on threads."""
import os
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from dvm_core import agent

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "adapter") not in sys.path:
    sys.path.insert(0, str(ROOT / "adapter"))

import dvm_wire  # noqa: E402


class Refused(Exception):
    """The agent answered with an error."""


class Adapter:
    """Accepts one agent. `request` waits for the answer, `event` for the next event of a name."""

    def __init__(self, environment=os.environ):
        self.token = dvm_wire.new_token()
        self._server = socket.create_server(("127.0.0.1", 0))
        environment["DVM_AGENT"] = f"127.0.0.1:{self._server.getsockname()[1]}"
        environment["DVM_TOKEN"] = self.token
        self._environment = environment
        self._arrived = threading.Condition()
        self._answers, self.events, self.seen = {}, [], []
        self._last = 0
        self.sock = None
        self.hello = None

    def accept(self, timeout=20):
        self._server.settimeout(timeout)
        self.sock, _ = self._server.accept()
        self.sock.settimeout(None)
        self.hello = dvm_wire.read_frame(self.sock)
        assert dvm_wire.token_matches(self.token, self.hello["token"])
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self):
        while True:
            try:
                message = dvm_wire.read_frame(self.sock)
            except (OSError, dvm_wire.WireError):
                message = None
            with self._arrived:
                if message is None:
                    self.events.append({"ev": "eof"})
                    self._arrived.notify_all()
                    return
                self.seen.append(message)
                if "re" in message:
                    self._answers[message["re"]] = message
                else:
                    self.events.append(message)
                self._arrived.notify_all()

    def send(self, command, **arguments):
        self._last += 1
        dvm_wire.write_frame(self.sock, {"id": self._last, "cmd": command, **arguments})
        return self._last

    def answer(self, number, timeout=20):
        with self._arrived:
            assert self._arrived.wait_for(lambda: number in self._answers, timeout), f"no answer to request {number}"
            answer = self._answers.pop(number)
        if not answer.pop("ok"):
            raise Refused(answer["error"])
        del answer["re"]
        return answer

    def request(self, command, timeout=20, **arguments):
        return self.answer(self.send(command, **arguments), timeout)

    def event(self, name, timeout=20, where=lambda event: True):
        """Takes the first event of that name; earlier ones of other names stay."""
        end = time.monotonic() + timeout
        with self._arrived:
            while True:
                for i, event in enumerate(self.events):
                    if event.get("ev") == name and where(event):
                        return self.events.pop(i)
                left = end - time.monotonic()
                assert left > 0, f"no event {name} within {timeout} s; there were {[(e.get('ev'), e.get('text')) for e in self.events]}"
                self._arrived.wait(left)

    def none(self, name, seconds=0.3):
        """No event of that name comes within the time."""
        time.sleep(seconds)
        assert not [e for e in self.events if e.get("ev") == name]

    def close(self):
        for name in ("DVM_AGENT", "DVM_TOKEN"):
            self._environment.pop(name, None)
        for sock in (self.sock, self._server):
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                sock.close()


class Running:
    """A function on a thread of its own, as a program under the debugger."""

    def __init__(self, function, *arguments):
        self.result = self.error = None

        def run():
            try:
                self.result = function(*arguments)
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self, timeout=20):
        self.thread.join(timeout)
        frame = sys._current_frames().get(self.thread.ident)
        assert not self.thread.is_alive(), "the program is still running:\n" + "".join(traceback.format_stack(frame))
        if self.error is not None:
            raise self.error
        return self.result


def line_of(text, path):
    """The number of the first line of a file that contains `text`."""
    return next(n for n, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1) if text in line)


@pytest.fixture
def adapter():
    """An adapter this process's agent has connected to."""
    made = Adapter()
    assert agent.start()
    made.accept()
    yield made
    made.close()
    connection = agent._session.connection
    connection.close()
    connection.thread.join(10)
    assert not connection.thread.is_alive()
