"""The loopback server that agents in debugged processes connect to, and the adapters of child sessions and of ranks."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dvm_wire import BUFFER, HEADER, WireError, decode, encode, new_token, token_matches

from .agent_peer import HELLO_LIMIT, LARGE, AgentPeer, Message, open_wire, read_body, read_frame
from .errors import PeerGone
from .job import Jobs
from .link import Link
from .log import Log

_MOST_RANKS = 1 << 16
HELLO_TIMEOUT = 5.0  # seconds a connection may take to say who it is
KEPT_LIMIT = 4 << 20  # bytes of an agent's frames kept until somebody takes them; older ones go first


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

    def __init__(self, log: Log, jobs: Jobs | None = None) -> None:
        self.token = new_token()
        self.address = ""
        self.jobs = jobs or Jobs(log)
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
            elif hello.get("type") == "rank" and _names_rank(hello):
                await self.jobs.serve(Link(hello, reader, writer, self._log), hello)
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
    reader, writer = await open_wire(address)
    writer.write(encode({"type": "relay", "token": token, "pid": pid}))
    hello = await read_frame(reader, HELLO_LIMIT)
    if hello is None:
        writer.close()
        raise PeerGone("the first session has ended")
    return AgentPeer(hello, reader, writer, log)


def _names_rank(hello: Message) -> bool:
    size = hello.get("size") or 0
    return isinstance(hello.get("rank"), int) and isinstance(hello.get("job") or 0, int) and isinstance(size, int) and size <= _MOST_RANKS
