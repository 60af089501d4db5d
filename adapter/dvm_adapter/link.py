"""The connection between the adapter of a rank and the one its job was started from: either asks, either tells."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from dvm_wire import WireError, encode

from .agent_peer import AgentPeer, Message, open_wire
from .errors import RequestError
from .log import Log
from .tasks import background

Serve = Callable[[str, Message], Awaitable[Message]]


class Link(AgentPeer):
    """An AgentPeer that is asked, too: `serve(command, arguments)` answers, or raises RequestError."""

    serve: Serve

    def __init__(self, hello: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
        super().__init__(hello, reader, writer, log)
        self._serving: set[asyncio.Task[None]] = set()

    def handle(self, message: Message) -> None:
        if isinstance(message.get("cmd"), str):
            self._log.message("<-", "job", message)
            background(self._answer(message), self._serving)
        else:
            super().handle(message)

    async def _answer(self, message: Message) -> None:
        arguments = {key: value for key, value in message.items() if key not in ("id", "cmd")}
        answer: Message = {"re": message.get("id")}
        try:
            answer.update(await self.serve(message["cmd"], arguments), ok=True)
        except RequestError as error:
            answer.update(ok=False, error=str(error))
        except Exception as error:  # a mistake of ours must not leave the other side waiting
            answer.update(ok=False, error=f"{type(error).__name__}: {error}")
        self._write(answer)

    def tell(self, event: str, **fields: Any) -> None:
        """An event for the other side; nothing if it has gone."""
        self._write({**fields, "ev": event})

    def _write(self, message: Message) -> None:
        if not self.gone:
            self._log.message("->", "job", message)
            with contextlib.suppress(WireError):
                self._writer.write(encode(message))


async def connect(address: str, hello: Message, log: Log) -> Link:
    """A link to the adapter whose wire server is at `address`. Raises PeerGone."""
    reader, writer = await open_wire(address)
    writer.write(encode(hello))
    return Link(hello, reader, writer, log)
