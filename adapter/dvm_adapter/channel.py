"""One DAP connection: framing, a sequence counter of its own, and the requests that wait for an answer."""
from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from dvm_wire import dump

from .errors import PeerGone, RequestError
from .log import Log

Message = dict[str, Any]

MAX_MESSAGE = 64 << 20
MAX_HEADER_LINES = 32
# What may wait for a slow editor before messages that can be left out (program output, snapshots) are left out.
BACKLOG_LIMIT = 8 << 20


class ProtocolError(Exception):
    """The peer does not speak DAP: nothing after this point of its stream can be trusted."""


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """The next message, None at the end of the stream. Raises ProtocolError for a broken header or a body that is no JSON object."""
    length = -1
    for _ in range(MAX_HEADER_LINES):
        try:
            line = await reader.readline()
        except ValueError as error:  # a line without an end
            raise ProtocolError(f"header line too long: {error}") from None
        except ConnectionError:
            return None
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit():
                raise ProtocolError(f"Content-Length is {value.strip()!r}")
            length = int(value)
    if not 0 < length <= MAX_MESSAGE:
        raise ProtocolError("a message without a Content-Length" if length < 0 else f"Content-Length {length} is not in 1..{MAX_MESSAGE}")
    try:
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        # Large bodies are parsed on a thread: the loop answers pause and cancel meanwhile.
        message = json.loads(body) if length < 1 << 20 else await asyncio.to_thread(json.loads, body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message body is not JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a message is not an object with a type")
    return message


class Channel:
    """A peer that speaks DAP. The loop's thread only.

    `run` reads until the peer is gone; responses go to whoever awaits them, requests and events to the two callbacks, in order."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
        self.name = name
        self.closed = False
        self._reader = reader
        self._writer = writer
        self._log = log
        self._seq = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    # ---- out
    def send(self, message: Message) -> int:
        """Numbers and writes a message; returns its number. Silently nothing once the peer is gone."""
        self._seq += 1
        message["seq"] = self._seq
        self._log.message("->", self.name, message)
        if not self.closed and not self._writer.is_closing():
            body = dump(message)
            self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self._seq

    def event(self, name: str, body: Message | None = None) -> None:
        self.send({"type": "event", "event": name, "body": body or {}})

    def respond(self, request: Message, body: Message | None = None) -> None:
        self.send({"type": "response", "request_seq": request["seq"], "command": request["command"], "success": True, "body": body or {}})

    def fail(self, request: Message, message: str, *, show: bool = False) -> None:
        # `message` is the short machine form some clients show, body.error.format what VS Code shows.
        self.send({"type": "response", "request_seq": request["seq"], "command": request["command"], "success": False, "message": message,
                   "body": {"error": {"id": 1, "format": message.replace("{", "{{").replace("}", "}}"), "showUser": show}}})

    def request(self, command: str, arguments: Message | None = None) -> asyncio.Future[Message]:
        """Sends a request at once; the future gets the whole response message, failed ones included. PeerGone if the peer goes first."""
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.closed:
            future.set_exception(PeerGone(f"{self.name} has ended"))
            return future
        self._waiting[self.send({"type": "request", "command": command, "arguments": arguments or {}})] = future
        return future

    async def ask(self, command: str, arguments: Message | None = None) -> Message:
        """The body of the response. Raises RequestError with the peer's own text when it failed."""
        response = await self.request(command, arguments)
        if response.get("success"):
            return response.get("body") or {}
        error = (response.get("body") or {}).get("error") or {}
        raise RequestError(response.get("message") or error.get("format") or f"{command} failed in {self.name}")

    def backlog(self) -> int:
        """Bytes written and not yet taken by the peer."""
        return 0 if self.closed else self._writer.transport.get_write_buffer_size()

    # ---- in
    async def run(self, on_request: Callable[[Message], None], on_event: Callable[[Message], None]) -> None:
        """Reads until the stream ends; whoever still waits for an answer then gets PeerGone. Raises ProtocolError."""
        try:
            while (message := await read_message(self._reader)) is not None:
                self._log.message("<-", self.name, message)
                kind = message["type"]
                if kind == "response":
                    number = message.get("request_seq")
                    future = self._waiting.pop(number, None) if type(number) is int else None
                    if future and not future.done():
                        future.set_result(message)
                elif kind == "request":
                    if isinstance(message.get("seq"), int) and isinstance(message.get("command"), str):
                        on_request(message)
                    else:
                        words = "a request needs a whole number as its seq and a text as its command"
                        self.fail({"seq": None, "command": None, **message}, words)
                elif kind == "event":
                    on_event(message)
        finally:
            self.closed = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(PeerGone(f"{self.name} has ended"))
                    future.exception()  # retrieved: nobody may be left to await it
            self._waiting.clear()

    async def close(self) -> None:
        """Writes what is left and closes; waits at most a second for a peer that does not read."""
        if self._writer.is_closing():
            return
        try:
            await asyncio.wait_for(self._writer.drain(), 1)
        except (TimeoutError, asyncio.TimeoutError, ConnectionError):
            pass
        self._writer.close()
