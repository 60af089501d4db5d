"""The tensor engine's side: a loopback server the agents in debugged processes connect to, and one peer per agent."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dvm_wire import BUFFER, HEADER, WireError, body_length, decode, encode, new_token, token_matches

from .errors import PeerGone, RequestError
from .log import Log

Message = dict[str, Any]

HELLO_TIMEOUT = 5.0  # seconds a connection may take to say who it is
HELLO_LIMIT = 64 << 10  # bytes of that first frame, from a peer that has not shown a token yet
ANSWER_TIMEOUT = 30.0
KEPT_LIMIT = 4 << 20  # bytes of an agent's frames kept until somebody takes them; older ones go first
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
        message = {**arguments, "id": self._last, "cmd": command}
        self._log.message("->", "agent", message)
        self._writer.write(encode(message))
        self._waiting[self._last] = future
        return future

    async def ask(self, command: str, *, timeout: float | None = ANSWER_TIMEOUT, **arguments: Any) -> Message:
        """The answer to a command. Raises RequestError with the agent's words when it refuses, or when none comes within `timeout` s."""
        future = self.send(command, **arguments)
        try:
            answer = await asyncio.wait_for(future, timeout)
        except (TimeoutError, asyncio.TimeoutError):
            late = f"the program did not answer {command!r} within {timeout:.0f} s: it may be busy in a long native call"
            raise RequestError(late) from None
        if not answer.get("ok"):
            raise RequestError(str(answer.get("error") or f"{command} failed in the program"))
        return answer

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


@dataclass
class _Connection:
    """An agent's connection, and where its frames go: to the session here, to a child session's adapter, or nowhere yet.

    They are read in any case: an agent nobody asks for must not block on a full socket. The newest are kept for who takes it."""

    hello: Message
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    peer: AgentPeer | None = None
    relay: asyncio.StreamWriter | None = None
    kept: collections.deque[bytes] = field(default_factory=collections.deque)
    kept_size: int = 0
    ended: bool = False

    @property
    def taken(self) -> bool:
        return self.peer is not None or self.relay is not None

    def keep(self, body: bytes) -> None:
        self.kept.append(body)
        self.kept_size += len(body)
        while self.kept_size > KEPT_LIMIT:
            self.kept_size -= len(self.kept.popleft())

    def take_kept(self) -> list[bytes]:
        """What came before it was taken, once."""
        bodies = list(self.kept)
        self.kept.clear()
        self.kept_size = 0
        return bodies

    def relay_to(self, writer: asyncio.StreamWriter) -> None:
        """From now on that adapter gets everything, the frames kept first. No await: none may come in between."""
        self.relay = writer
        writer.write(encode({**self.hello, "token": ""}))
        for body in self.take_kept():
            writer.write(HEADER.pack(len(body)) + body)


class AgentServer:
    """Accepts agents that know the token, and relays a child session's adapter to the agent of its process.

    A child process inherits the address of the first adapter; its own session runs in another adapter, which connects here, names the
    process, and gets that agent's frames from then on."""

    def __init__(self, log: Log) -> None:
        self.token = new_token()
        self.address = ""
        # Takes an agent (returns True) or leaves it for a child's adapter to ask for.
        self.take: Callable[[AgentPeer], bool] = lambda agent: False
        self._log = log
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._accepting: set[asyncio.Task[Any]] = set()
        self._agents: dict[int, _Connection] = {}
        self._wanted: dict[int, asyncio.Future[_Connection]] = {}  # processes a child's adapter waits for

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        for listening in self._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)  # connections inherit it
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        if (task := asyncio.current_task()) is not None:
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            hello = await asyncio.wait_for(read_frame(reader, HELLO_LIMIT), HELLO_TIMEOUT)
            if hello is None or not token_matches(self.token, hello.get("token")) or not isinstance(hello.get("pid"), int):
                self._log.note("a connection without the right token was closed")
                return
            if hello.get("type") == "relay":
                await self._relay(hello["pid"], reader, writer)
            elif hello.get("type") == "hello":
                await self._agent(hello, reader, writer)
        except (TimeoutError, asyncio.TimeoutError, WireError, ConnectionError) as error:
            self._log.note(f"a connection was closed: {error!r}")
        except asyncio.CancelledError:
            pass  # the adapter ends; asyncio would print a traceback for what it has cancelled itself
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _agent(self, hello: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(hello, reader, writer)
        self._agents[hello["pid"]] = connection
        waiting = self._wanted.pop(hello["pid"], None)
        if waiting is not None and not waiting.done():
            waiting.set_result(connection)  # what comes until that adapter has it is kept
        else:
            self._offer(connection)
        try:
            while (body := await read_body(reader)) is not None:
                if connection.peer is not None:
                    connection.peer.handle(decode(body) if len(body) < LARGE else await asyncio.to_thread(decode, body))
                elif connection.relay is None:
                    connection.keep(body)
                else:
                    connection.relay.write(HEADER.pack(len(body)) + body)
                    await connection.relay.drain()
        finally:
            connection.ended = True
            if self._agents.get(hello["pid"]) is connection:
                del self._agents[hello["pid"]]
            if connection.peer is not None:
                connection.peer.ended()
            if connection.relay is not None:
                connection.relay.close()

    def _offer(self, connection: _Connection) -> None:
        peer = AgentPeer(connection.hello, connection.reader, connection.writer, self._log)
        if self.take(peer):
            connection.peer = peer
            try:
                for body in connection.take_kept():
                    peer.handle(decode(body))
            except WireError as error:
                self._log.note(f"agent {peer.pid}: {error}")
                peer.close()

    def offer_again(self) -> None:
        """Asks `take` once more about the agents left over: which process is the session's own may be known only now."""
        for connection in list(self._agents.values()):
            if not connection.taken:
                self._offer(connection)

    async def _relay(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._agents.get(pid) or await self._awaited(pid, reader)
        if connection is None:
            return
        connection.relay_to(writer)
        if connection.ended:  # just now: its last frames are all there is
            return
        try:
            while (body := await read_body(reader)) is not None:
                connection.writer.write(HEADER.pack(len(body)) + body)
                await connection.writer.drain()
        finally:
            connection.writer.close()  # the child's session has ended, and its agent learns it by this

    async def _awaited(self, pid: int, reader: asyncio.StreamReader) -> _Connection | None:
        """The agent of a process that has none yet; None if who wants it goes first. It says nothing before it has been answered."""
        wanted = self._wanted[pid] = asyncio.get_running_loop().create_future()
        gone = asyncio.ensure_future(read_body(reader, 0))
        try:
            await asyncio.wait({wanted, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._wanted.get(pid) is wanted:
                del self._wanted[pid]
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, WireError):
                await gone  # the stream has one reader at a time
        return wanted.result() if wanted.done() else None

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            writer.close()
        if self._accepting:  # each ends with its stream; one that the loop's end cancels would be told of as a fault
            await asyncio.wait(self._accepting, timeout=1)


async def connect_relay(address: str, token: str, pid: int, log: Log) -> AgentPeer:
    """The agent of process `pid`, through the adapter it reports to; waits until that process has one. Raises RequestError."""
    host, _, port = address.rpartition(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except (OSError, ValueError) as error:
        raise RequestError(f"the first session's adapter at {address} cannot be reached: {error}") from None
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    writer.write(encode({"type": "relay", "token": token, "pid": pid}))
    hello = await read_frame(reader, HELLO_LIMIT)
    if hello is None:
        writer.close()
        raise PeerGone("the first session has ended")
    return AgentPeer(hello, reader, writer, log)
