"""What the engines report on their own, and what the client hears of it."""
from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import modules
from .agent_peer import AgentPeer
from .channel import Message
from .config import STAND_IN, environment_for
from .errors import RequestError
from .rank import OF_A_RANK

if TYPE_CHECKING:
    from .session import Session

STEP_EVENTS_PER_SECOND = 10
SNAPSHOT_BACKLOG = 1 << 18  # bytes that wait for the client before snapshots are left out: an answer waits behind them

# pydevd writes a reply's header and body in two sends on a Nagle socket and the other side delays its acknowledgement, so each reply
# takes 44 ms (debugpy issue 2054). A frameless evaluate runs on pydevd's own thread at any time: option 1 of level 6 is TCP_NODELAY.
_NODELAY = "__import__('pydevd').get_global_debugger().writer.sock.setsockopt(6, 1, 1)"

# pydevd takes what follows ".zip" or ".egg" in any path for a file in an archive, also in a folder called `x.zipped` or `my.eggs`, and then
# finds no file there (debugpy issue 1473). What is a file is none in an archive.
# It has one expression for the whole of a log point's message: here each part is evaluated by itself, and says in its place what is wrong.
_MENDED = "exec(compile(" + repr("""
import os, pydevd_file_utils as utils
def file_or_in_archive(name, path_of, isabs, normal, *more, was=utils._apply_func_and_normalize_case, utils=utils, os=os, **named):
    path = path_of(name)
    if not isabs or not os.path.isfile(path):
        return was(name, path_of, isabs, normal, *more, **named)
    return utils.normcase(path) if normal else path
if utils._apply_func_and_normalize_case.__name__ != 'file_or_in_archive':
    utils._apply_func_and_normalize_case = file_or_in_archive
def dvm_logged(parts, names, local):
    def shown(expression, text):
        try:
            return str(eval(text, names, local)) if expression else text
        except Exception as error:
            return f'<`{text}`: {error}>'
    return ''.join(shown(*part) for part in __import__('json').loads(bytes.fromhex(parts)))
utils.dvm_logged = dvm_logged
""") + ", __import__('pydevd_file_utils').__file__, 'exec'))"  # under pydevd's own name: nothing stops in it

# `import dvm` in a program of ours. Not by PYTHONPATH: a terminal's program has the one of its shell, which is not known here.
_SERVE_DVM = f"__import__('sys').path.append({STAND_IN!r})"

# For a program that was not launched by us: the variables an agent looks for, and the agent itself if dvm_core is there already.
_CALL_AGENT = ("exec(\"import os, sys\\nos.environ.update({environment})\\n"
               "if 'dvm_core' in sys.modules: import dvm_core.agent; dvm_core.agent.start()\")")


MENDING_TIMEOUT = 2.0
_INJECTION_FAILED = "Attach to PID failed"  # all that debugpy says of it before its time is up

# What an injector says holds the token of debugpy's sockets: as it is, and in a list of the codes of its characters.
_SECRETS = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{32,}(?![0-9a-zA-Z])|(?:\d{1,3}\s*,\s*){31,}\d{1,3}")
_BEFORE_LAUNCHED = ("initialized", "output", "capabilities", "debugpySockets", "debugpyWaitingForServer")


def without_secrets(text: str) -> str:
    return _SECRETS.sub("…", text)


class PythonEvents:
    """debugpy's events, one after the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._exited = False
        self.over = False  # the program is ended for another one: only what it still prints is told
        self.threads: set[int] = set()
        loop = asyncio.get_running_loop()
        self.waiting: asyncio.Future[tuple[str, int]] = loop.create_future()  # where debugpy waits for a program
        self.ready: asyncio.Future[None] = loop.create_future()  # debugpy is in the program
        self.injection_failed: asyncio.Future[None] = loop.create_future()
        self.told_over: asyncio.Future[None] = loop.create_future()  # the client has been told that there is no program any more
        self.prepared: asyncio.Future[Message] | None = None  # the answer to what must be done before the program begins

    async def handle(self, event: Message) -> None:
        name, body = event["event"], event.get("body") or {}
        if self.over and name != "output":
            return
        if name not in _BEFORE_LAUNCHED:
            # debugpy sends the others after its answer to launch or a run request, and so do we.
            await self._session.responses_out()
        special = getattr(self, "_on_" + name, None)
        if special is not None:
            await special(body)
            return
        self._session.output.flush()
        self._session.event(name, body)

    # Ours are other capabilities, and other sockets are nobody's business.
    async def _on_capabilities(self, body: Message) -> None: ...

    async def _on_debugpySockets(self, body: Message) -> None: ...

    async def _on_debugpyWaitingForServer(self, body: Message) -> None:
        if not self.waiting.done():
            self.waiting.set_result((str(body.get("host")), int(body.get("port") or 0)))
        if self._session.config.process is None:
            self._session.event("debugpyWaitingForServer", body)

    async def _on_output(self, body: Message) -> None:
        if str(body.get("output", "")).startswith(_INJECTION_FAILED) and not self.injection_failed.done():
            self.injection_failed.set_result(None)
        if self._session.config.process is not None and not self.ready.done():
            body = {**body, "output": without_secrets(str(body.get("output", "")))}
        if body.get("category") != "telemetry" and not self._session.terminated:
            self._session.output.event(body)

    async def _on_initialized(self, body: Message) -> None:
        session = self._session
        session.started = True
        if not self.ready.done():
            self.ready.set_result(None)
        # Context "repl" would exchange the program's sys.stdout meanwhile, under a `print` that is just writing to it.
        session.python.request("evaluate", {"expression": _NODELAY, "context": "clipboard"})
        mended = session.python.request("evaluate", {"expression": _MENDED, "context": "clipboard"})
        if session.config.launched or session.config.child is not None:
            self.prepared = session.python.request("evaluate", {"expression": _SERVE_DVM, "context": "clipboard"})
            await asyncio.wait([mended], timeout=MENDING_TIMEOUT)  # before the first breakpoints; the program waits for them
        else:
            environment = environment_for(session.config, session.agents.address, session.agents.token)
            expression = _CALL_AGENT.replace("{environment}", json.dumps(environment).replace('"', "'"))
            session.python.request("evaluate", {"expression": expression, "context": "clipboard"})
        if session.restarting is None:  # else the client has configured everything already
            session.event("initialized")
            session.configurable.set()

    async def _on_process(self, body: Message) -> None:
        session = self._session
        pid = body.get("systemProcessId")
        if isinstance(pid, int):
            session.debuggee.named(pid, doomed=session.config.launched)
            session.agents.offer_again()
        session.event("process", body)

    async def _on_thread(self, body: Message) -> None:
        (self.threads.discard if body.get("reason") == "exited" else self.threads.add)(body.get("threadId", 0))
        self._session.output.flush()
        self._session.event("thread", body)

    async def _on_stopped(self, body: Message) -> None:
        await self._session.stops.python_stopped(body)

    async def _on_continued(self, body: Message) -> None:
        if not self._session.stops.stopped:  # while the client looks at a stop of the VM, Python's own moves are not its business
            self._session.event("continued", body)

    async def _on_breakpoint(self, body: Message) -> None:
        changed = self._session.breakpoints.python_changed(body)
        if changed is not None:
            self._session.event("breakpoint", changed)

    async def _on_exited(self, body: Message) -> None:
        self._exited = True
        self._session.debuggee.exited = True
        self._session.output.finish()
        self._session.event("exited", body)

    async def _on_terminated(self, body: Message) -> None:
        self.all_over(body)

    async def end(self) -> None:
        """debugpy's stream has ended, told or not."""
        if self.over:
            return
        if not self._session.closing and not self._session.terminated and self._session.initialized:
            words = self._session.debugpy_last_words()
            if words and not self._exited:
                self._session.output.say("debugpy ended: " + words, "important")
            self.all_over({})

    def all_over(self, body: Message) -> None:
        """The client hears that there is no program any more."""
        self._session.output.finish()
        self._session.reloads.stop()
        self._session.event("terminated", body)
        self._session.terminated = self._session.output.over = True
        if not self.told_over.done():
            self.told_over.set_result(None)


class TensorEvents:
    """The agent's events, in order."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last_step = 0.0
        self._step_timer: asyncio.TimerHandle | None = None
        self._step: Message = {}
        self._left_out = 0

    def stop(self) -> None:
        if self._step_timer is not None:
            self._step_timer.cancel()

    async def connected(self, agent: AgentPeer) -> None:
        """A new agent hears all that is in force. Sent in one go: the program may run its first captured call at any moment."""
        session = self._session
        configured = agent.send("configure", **session.config.settings)
        session.reloads.tell(agent)
        session.breakpoints.tell(agent)
        session.watches.tell(agent)
        if session.member is not None:
            session.member.watch(agent)
        session.event("dvm/notice", {"category": "connected", "text": "tensor engine connected", "pid": agent.pid,
                                     "device": agent.hello.get("device")})
        session.reloads.start()
        answer = await configured
        if not answer.get("ok"):
            session.output.say(f"the launch configuration's \"dvm\" settings were not taken: {answer.get('error')}", "important")

    def handle(self, event: Message) -> None:
        name, body = event["ev"], {key: value for key, value in event.items() if key != "ev"}
        handler: Callable[[Message], Any] | None = getattr(self, "_on_" + name, None)
        if name in OF_A_RANK:
            if self._session.member is not None:
                self._session.member.from_agent(name, body)
        elif handler is not None:
            handler(body)

    def _on_vmstop(self, body: Message) -> None:
        self._session.stops.vm_stopped(body)

    def _on_vmdone(self, body: Message) -> None:
        self._session.stops.vm_done()

    def _on_bound(self, body: Message) -> None:
        changed = self._session.breakpoints.tensor_bound(body)
        if changed is not None:
            self._session.event("breakpoint", {"reason": "changed", "breakpoint": changed})

    def _on_step(self, body: Message) -> None:
        # Steps may take less than a millisecond; the client gets the newest, some times a second.
        self._step = body
        wait = self._last_step + 1 / STEP_EVENTS_PER_SECOND - time.monotonic()
        if wait <= 0:
            self._send_step()
        elif self._step_timer is None:
            self._step_timer = asyncio.get_running_loop().call_later(wait, self._send_step)

    def _send_step(self) -> None:
        if self._step_timer is not None:
            self._step_timer.cancel()
            self._step_timer = None
        self._last_step = time.monotonic()
        self._session.event("dvm/step", self._step)

    def _on_snapshot(self, body: Message) -> None:
        for snapshot in self._to_tell([body]):
            self._session.event("dvm/snapshot", snapshot)

    def _on_snapshots(self, body: Message) -> None:
        if snapshots := self._to_tell(body["snapshots"]):
            self._session.event("dvm/snapshots", {"snapshots": snapshots})

    def _to_tell(self, events: list[Message]) -> list[Message]:
        """Snapshots as the client sees them; none while too much waits for it, which the next one says."""
        found = [snapshot for event in events if (snapshot := self._session.watches.snapshot(event)) is not None]
        if self._session.client.backlog() > SNAPSHOT_BACKLOG:
            self._left_out += len(found)
            return []
        if found and self._left_out:
            found[0]["dropped"], self._left_out = self._left_out, 0
        return found

    def _on_notice(self, body: Message) -> None:
        self._session.event("dvm/notice", body)
        where: Message = {}
        if body.get("path"):
            where = {"source": {"path": body["path"]}, **({"line": body["line"]} if body.get("line") else {})}
        if not self._session.terminated:
            self._session.output.say(str(body.get("text", "")), **where)

    def _on_reload(self, body: Message) -> None:
        self._session.reloads.reported(body)

    def differs(self, body: Message) -> None:
        """Ranks have different values of a watch."""
        self._session.event("dvm/ranks", body)
        self._on_notice({"category": "ranks", **{name: body[name] for name in ("text", "path", "line")}})

    def _on_program(self, body: Message) -> None:
        self._session.reloads.sources_changed()
        self._session.event("dvm/program", body)
        modules.announce(self._session, body)

    def _on_device(self, body: Message) -> None:
        self._session.event("dvm/device", body)

    def _on_dropped(self, body: Message) -> None:
        text = f"{body.get('count')} snapshots were left out: they came faster than they could be sent"
        self._session.event("dvm/notice", {"category": "dropped", "count": body.get("count"), "text": text})

    def memory_hint(self) -> None:
        """At a stop: the figures of the memory view, if the client has shown interest in it."""
        if self._session.has_agent and self._session.watches.memory_wanted:
            self._session.spawn(self._send_memory())

    async def _send_memory(self) -> None:
        try:
            body = await self._session.tensors.ask("memory", timeout=5)
        except RequestError:
            return
        buffers = body.get("buffers") or []
        live = sum(b.get("bytes", 0) for b in buffers if b.get("freed") is None)
        self._session.event("dvm/memory", {"step": body.get("step"), "peak": body.get("peak"), "buffers": len(buffers), "bytesLive": live,
                                           "copies": body.get("copies"), "copiesAvoided": body.get("copiesAvoided")})
