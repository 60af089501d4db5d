"""Tensor watches: asked for at any time, in force while there is an agent, the newest snapshot of each kept."""
from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .agent_peer import AgentPeer
from .channel import Message
from .errors import RequestError

if TYPE_CHECKING:
    from .session import Session

WHAT = ("stats", "values")
_PENDING = "takes effect when the program imports dvm_core"


@dataclass
class Watch:
    """One watch of the client. at_agent: the agent's number for it; 0 before it has one."""

    id: int
    asked: Message
    at_agent: int = 0
    told: Message = field(default_factory=dict)
    last: Message = field(default_factory=dict)  # newest snapshot


def read_watch(arguments: Message) -> Message:
    """The agent's `watch` command for a client's request. Raises RequestError for what cannot be meant."""
    what = arguments.get("what", "stats")
    if isinstance(what, (list, tuple)):
        what = "values" if "values" in what else "stats"
    if what not in WHAT:
        raise RequestError(f'"what" is {what!r}; allowed: {", ".join(WHAT)}')
    every, keep = arguments.get("everyN", 1), arguments.get("keep", 0)
    if keep and what != "values":
        raise RequestError(f'"keep" is {keep!r} of {what}; it is how many snapshots of values are kept in the program')
    together = arguments.get("together", False)
    if together and what == "values" and not keep:
        raise RequestError('"together" is for statistics, and for values with "keep": others are too large for one message')
    asked: Message = {"what": what, "everyN": every, **({"keep": keep} if keep else {}), **({"together": True} if together else {})}
    if arguments.get("expression", "").strip():
        asked["expression"] = arguments["expression"].strip()
    elif "program" in arguments and "instruction" in arguments:
        asked.update(program=arguments["program"], instruction=arguments["instruction"])
    elif "path" in arguments and "line" in arguments:
        asked.update(path=arguments["path"], line=arguments["line"])
    else:
        raise RequestError('a watch needs "expression", or "program" and "instruction", or "path" and "line"')
    # A place narrows an expression: the same name may stand in several functions.
    if "expression" in asked and "path" in arguments:
        asked.update({name: arguments[name] for name in ("path", "line") if name in arguments})
    asked["name"] = (arguments.get("name") or asked.get("expression") or f"{arguments.get('path') or arguments.get('program')}"
                        f":{arguments.get('line') or arguments.get('instruction')}")
    return asked


class Watches:
    """All watches, by the ids the client has."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 1
        self._watches: dict[int, Watch] = {}
        self._by_agent: dict[int, Watch] = {}
        self.memory_wanted = False  # the client has asked for the memory view at least once

    async def add(self, arguments: Message) -> Message:
        watch = Watch(self._next, read_watch(arguments))
        self._next += 1
        self._watches[watch.id] = watch
        if not self._session.has_agent:
            return {"watchId": watch.id, "name": watch.asked["name"], "matched": [], "message": _PENDING}
        try:
            answer = await self._session.tensors.ask("watch", **watch.asked)
        except RequestError:
            del self._watches[watch.id]
            raise
        self._known(watch, answer)
        return self._shown(watch)

    def _known(self, watch: Watch, answer: Message) -> None:
        watch.at_agent = answer.get("watchId") or 0
        watch.told = answer
        if watch.at_agent:
            self._by_agent[watch.at_agent] = watch

    def _shown(self, watch: Watch) -> Message:
        return {"watchId": watch.id, "name": watch.asked["name"], "matched": watch.told.get("matched") or [],
                "message": watch.told.get("message") or ""}

    async def remove(self, number: int) -> None:
        watch = self._watches.pop(number, None)
        if watch is None:
            raise RequestError(f"there is no watch {number!r}")
        self._by_agent.pop(watch.at_agent, None)
        if watch.at_agent and self._session.has_agent:
            await self._session.tensors.ask("unwatch", watchId=watch.at_agent)

    def get(self, number: int) -> Watch:
        watch = self._watches.get(number)
        if watch is None:
            raise RequestError(f"there is no watch {number!r}")
        return watch

    def all(self) -> list[Message]:
        return [self._shown(watch) for watch in self._watches.values()]

    def begin_anew(self) -> None:
        """Another program is about to begin, in which the numbers of programs mean others: watches by such a number are gone."""
        self._by_agent.clear()
        for watch in list(self._watches.values()):
            if "program" in watch.asked:
                del self._watches[watch.id]
                text = f"watch {watch.asked['name']} is gone: its program was one of the run before"
                self._session.event("dvm/notice", {"category": "watch", "watchId": watch.id, "text": text})
            watch.at_agent, watch.told, watch.last = 0, {}, {}

    def tell(self, agent: AgentPeer) -> None:
        """All watches, to an agent that has just connected."""
        self._by_agent.clear()
        for watch in self._watches.values():
            self._session.spawn(self._tell_one(watch, agent.send("watch", **watch.asked)))

    async def _tell_one(self, watch: Watch, sent: asyncio.Future[Message]) -> None:
        answer = await sent
        if not answer.get("ok"):
            text = f"watch {watch.asked['name']}: {answer.get('error')}"
            self._session.event("dvm/notice", {"category": "watch", "watchId": watch.id, "text": text})
            return
        self._known(watch, answer)

    def snapshot(self, event: Message) -> Message | None:
        """A snapshot as the client sees it; None for a watch it has taken back. Those of capture "all" belong to no watch."""
        if event.get("watchId", -1) is None:
            return event
        watch = self._by_agent.get(event.get("watchId", -1))
        if watch is None:
            return None
        watch.last = {**event, "watchId": watch.id}
        return watch.last.copy()
