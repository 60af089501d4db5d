"""The socket to the debug adapter, and the thread that serves it: hidden from the Python debugger, never suspended by it."""
from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import dvm_wire

TICK = 0.2  # seconds between looks at counters while nothing arrives


def hidden_thread(run: Callable[[], None], name: str = "dvm-agent") -> threading.Thread:
    """A daemon thread that pydevd neither lists, nor traces, nor suspends."""
    return hidden(threading.Thread(target=run, name=name, daemon=True))


def hidden(thread: threading.Thread) -> threading.Thread:
    """Hides that thread from pydevd."""
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    return thread


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


class Connection:
    """One connection. `on_message` and `on_tick` run on its thread, `on_gone` there as well, once, when the adapter has gone."""

    def __init__(self, sock: socket.socket, of_environment: bool = True) -> None:
        """of_environment: whether it leads to the debugger that the environment names."""
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None
        self.on_tick: Callable[[], None] = lambda: None
        self.on_events: Callable[[], float] = lambda: 0.0  # gives the seconds for which it wants to be left alone
        self.on_gone: Callable[[], None] = lambda: None
        self.thread: threading.Thread | None = None
        self.before: dict[str, str | None] = {}  # more of the environment to be put back once it is gone: the former values
        self.events_fd = -1  # readable when the native core has something to report
        self._sock = sock
        self._closed = threading.Event()
        self._of_environment = of_environment
        self._launched = of_environment and dvm_wire.launched()
        self._token = os.environ.get(dvm_wire.ENV_TOKEN)
        self._fault = ""  # the last one of our own that was told
        self._rested = 0.0  # when events are to be looked at again

    @classmethod
    def open(cls, device: str) -> Connection | None:
        """Connects as the environment says, and says hello. None if no debugger is named there. Raises OSError, WireError."""
        sock = dvm_wire.connect()
        if sock is None:
            return None
        hello = {"type": "hello", "token": os.environ.get(dvm_wire.ENV_TOKEN, ""), "pid": os.getpid(),
                 "python": list(sys.version_info[:2]), "device": device, "cwd": _cwd()}
        dvm_wire.write_frame(sock, hello)
        return cls(sock)

    def start(self) -> None:
        self.thread = hidden_thread(self._run)
        self.thread.start()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def send(self, message: dict[str, Any]) -> None:
        """Sends a frame from any thread. Nothing is raised when the adapter has gone: the serving thread notices that by itself."""
        if self.closed:
            return
        try:
            dvm_wire.write_frame(self._sock, message)
        except OSError:
            pass
        except (dvm_wire.WireError, TypeError) as error:
            # Too large, or a value JSON has no word for: whoever asked still has to get an answer.
            if "re" in message:
                dvm_wire.write_frame(self._sock, {"re": message["re"], "ok": False, "error": str(error)})

    def event(self, name: str, /, **fields: Any) -> None:
        self.send({"ev": name, **fields})

    def close(self) -> None:
        """Ends the connection on our side: the process goes on, whoever launched it."""
        self._launched = False
        self._closed.set()
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def wait_until_gone(self, seconds: float = 5.0) -> None:
        """After it was closed, or broke: until `on_gone` has run, unless this is its own thread."""
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(seconds)

    def abandon(self) -> None:
        """After a fork: the connection and its thread are the parent's; only this process's copy of the socket is closed."""
        self._closed.set()
        self._sock.close()

    def _run(self) -> None:
        # Not select(): it refuses descriptors above 1023, which a program with many open files gives out. Nor epoll, which a fork shares.
        try:
            with getattr(selectors, "PollSelector", selectors.SelectSelector)() as selector:
                selector.register(self._sock, selectors.EVENT_READ)
                while self._serve(selector):
                    pass
        except (OSError, ValueError, dvm_wire.WireError):
            pass
        # A process that the debugger started must not outlive it, in whatever state it is; an attached one runs on.
        if self._launched and not self.closed:
            os.kill(os.getpid(), signal.SIGKILL)
        self._closed.set()
        if not self._launched and self._of_environment:
            self._forget_address()
        try:
            self.on_gone()
        finally:
            self._sock.close()

    def _forget_address(self) -> None:
        """What led here leads nowhere any more, also for children to come."""
        if os.environ.get(dvm_wire.ENV_TOKEN) == self._token:
            dvm_wire.forget(os.environ, self.before)

    def _serve(self, selector: selectors.BaseSelector) -> bool:
        rest = self._rested - time.monotonic()
        if rest > 0 and self.events_fd in selector.get_map():
            selector.unregister(self.events_fd)
        elif rest <= 0 <= self.events_fd and self.events_fd not in selector.get_map():
            selector.register(self.events_fd, selectors.EVENT_READ)
        ready = [key.fileobj for key, _ in selector.select(min(TICK, rest) if rest > 0 else TICK)]
        if self.closed:
            return False
        if self.events_fd in ready:
            self._guarded(self._look_at_events)
        if self._sock in ready:
            message = dvm_wire.read_frame(self._sock)
            if message is None:
                return False
            self.on_message(message)
        self._guarded(self.on_tick)
        return True

    def _look_at_events(self) -> None:
        self._rested = time.monotonic() + self.on_events()

    def _guarded(self, work: Callable[[], None]) -> None:
        """A fault of ours is told, once, and the connection goes on: without it a program at a stop could not be let go any more."""
        try:
            work()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            if fault != self._fault:
                self._fault = fault
                self.event("notice", text=f"a fault in the debugger's agent: {fault}", path="", line=0, category="error")
