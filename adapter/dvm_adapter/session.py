"""One debug session: the client, the two engines, and who serves what. The themes live in the other modules; this is what they share."""
from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Coroutine
from typing import Any

from . import families
from .agent_peer import AgentPeer
from .agent_server import AgentServer
from .arguments import checked
from .breakpoints import Breakpoints
from .channel import Channel, Message, ProtocolError
from .children import Children
from .config import Config
from .debugpy_peer import DebugpyPeer
from .errors import PeerGone, RequestError
from .events import PythonEvents, TensorEvents
from .log import Log
from .output import Output
from .path_map import PathMap
from .processes import Debuggee
from .progress import Progress
from .rank import Member
from .references import FIRST_LISTING, References
from .registry import Declared, Needs, requests
from .reload import Reloads
from .stops import Stops
from .tasks import background
from .tracing import Tracing
from .watches import Watches

families.load()

RESTART_ENDS = 5.0  # seconds for a restart that is taken back

# What debugpy serves beyond the protocol; editors' Python extensions ask for these.
_ONLY_DEBUGPY = {"debugpySystemInfo", "pydevdSystemInfo", "setDebuggerProperty", "setPydevdSourceMap", "pydevdAuthorize"}


class Session:
    """State shared by the request families. Everything runs on one asyncio loop; nothing here blocks it."""

    def __init__(self, client: Channel, log: Log) -> None:
        self.client = client
        self.log = log
        self.client_arguments: Message = {}  # of `initialize`: what the client can do
        self.initialized = False
        self.config = Config()
        self.output = Output(client)
        self.agents = AgentServer(log)
        self.agents.take = self._take_agent
        self.agent: AgentPeer | None = None
        self.member: Member | None = None  # of a job of several ranks
        self.debuggee = Debuggee()
        self.references = References()
        self.listings = References(FIRST_LISTING)
        self.listing_numbers: dict[Any, int] = {}
        self.breakpoints = Breakpoints(self)
        self.stops = Stops(self)
        self.tracing = Tracing(self)
        self.watches = Watches(self)
        self.reloads = Reloads(self)
        self.children = Children(self)
        self.python_events = PythonEvents(self)
        self.tensor_events = TensorEvents(self)
        self.started = False  # debugpy has reached the program
        self.terminated = False  # the client has been told that the program is over
        self.closing = False
        self.restarting: asyncio.Task[Any] | None = None  # one program has ended and the next has not begun
        self.configurable = asyncio.Event()  # not set while a program is being launched or attached to
        self.configurable.set()
        self._debugpy: DebugpyPeer | None = None
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._running = 0  # requests in flight that make the program go on
        self._answered = asyncio.Event()
        self._answered.set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._finished = asyncio.Event()

    # ---- the peers
    @property
    def python(self) -> Channel:
        """debugpy's channel. Raises RequestError before launch or attach."""
        if self._debugpy is None:
            raise RequestError("the program is about to start anew" if self.restarting else
                               "no program has been launched or attached to yet")
        return self._debugpy.channel

    @property
    def has_python(self) -> bool:
        return self._debugpy is not None and not self._debugpy.channel.closed

    @property
    def tensors(self) -> AgentPeer:
        """The agent. Raises RequestError while there is none."""
        if self.agent is None or self.agent.gone:
            raise RequestError("the tensor engine is not running in this program: it starts when the program imports dvm_core")
        return self.agent

    @property
    def has_agent(self) -> bool:
        return self.agent is not None and not self.agent.gone

    def use_debugpy(self, peer: DebugpyPeer) -> None:
        self._debugpy = peer
        peer.serve(self.children.reverse_request, self.python_events.handle, self.python_events.end)

    def debugpy_last_words(self) -> str:
        return self._debugpy.last_words() if self._debugpy else ""

    def _take_agent(self, agent: AgentPeer) -> bool:
        """The agent of this session's own process; others belong to child sessions."""
        if self.has_agent or (self.debuggee.pid and agent.pid != self.debuggee.pid):
            return False
        self.use_agent(agent)
        return True

    async def disconnect_python(self, arguments: Message) -> None:
        if self._debugpy is not None and not self._debugpy.channel.closed:
            await self._debugpy.disconnect(arguments)

    async def end_program(self) -> None:
        """Ends a launched program and forgets what was of it alone; what the client has asked for is kept for the next one."""
        self.python_events.over = True
        self.reloads.stop()
        agent, peer = self.agent, self._debugpy
        if agent is not None:
            agent.on_gone, agent.on_event = lambda: None, lambda event: None
        await self.disconnect_python({"terminateDebuggee": True})
        if peer is not None:
            await peer.close()
        await self.children.close()
        if agent is not None:
            agent.close()
        self.debuggee.kill()
        self.output.finish()
        self.tensor_events.stop()
        self._debugpy = self.agent = None
        self.debuggee = Debuggee()
        self.stops, self.reloads, self.children = Stops(self), Reloads(self), Children(self)
        self.python_events, self.tensor_events = PythonEvents(self), TensorEvents(self)
        self.references.clear()
        self.listings.clear()
        self.listing_numbers.clear()
        self.started = False

    async def end_restart(self) -> None:
        """A restart that is under way is taken back: no program begins."""
        if self.restarting is not None:
            self.restarting.cancel()
            await asyncio.wait([self.restarting], timeout=RESTART_ENDS)

    def use_agent(self, agent: AgentPeer) -> None:
        """Tells a new agent everything the client has asked for so far."""
        self.agent = agent
        agent.paths = PathMap(self.config.mappings, str(agent.hello.get("cwd") or ""))
        agent.on_event = self.tensor_events.handle
        agent.on_gone = self._agent_gone
        self.log.note(f"agent connected: pid {agent.pid}")
        self.spawn(self.tensor_events.connected(agent))

    def _agent_gone(self) -> None:
        if self.member is not None:
            self.member.leave()
        if not self.closing and not self.debuggee.exited:
            self.stops.agent_gone()

    # ---- serving
    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs `work` beside everything else; what it raises goes to the log."""
        return background(self._guard(work), self._tasks)

    async def _guard(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except RequestError as error:
            self.log.note(f"left undone: {error}")
        except Exception:
            self.log.note(traceback.format_exc())
        return None

    async def run(self) -> None:
        """Serves until the client has gone or has disconnected, then ends what was started."""
        await self.agents.start()
        reading = asyncio.ensure_future(self.client.run(self._on_request, lambda event: None))
        finished = asyncio.ensure_future(self._finished.wait())
        try:
            await asyncio.wait({reading, finished}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and isinstance(error := reading.exception(), ProtocolError):
                self.log.note(f"the client does not speak DAP: {error}")
        finally:
            await self._answer_all()  # while there is somebody to hear it
            reading.cancel()
            finished.cancel()
            await self.shut_down()

    def finish(self) -> None:
        """Ends the session after the response in flight has been written."""
        self._finished.set()

    async def shut_down(self) -> None:
        if self.closing:
            return
        self.closing = True
        await self.end_restart()
        self.reloads.stop()
        self.output.finish()
        await self.client.close()
        if self._debugpy is not None:
            await self._debugpy.close()
        await self.children.close()
        await self.agents.close()
        if self.agent is not None:
            self.agent.close()
        # debugpy's launcher ends the program's group; this is for a launcher that was itself killed.
        if self.config.launched and self.debuggee.doomed:
            self.debuggee.kill()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _answer_all(self) -> None:
        """Ends what is still being served: each is answered."""
        serving = {task for task in self._serving.values() if task is not asyncio.current_task()}
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving, timeout=1)

    def _on_request(self, message: Message) -> None:
        command = message.get("command", "")
        task = asyncio.ensure_future(self._serve(command, message))
        number = message.get("seq", -1)
        self._serving[number] = task
        task.add_done_callback(lambda _: self._serving.pop(number, None))

    def cancel(self, number: Any) -> bool:
        """Stops work on a request of the client; it is answered `cancelled`."""
        task = self._serving.get(number)
        return task is not None and task is not asyncio.current_task() and task.cancel()

    async def _serve(self, command: str, message: Message) -> None:
        declared = requests.get(command)
        if declared is not None and declared.runs:
            self._running += 1
            self._answered.clear()
        try:
            arguments = message.get("arguments") or {}
            if declared is None:
                if command not in _ONLY_DEBUGPY or not self.has_python:
                    raise RequestError(f"unknown request {command!r}")
                body: Message | None = await self.python.ask(command, checked(command, arguments))
            else:
                if declared.needs is Needs.PROGRAM:
                    await self.configurable.wait()  # clients may send what follows `launch` without waiting for `initialized`
                self._check_state(declared)
                with Progress(self, command, message.get("seq", -1)):
                    body = await declared.handler(self, checked(command, arguments))
            self.client.respond(message, body)
        except RequestError as error:
            self.client.fail(message, self._explain(error), show=error.show)
        except asyncio.CancelledError:
            self.client.fail(message, "the session has ended" if self._finished.is_set() else "cancelled")
        except Exception as error:  # a mistake of ours must not leave the client waiting
            self.log.note(traceback.format_exc())
            self.client.fail(message, f"{command} failed in the debug adapter: {type(error).__name__}: {error}")
        finally:
            if declared is not None and declared.runs:
                self._running -= 1
                if not self._running:
                    self._answered.set()
        if command == "initialize":
            self.initialized = True

    def _explain(self, error: RequestError) -> str:
        words = self.debugpy_last_words() if isinstance(error, PeerGone) else ""
        return f"{error}\n{words}" if words else str(error)

    def _check_state(self, declared: Declared) -> None:
        if declared.command != "initialize" and not self.client_arguments:
            raise RequestError(f"{declared.command} before initialize")
        if declared.needs is Needs.PROGRAM:
            self.python  # noqa: B018 - raises when there is none
        elif declared.needs is Needs.AGENT:
            self.tensors  # noqa: B018
        elif declared.needs is Needs.STOPPED and not self.stops.stopped:
            raise RequestError("notStopped")  # the text the protocol reserves: clients stay quiet about it

    async def responses_out(self) -> None:
        """Waits until the requests that made the program go on have been answered: a stop must not overtake their responses."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._answered.wait(), 5)

    def event(self, name: str, body: Message | None = None) -> None:
        """An event for the client; none after `terminated`."""
        if not self.terminated:
            self.client.event(name, body)
