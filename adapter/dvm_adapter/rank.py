"""A rank's side of its job: asks the adapter that the job was started from, and does in its own program what that one says."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dvm_wire import MOST_KEPT

from .agent_peer import AgentPeer, Message
from .edit import waits
from .errors import RequestError
from .link import Link, connect

if TYPE_CHECKING:
    from .session import Session

TAKE = 60.0  # seconds for all ranks to take an edit, before it is answered that they have yet to
OF_A_RANK = ("vote", "settled", "digest")  # the agent's events that the job hears
_FOR_THE_AGENT = ("prepare", "pace", "arm", "decide", "undoReload", "tensor", "compare")


class Member:
    """This session's process among the ranks of its job."""

    def __init__(self, session: Session, link: Link) -> None:
        self._session, self._link = session, link
        link.serve = self._serve
        link.on_event = self._heard

    @classmethod
    async def join(cls, session: Session, relay: Message, pid: int) -> Member:
        """Raises RequestError."""
        told = relay["rank"]
        hello = {"type": "rank", "token": str(relay.get("token")), "pid": pid, **{key: told.get(key) for key in ("rank", "job", "size")}}
        member = cls(session, await connect(str(relay.get("address")), hello, session.log))
        session.spawn(member._link.run())
        return member

    def leave(self) -> None:
        self._link.close()

    # ---- asked by the job
    async def _serve(self, command: str, arguments: Message) -> Message:
        if command not in _FOR_THE_AGENT:
            raise RequestError(f"unknown command {command!r}")
        return await self._session.tensors.ask(command, timeout=None, **arguments)

    def _heard(self, event: Message) -> None:
        if event["ev"] == "told":
            self._session.reloads.reported(event["body"], answer=True)
        elif event["ev"] == "differs":
            self._session.tensor_events.differs(event["body"])
        elif event["ev"] == "hold":
            self._session.stops.hold(str(event.get("holder")))
        elif event["ev"] == "release":
            self._session.stops.release(everything=bool(event.get("everything")))

    def from_agent(self, event: str, body: Message) -> None:
        """The agent's vote, and what came of its swap."""
        self._link.tell(event, **body)

    # ---- told to the job
    def watch(self, agent: AgentPeer) -> None:
        """What the ranks are to have alike."""
        for name in self._session.config.settings["compareRanks"]:
            agent.send("watch", expression=name, name=name, what="values", keep=MOST_KEPT, across=True)  # others may be behind

    async def saved(self, path: str) -> None:
        await self._link.ask("saved", path=path, timeout=None)

    async def reload(self, path: str) -> Message:
        """The answer for this rank, which has been reported."""
        return await self._body("reload", path=path)

    async def undo(self, path: str | None) -> Message:
        return await self._body("undo", path=path)

    async def _body(self, command: str, **arguments: Any) -> Message:
        asked = asyncio.ensure_future(self._link.ask(command, timeout=None, **arguments))
        await asyncio.wait([asked], timeout=TAKE)
        if not asked.done():  # what becomes of it is told
            asked.cancel()
            return waits(str(arguments.get("path") or ""), "waits for all ranks to come to one step")
        answer = asked.result()
        if not isinstance(answer.get("body"), dict):
            raise RequestError("this rank has left its job")
        return dict(answer["body"])

    def stands(self, stands: bool, why: str = "", *, held: bool = False) -> None:
        """Whether the client looks at a stop of this rank. held: at one that is there for another rank's."""
        self._link.tell("stands", stands=stands, why=why, hold=bool(self._session.config.settings["holdRanks"]) and stands and not held)

    def goes(self) -> None:
        """The client lets this rank go on."""
        self._link.tell("goes")
