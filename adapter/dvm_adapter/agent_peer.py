"""The tensor engine's side: one peer per agent."""
from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import Callable
from typing import Any

from dvm_wire import HEADER, WireError, body_length, decode, encode

from .errors import PeerGone, RequestError
from .log import Log
from .path_map import PathMap

Message = dict[str, Any]

HELLO_LIMIT = 64 << 10  # bytes of that first frame, from a peer that has not shown a token yet
ANSWER_TIMEOUT = 30.0
_OWN_PATHS = ("begunAs",)  # commands that name files as the program does
LARGE = 1 << 20  # bytes from which a frame is parsed on a thread: the loop answers meanwhile


async def read_frame(reader: asyncio.StreamReader, limit: int | None = None) -> Message | None:
    """The next frame's object, None at the end of the stream. Raises WireError."""
    body = await read_body(reader, limit)
    if body is None:
        return None
    return decode(body) if len(body) < LARGE else await asyncio.to_thread(decode, body)


async def read_body(reader: asyncio.StreamReader, limit: int | None = None) -> bytes | None:
    try:
        length = body_length(await reader.readexactly(HEADER.size))
        if limit is not None and length > limit:
            raise WireError(f"the first frame has {length} bytes, at most {limit} are read from a stranger")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class AgentPeer:
    """The agent in one debugged process. The loop's thread only."""

    def __init__(self, hello: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
        self.hello = hello
        self.pid = int(hello.get("pid") or 0)
        self.gone = False
        self.on_event: Callable[[Message], None] = lambda event: None
        self.on_gone: Callable[[], None] = lambda: None
        self.paths: PathMap | None = None  # where the program's files are called otherwise
        self._reader, self._writer, self._log = reader, writer, log
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    def send(self, command: str, **arguments: Any) -> asyncio.Future[Message]:
        """Sends a command at once, in the order of the calls; the future gets the whole answer. PeerGone if the agent goes first."""
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self.gone:
            future.set_exception(PeerGone("the program's tensor engine has gone"))
            future.exception()
            return future
        self._last += 1
        if self.paths and command not in _OWN_PATHS:
            arguments = self.paths.message_to_program(arguments)
        message = {**arguments, "id": self._last, "cmd": command}
        self._log.message("->", "agent", message)
        self._writer.write(encode(message))
        self._waiting[self._last] = future
        return future

    async def ask(self, command: str, *, timeout: float | None = ANSWER_TIMEOUT, **arguments: Any) -> Message:
        """What a command is answered with. Raises RequestError with the agent's words when it refuses, or when none comes within `timeout`
        s."""
        future = self.send(command, **arguments)
        try:
            answer = await asyncio.wait_for(future, timeout)
        except (TimeoutError, asyncio.TimeoutError):
            late = f"the program did not answer {command!r} within {timeout:.0f} s: it may be busy in a long native call"
            raise RequestError(late) from None
        if not answer.get("ok"):
            raise RequestError(str(answer.get("error") or f"{command} failed in the program"))
        return {key: value for key, value in answer.items() if key not in ("re", "ok")}

    async def run(self) -> None:
        """Reads until the agent is gone. Events go to `on_event` in order, before any answer that was sent after them."""
        try:
            while (message := await read_frame(self._reader)) is not None:
                self.handle(message)
        except WireError as error:
            self._log.note(f"agent {self.pid}: {error}")
        finally:
            self.ended()

    def handle(self, message: Message) -> None:
        """A frame of the agent's."""
        self._log.message("<-", "agent", message)
        if self.paths:
            message = self.paths.message_to_client(message)
        if isinstance(message.get("re"), int):
            future = self._waiting.pop(message["re"], None)
            if future and not future.done():
                future.set_result(message)
        elif isinstance(message.get("ev"), str):
            try:
                self.on_event(message)
            except Exception:  # a mistake over one event must not cost the connection
                self._log.note(traceback.format_exc())

    def ended(self) -> None:
        """The stream has ended: whoever waits for an answer gets PeerGone."""
        self.gone = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerGone("the program's tensor engine has gone"))
                future.exception()
        self._waiting.clear()
        self._writer.close()
        self.on_gone()

    def close(self) -> None:
        self._writer.close()


async def open_wire(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the wire server of another adapter. Raises PeerGone."""
    host, _, port = address.rpartition(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except (OSError, ValueError) as error:
        raise PeerGone(f"the first session's adapter at {address} cannot be reached: {error}") from None
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer
