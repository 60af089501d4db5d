"""A small debug adapter client: what `dvm debug`, `make demo` and the protocol tests speak DAP with. Standard library only."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

Message = dict[str, Any]


class RequestFailed(Exception):
    """The adapter answered `success: false`; `.response` is the whole answer."""

    def __init__(self, response: Message) -> None:
        super().__init__(f"{response.get('command')}: {response.get('message') or 'failed'}")
        self.response = response


def read_message(stream: BinaryIO) -> Message | None:
    """One DAP message, None at the end of the stream."""
    length = 0
    while True:
        line = stream.readline()
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None


class Client:
    """One session with a debug adapter started as a child process.

    Responses are matched to requests by a reader thread; events wait in arrival order until `event` takes them or a handler added by
    `on` has seen them. Reverse requests are answered by `reverse`; one that it raises NotImplementedError for is refused.

    keep: the events that wait for `event`; None for all, and a log of all messages. own_group: Ctrl-C in the client's terminal reaches
    neither the adapter nor the program.
    """

    def __init__(self, command: Sequence[str], env: dict[str, str] | None = None, stderr: Any = None, *, keep: Sequence[str] | None = None,
                 own_group: bool = False) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env,
                                        start_new_session=own_group)
        assert self.process.stdin and self.process.stdout
        self._out: BinaryIO = self.process.stdin  # type: ignore[assignment]
        self._in: BinaryIO = self.process.stdout  # type: ignore[assignment]
        self._keep = keep
        self._seq = 0
        self._lock = threading.Lock()
        self._pending: dict[int, queue.Queue[Message]] = {}
        self._events: list[Message] = []
        self._arrived = threading.Condition()
        self._handlers: list[tuple[str, Callable[[Message], None]]] = []
        self.closed = False
        self.log: list[Message] = []
        self.reverse: Callable[[Message], Message] = lambda request: {}
        self._reader = threading.Thread(target=self._read, name="dap-reader", daemon=True)
        self._reader.start()

    # ---- transport
    def _send(self, message: Message, waiting: queue.Queue[Message] | None = None) -> None:
        with self._lock:
            self._seq += 1
            message["seq"] = self._seq
            if waiting is not None:
                self._pending[self._seq] = waiting
            body = json.dumps(message).encode()
            self._out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self._out.flush()

    def _read(self) -> None:
        while True:
            try:
                message = read_message(self._in)
            except (OSError, ValueError):
                message = None
            if message is None:
                break
            if self._keep is None:
                self.log.append(message)
            if message["type"] == "response":
                waiting = self._pending.pop(message["request_seq"], None)
                if waiting:
                    waiting.put(message)
            elif message["type"] == "request":
                answer = {"type": "response", "request_seq": message["seq"], "command": message["command"]}
                try:
                    self._send({**answer, "success": True, "body": self.reverse(message)})
                except NotImplementedError as error:
                    self._send({**answer, "success": False, "message": str(error)})
            else:
                for name, handler in list(self._handlers):
                    if name == message["event"]:
                        handler(message.get("body") or {})
                if self._keep is None or message["event"] in self._keep:
                    with self._arrived:
                        self._events.append(message)
                        self._arrived.notify_all()
        self.closed = True
        for waiting in list(self._pending.values()):
            waiting.put({"success": False, "message": "the adapter closed the connection", "command": "?"})
        with self._arrived:
            self._arrived.notify_all()

    # ---- requests and events
    def begin(self, command: str, **arguments: Any) -> queue.Queue[Message]:
        """Sends a request; the response will be put in the queue returned."""
        waiting: queue.Queue[Message] = queue.Queue()
        self._send({"type": "request", "command": command, "arguments": arguments}, waiting)
        return waiting

    def request(self, command: str, timeout: float = 20, **arguments: Any) -> Message:
        """The body of the response; RequestFailed if it failed, TimeoutError if none came within `timeout` seconds."""
        try:
            response = self.begin(command, **arguments).get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no answer to {command} within {timeout} s") from None
        if not response.get("success"):
            raise RequestFailed(response)
        return response.get("body") or {}

    def on(self, event: str, handler: Callable[[Message], None]) -> None:
        """Calls `handler(body)` on the reader thread for every such event from now on."""
        self._handlers.append((event, handler))

    def event(self, *names: str, timeout: float = 20, where: Callable[[Message], bool] | None = None) -> Message:
        """Waits for, and takes, the first event of one of those names whose body satisfies `where`."""
        end = time.monotonic() + timeout
        with self._arrived:
            while True:
                for i, message in enumerate(self._events):
                    if message["event"] in names and (where is None or where(message.get("body") or {})):
                        return self._events.pop(i)
                left = end - time.monotonic()
                if left <= 0 or self.closed:
                    ended = " (the adapter closed)" if self.closed else ""
                    raise TimeoutError(f"no event {' or '.join(names)} within {timeout} s{ended}")
                self._arrived.wait(left)

    def seen(self, name: str) -> Iterator[Message]:
        """Bodies of all events of that name so far, taken or not."""
        return (m.get("body") or {} for m in list(self.log) if m.get("event") == name)

    # ---- the ordinary course of a session
    def launch(self, configure: Callable[[Client], None] = lambda client: None, client_args: Message | None = None,
               **arguments: Any) -> None:
        """initialize, launch, `configure(self)` once breakpoints are accepted, configurationDone; returns when the launch is answered."""
        launched = self.prepare(client_args, **arguments)
        configure(self)
        self.run(launched)

    def prepare(self, client_args: Message | None = None, **arguments: Any) -> queue.Queue[Message]:
        """initialize and launch (or the `request` named), until breakpoints are accepted; it will be answered in the queue returned, after
        `run`."""
        self.capabilities = self.request("initialize", **{
            "clientID": "dvm", "adapterID": "dvm", "pathFormat": "path", "linesStartAt1": True, "columnsStartAt1": True,
            "supportsVariableType": True, "supportsVariablePaging": True, "supportsStartDebuggingRequest": True,
            "supportsInvalidatedEvent": True, "supportsMemoryReferences": True, "supportsProgressReporting": True,
            "supportsANSIStyling": True, **(client_args or {})})
        launched = self.begin(str(arguments.get("request", "launch")), **{"console": "internalConsole", **arguments})
        end = time.monotonic() + 60
        while True:  # `initialized`, unless the launch fails first
            try:
                self.event("initialized", timeout=0.2)
                break
            except TimeoutError:
                if not launched.empty() or self.closed or time.monotonic() > end:
                    response = launched.get(timeout=1)
                    raise RequestFailed(response) from None
        return launched

    def run(self, launched: queue.Queue[Message]) -> None:
        """configurationDone: the program begins. Returns when the launch is answered."""
        self.request("configurationDone")
        response = launched.get(timeout=60)
        if not response.get("success"):
            raise RequestFailed(response)

    def set_breakpoints(self, path: str, breakpoints: Sequence[int | Message]) -> list[Message]:
        points = [{"line": b} if isinstance(b, int) else b for b in breakpoints]
        return self.request("setBreakpoints", source={"path": os.path.abspath(path)}, breakpoints=points)["breakpoints"]

    def stack(self, thread: int, **paging: int) -> list[Message]:
        return self.request("stackTrace", threadId=thread, **paging)["stackFrames"]

    def variables(self, reference: int, **paging: Any) -> list[Message]:
        return self.request("variables", variablesReference=reference, **paging)["variables"]

    def scopes(self, frame: int) -> dict[str, Message]:
        return {s["name"]: s for s in self.request("scopes", frameId=frame)["scopes"]}

    def close(self, terminate: bool = True) -> None:
        """Ends the session and waits for the adapter to be gone."""
        if not self.closed:
            try:
                self.request("disconnect", terminateDebuggee=terminate, timeout=5)
            except (RequestFailed, TimeoutError, OSError):
                pass
        try:
            self._out.close()
        except OSError:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._in.close()
