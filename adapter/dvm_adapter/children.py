"""Child processes: each becomes a session of our own type; helpers nobody debugs are let go."""
from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from dvm_wire.doors import environment_of, stat_fields
from dvm_wire.ranks import rank_of, scheduler, size_of

from .channel import Message
from .debugpy_peer import DebugpyPeer
from .errors import RequestError
from .processes import command_line

if TYPE_CHECKING:
    from .session import Session

# multiprocessing starts these on its own, and they do nothing but wait. Every child blocks until a session attaches to it, so leaving
# them alone hangs the program's exit, and showing them would put a second, empty session into the editor.
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker")


class Children:
    """Reverse requests of debugpy: most go on to the client, new child processes are looked at first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._quiet: list[DebugpyPeer] = []
        self.no_terminal: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # why the client runs nothing in one

    def reverse_request(self, message: Message) -> None:
        self._session.spawn(self._answer(message))

    async def _answer(self, message: Message) -> None:
        session, python = self._session, self._session.python
        arguments = message.get("arguments") or {}
        try:
            if message["command"] == "startDebugging":
                configuration = arguments.get("configuration") or {}
                self.adapt(configuration)
                if self._is_helper(configuration):
                    session.spawn(self._attach_quietly(configuration))
                    python.respond(message)
                    return
            python.respond(message, await session.client.ask(message["command"], arguments))
        except RequestError as error:
            if message["command"] == "runInTerminal" and not self.no_terminal.done():
                self.no_terminal.set_result(str(error))
            python.fail(message, str(error))

    def adapt(self, configuration: dict[str, Any]) -> None:
        """Makes a child's configuration ours: its type, our settings, and where the child's agent can be reached."""
        session = self._session
        configuration["type"] = "dvm"
        if "onTerminate" not in session.config.arguments:
            configuration.pop("onTerminate", None)  # which we have added for the program itself
        if (name := self._name_of(configuration.get("subProcessId"))) is not None:
            configuration["name"] = name
        if session.config.arguments.get("dvm") is not None:
            configuration["dvm"] = session.config.arguments["dvm"]
        # Children inherit the address of the first adapter, so every later one asks that adapter for the agent.
        relay = session.config.relay or {"address": session.agents.address, "token": session.agents.token}
        rank = self._rank_of(configuration.get("subProcessId"))
        configuration["dvmRelay"] = {"address": relay["address"], "token": relay["token"], **({"rank": rank} if rank else {})}
        configuration.pop("env", None)

    def _name_of(self, pid: Any) -> str | None:
        """`rank N`; its own children inherit its environment, and keep their number."""
        environment = environment_of(pid) if isinstance(pid, int) else {}
        of_parent = environment_of(self._session.debuggee.pid) if self._session.debuggee.pid else {}
        if scheduler(environment):
            return "scheduler" if not scheduler(of_parent) else f"scheduler, subprocess {pid}"
        rank = rank_of(environment)
        if rank is None:
            return None
        return f"rank {rank}" if rank != rank_of(of_parent) else f"rank {rank}, subprocess {pid}"

    def _rank_of(self, pid: Any) -> dict[str, int | None] | None:
        """What makes the process a rank: its number, the number of all, and who started them."""
        environment = environment_of(pid) if isinstance(pid, int) else {}
        rank, parent = rank_of(environment), self._session.debuggee.pid
        fields = stat_fields(pid) if isinstance(pid, int) else []
        if rank is None or not fields or (parent and rank == rank_of(environment_of(parent))):
            return None
        return {"rank": rank, "size": size_of(environment), "job": int(fields[1])}

    def _is_helper(self, configuration: dict[str, Any]) -> bool:
        pid = configuration.get("subProcessId")
        line = " ".join(command_line(pid)) if isinstance(pid, int) else ""
        return any(name in line for name in _HELPERS)

    async def _attach_quietly(self, configuration: dict[str, Any]) -> None:
        """Plays a client that wants nothing, and stays: debugpy ends a child whose session has gone."""
        address = configuration["connect"]
        peer = await DebugpyPeer.connect(address["host"], address["port"], self._session.log)
        self._quiet.append(peer)
        ready = asyncio.Event()

        async def on_event(event: Message) -> None:
            if event["event"] == "initialized":
                ready.set()

        async def on_end() -> None:
            ready.set()

        peer.serve(lambda request: peer.channel.fail(request, "not here"), on_event, on_end)
        await peer.channel.ask("initialize", {"adapterID": "debugpy", "clientID": "dvm"})
        arguments = {key: value for key, value in configuration.items() if key not in ("dvm", "dvmRelay")}
        attached = peer.channel.request("attach", {**arguments, "type": "python", "autoReload": {"enable": False}})
        await ready.wait()
        await peer.channel.ask("configurationDone")
        await attached

    async def close(self) -> None:
        for peer in self._quiet:
            with contextlib.suppress(RequestError):
                await peer.close()
