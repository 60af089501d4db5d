"""What the adapter can do: every request is declared beside its handler, with what it needs and the capabilities it stands for."""
from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session

Body = dict[str, Any]
Handler = Callable[["Session", Body], Awaitable["Body | None"]]


class Needs(enum.Enum):
    """The state a request can be served in."""

    NOTHING = enum.auto()  # from the first moment
    PROGRAM = enum.auto()  # after launch or attach
    STOPPED = enum.auto()  # while the client has been told of a stop
    AGENT = enum.auto()  # while the program's agent is connected


@dataclass(frozen=True)
class Declared:
    """A request the adapter serves. runs: it makes the program go on, so no stop is announced before its response."""

    command: str
    handler: Handler
    needs: Needs
    runs: bool


requests: dict[str, Declared] = {}
capabilities: Body = {}


def request(command: str, *, needs: Needs = Needs.PROGRAM, runs: bool = False, **announces: Any) -> Callable[[Handler], Handler]:
    """Declares `handler(session, arguments) -> body or None` as the server of a request; keywords are announced by `initialize`."""

    def declare(handler: Handler) -> Handler:
        if command in requests:
            raise ValueError(f"request {command} is declared twice")
        clash = announces.keys() & capabilities.keys()
        if clash:
            raise ValueError(f"capabilities {sorted(clash)} are declared twice")
        requests[command] = Declared(command, handler, needs, runs)
        capabilities.update(announces)
        return handler

    return declare


def passes(command: str, *, needs: Needs = Needs.PROGRAM, **announces: Any) -> None:
    """Declares a request that debugpy serves alone, arguments and answer unchanged."""

    async def handler(session: Session, arguments: Body) -> Body:
        return await session.python.ask(command, arguments)

    request(command, needs=needs, **announces)(handler)
