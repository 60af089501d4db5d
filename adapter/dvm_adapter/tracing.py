"""What is set in debugpy that needs Python to be traced, told to the agent, which keeps the program untraced otherwise."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .channel import Message

if TYPE_CHECKING:
    from .agent_peer import AgentPeer
    from .session import Session

# `uncaught` needs no trace function: the agent sees to it in the interpreter's hooks.
_FILTERS = ("raised", "userUnhandled")
_BREAK_MODES = ("always", "userUnhandled")


class Tracing:
    """One word for the agent: on or off. Steps need none, since a stop leaves tracing on until the program runs freely again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: bool | None = None
        self._filters = False
        self._functions = False
        self._pausing = False

    @property
    def needed(self) -> bool:
        return self._filters or self._functions or self._pausing or self._session.breakpoints.any_forward

    def begin_anew(self) -> None:
        """Another program, in which nothing is to be paused."""
        self._told, self._pausing = None, False

    def look(self) -> None:
        """After a change of what is set, before debugpy hears of it. The agent turns off only what pydevd does not use any more."""
        if self._session.agent is not None:
            self.tell(self._session.agent)

    def tell(self, agent: AgentPeer, *, new: bool = False) -> None:
        """new: an agent that has just connected and knows nothing."""
        if new or self.needed != self._told:
            self._told = self.needed
            agent.send("tracing", on=self._told)

    def filters(self, arguments: Message, names: list[str]) -> None:
        """arguments: of `setExceptionBreakpoints`; names: of its filters."""
        modes = [option.get("breakMode") for option in arguments.get("exceptionOptions") or []]
        self._filters = any(name in _FILTERS for name in names) or any(mode in _BREAK_MODES for mode in modes)
        self.look()

    def functions(self, breakpoints: list[Message]) -> None:
        self._functions = bool(breakpoints)
        self.look()

    def pausing(self, on: bool) -> None:
        """From the client's `pause` until the next stop."""
        self._pausing = on
        self.look()
