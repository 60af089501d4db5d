"""The one stop the client sees, made of two engines' stops.

Python's stop is debugpy's `stopped`; the VM's is the agent's `vmstop`, sent before the launching thread suspends itself in pydevd, so that
debugpy's `stopped` for the same thread follows. The agent's socket keeps order: a `vmstop` that belongs to a `stopped` has arrived before
the agent answers anything asked after that `stopped`."""
from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import exceptions
from .channel import Message
from .errors import RequestError

if TYPE_CHECKING:
    from .session import Session

# How long a stop of the VM waits for the thread to appear in debugpy before it is announced without Python.
JOIN_TIMEOUT = 1.0
# How long a rank that is to be held may take to stop before the client hears what it waits for.
HOLD_TIMEOUT = 1.0
# How long a stop of Python waits for the tensor line: the flush before it may be a long launch.
TENSOR_TIMEOUT = 5.0

_IDENT = "__import__('threading').get_ident()"

# the agent's reason -> the protocol's
_REASONS = {"breakpoint": "breakpoint", "instruction": "instruction breakpoint", "op": "function breakpoint", "step": "step",
            "data": "data breakpoint", **dict.fromkeys(exceptions.TYPES, "exception")}
_WORDS = {"breakpoint": "Paused on tensor line", "instruction": "Paused on tensor instruction", "step": "Paused on step",
          "op": "Paused on an op",
          "data": "Paused on a write to a tensor",
          "nan": "Paused on NaN", "inf": "Paused on infinity", "overflow": "Paused on overflow", "range": "Paused on a value out of range",
          "zeros": "Paused on zeros", "unchanged": "Paused on a weight", "diverged": "Paused on the first divergence"}
_PYTHON_STOPS = ("breakpoint", "step")  # debugpy's stops that read as the VM's when they are on a tensor line; others say what they are
_NO_AREA = "no fused area begins here (a forward stop stands in Python): stop with mode backward or at an instruction"


@dataclass
class Stop:
    """A stop as the client was told. thread: debugpy's number of it; tensor: the agent's FRAME, if a tensor line is on top."""

    thread: int
    tensor: Message | None = None
    vm: Message | None = None  # the whole vmstop if the VM itself stands
    found: Message | None = None  # of a stop of Python's: what a numeric filter says of what was run for it
    held: bool = False  # only because another rank stands
    python: bool = True  # debugpy has the thread suspended: it has frames and can step
    tensor_frame: int = 0  # our frame ids, once asked for
    label_frame: int = 0


def _thread_of(event: Message) -> Message:
    """The vmstop's thread, as an argument for the agent."""
    return {"thread": event["thread"]} if "thread" in event else {}


class Stops:
    """Merges the engines' stops, and decides which engine a run request goes to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.current: Stop | None = None
        self._python_thread: int | None = None  # debugpy has stopped, and this is the thread it named
        self._coming: Message | None = None  # a vmstop whose `stopped` has not come yet
        self._queued: list[Message] = []  # vmstops while the client looks at another stop
        self._step: tuple[str, int] | None = None  # the step the VM is taking: debugpy's request for it, and the thread
        self._idents: dict[int, int] = {}  # debugpy's thread -> Python's ident
        self._merging = False
        self._holder = ""  # what another rank stands at, while debugpy has been asked to pause for it
        self._let_go = False  # that rank goes on, and so is this one to do as soon as it has paused

    @property
    def stopped(self) -> bool:
        return self.current is not None

    # ---- the engines stop
    async def python_stopped(self, body: Message) -> None:
        """debugpy's `stopped`: Python's own, or the second half of a stop of the VM."""
        session = self._session
        thread = body.get("threadId", 0)
        self._python_thread = thread if self.current is None else self._python_thread
        if self.current is not None and self.current.vm is not None and not self.current.python:
            # The VM's stop was announced without Python, which has arrived now: no second stop, other frames.
            self.current.python, self.current.thread = True, thread
            self._invalidate(thread)
            return
        tensor = found = None
        self._merging = True
        try:
            if session.has_agent:
                ident = await self.ident_of(thread)
                if self._coming is None:
                    tensor, found = await self._tensor_line(ident)
                if self._coming is not None and self._coming.get("thread") in (None, ident):
                    event, self._coming = self._coming, None
                    await self._announce_vm(event, thread, python=True)
                    return
                if any(event.get("thread") == ident for event in self._queued):
                    return  # the client looks at another thread's stop; this one comes next
        finally:
            self._merging = False
        if self._coming is not None:  # another thread's: that one comes next
            self._queued.append(self._coming)
            self._coming = None
        body = session.breakpoints.with_our_ids(body)
        if found is not None and body.get("reason") != "exception":
            words = _WORDS.get(str(found.get("reason")), "Paused on a number")
            body = {**body, "reason": "exception", "description": f"{words} in what ran before this line", "text": found.get("text")}
        elif tensor is not None and body.get("reason") in _PYTHON_STOPS:
            body = {**body, "description": _WORDS[body["reason"]]}
        holder = self._holder
        held = bool(holder) and body.get("reason") == "pause"
        if self._let_go and body.get("reason") == "pause":
            self._python_thread, self._let_go = None, False
            session.tracing.pausing(False)
            await session.python.ask("continue", {"threadId": thread})
            return
        if held:
            body = {**body, "description": f"Held: {holder}", "text": holder}
        await self._announce(Stop(thread, tensor, found=found, held=held), body)

    async def _tensor_line(self, ident: int | None) -> tuple[Message | None, Message | None]:
        """The tensor line Python stands on, and what a numeric filter found in what was run for this stop."""
        try:
            answer = await self._session.tensors.ask("pythonStop", thread=ident, timeout=TENSOR_TIMEOUT)
        except RequestError as error:
            self._session.log.note(f"no tensor line at this stop: {error}")
            return None, None
        return answer.get("tensor"), answer.get("found")

    def vm_stopped(self, event: Message) -> None:
        """The agent's `vmstop`."""
        if self._step is not None:  # the end of a step of the VM: Python has stood all the time
            (_, thread), self._step = self._step, None
            self._session.spawn(self._announce_vm(event, thread, python=self._python_thread is not None))
            return
        if self.current is not None:
            self._queued.append(event)
            return
        self._coming = event
        if not self._merging:
            asyncio.get_running_loop().call_later(JOIN_TIMEOUT, self._without_python, event)

    def _without_python(self, event: Message) -> None:
        if self._coming is event:
            self._coming = None
            self._session.spawn(self._announce_vm(event, 1, python=False))

    def vm_done(self) -> None:
        """The launch has ended during a step: the step goes on in Python."""
        step, self._step = self._step, None
        if step is not None and self._python_thread is not None:
            self._python_thread = None
            self._session.spawn(self._step_python(step[0], {"threadId": step[1]}))

    async def _step_python(self, command: str, arguments: Message) -> Message:
        """debugpy's step. It goes over the next part of a function that is compiled in parts: the agent stops there."""
        if command != "stepOut" and self._session.has_agent and (ident := await self.ident_of(arguments.get("threadId", 0))) is not None:
            with contextlib.suppress(RequestError):
                await self._session.tensors.ask("follow", thread=ident, timeout=TENSOR_TIMEOUT)
        return await self._session.python.ask(command, arguments)

    async def _announce_vm(self, event: Message, thread: int, *, python: bool) -> None:
        reason = str(event.get("reason", "breakpoint"))
        frame = event.get("frame") or event.get("FRAME") or event
        description = _WORDS.get(reason, "Paused in the tensor program")
        where = frame.get("function") or frame.get("name")
        body: dict[str, Any] = {"reason": _REASONS.get(reason, reason), "threadId": thread, "allThreadsStopped": True,
                                "description": f"{description} in {where}" if where and reason in exceptions.TYPES else description}
        if event.get("text"):
            body["text"] = event["text"]
        if event.get("bp"):
            body["hitBreakpointIds"] = event["bp"]
        await self._announce(Stop(thread, frame, vm=event, python=python), body)

    async def _announce(self, stop: Stop, body: Message) -> None:
        session = self._session
        await session.responses_out()
        if session.stops is not self:  # the program has been started anew since
            return
        session.references.clear()
        session.output.flush()
        for changed in session.breakpoints.verified_by_hit(body.get("hitBreakpointIds") or []):
            session.event("breakpoint", {"reason": "changed", "breakpoint": changed})
        self.current, self._holder, self._let_go = stop, "", False
        session.tracing.pausing(False)
        session.event("stopped", body)
        if session.member is not None:
            words = "Paused" if body.get("reason") == "pause" else f"Paused on {body.get('reason')}"
            session.member.stands(True, str(body.get("description") or words), held=stop.held)
        session.tensor_events.memory_hint()

    def _invalidate(self, thread: int) -> None:
        if self._session.client_arguments.get("supportsInvalidatedEvent"):
            self._session.event("invalidated", {"areas": ["stacks"], "threadId": thread})

    # ---- other ranks stop and go on
    def hold(self, holder: str) -> None:
        """Another rank stands, as `holder` says: this one is to stop where it is. What stops by itself meanwhile is a stop of its own."""
        if self.current is None and not self._holder:
            self._holder, self._let_go = holder, False
            self._session.spawn(self._hold(holder))

    async def _hold(self, holder: str) -> None:
        session = self._session
        threads = await self._threads()
        session.tracing.pausing(True)
        try:
            await session.python.ask("pause", {"threadId": threads[0] if threads else 1})
        except RequestError as error:
            session.tracing.pausing(False)
            if self._holder == holder:
                self._holder = ""
            session.log.note(f"not held, though {holder}: {error}")
            return
        await asyncio.sleep(HOLD_TIMEOUT)
        if self._holder == holder and not session.terminated:
            text = f"not held yet: {holder}, and this rank is in a call that Python cannot stop, such as a collective; it stops behind that"
            session.event("dvm/notice", {"category": "held", "text": text, "path": "", "line": 0})
            session.output.say(text)

    def pausing(self) -> None:
        """The client itself asks for a pause: it is not to be passed over."""
        self._let_go = False

    def release(self, *, everything: bool) -> None:
        """Another rank goes on, and this one with it if it was held; with `everything` from any stop."""
        if self._holder:
            self._holder, self._let_go = "", True
        elif self.current is not None and (self.current.held or everything):
            self._session.spawn(self._release(self.current))

    async def _release(self, stop: Stop) -> None:
        await self._resume({"threadId": stop.thread})
        if not stop.python:  # else debugpy tells it
            self._session.event("continued", {"threadId": stop.thread, "allThreadsContinued": True})

    # ---- the client lets go on
    def _leave(self) -> Stop | None:
        stop, self.current = self.current, None
        self._session.references.clear()
        if stop is not None and self._session.member is not None:
            self._session.member.stands(False)
        return stop

    async def resume(self, arguments: Message) -> Message:
        """`continue`. What the VM reported meanwhile is the next stop, and nothing runs before it has been looked at."""
        self._others_go()
        return await self._resume(arguments)

    def _others_go(self) -> None:
        if self.current is not None and self._session.member is not None:
            self._session.member.goes()

    async def _resume(self, arguments: Message) -> Message:
        if self._next_queued():
            return {"allThreadsContinued": True}
        if self.current is None and self._python_thread is None:
            # Pressed twice. debugpy would answer when the program goes on after its next stop, and be deaf until then.
            return {"allThreadsContinued": True}
        stop = self._leave()
        self._step = None
        if stop is not None and stop.vm is not None and self._session.has_agent:
            try:
                await self._session.tensors.ask("go", **_thread_of(stop.vm))
            except RequestError:
                if not stop.python:
                    raise
                # the agent has gone, and its stop with it: Python must not stay behind
        if stop is None or stop.python:
            self._python_thread = None
            await self._session.python.ask("continue", arguments)
        return {"allThreadsContinued": True}

    async def step(self, command: str, arguments: Message) -> Message:
        """`next`, `stepIn`, `stepOut`: the VM's while it stands, else Python's."""
        self._others_go()
        if self._next_queued():
            return {}
        stop = self.current
        if arguments.get("granularity") == "tile" and (stop is None or stop.vm is None):
            raise RequestError(_NO_AREA)
        if stop is not None and stop.vm is not None and self._session.has_agent and arguments.get("threadId") == stop.thread:
            if await self._step_vm(command, arguments, stop):
                return {}
        self._leave()
        self._python_thread = None
        # debugpy knows lines only; its own answer to a finer granularity would be an error.
        return await self._step_python(command, {key: value for key, value in arguments.items() if key != "granularity"})

    async def _step_vm(self, command: str, arguments: Message, stop: Stop) -> bool:
        kind = {"next": "line", "stepIn": "instruction", "stepOut": "out"}[command]
        if arguments.get("granularity") == "instruction" and command != "stepOut":
            kind = {"next": "instruction", "stepIn": "into"}[command]  # into: the tile code of a fused area
        tile = arguments.get("granularity") == "tile" and command == "stepIn"  # ours: as `into`, and no step where there is none
        if tile:
            kind = "tile"
        self._step = (command, stop.thread)  # before asking: the next vmstop may come with the answer
        held = self._session.references.clear()
        self._leave()
        try:
            await self._session.tensors.ask("step", kind=kind)
        except RequestError as error:
            self._session.log.note(f"the VM cannot step: {error}")
            self._step = None
            self.current = stop
            if not tile and stop.python:
                return False
            self._session.references.restore(held)  # it stands where it stood
            if self._session.member is not None:
                self._session.member.stands(True)
            raise
        return True

    def _next_queued(self) -> bool:
        if not self._queued or self.current is None:
            return False
        event = self._queued.pop(0)
        self._leave()
        self._session.spawn(self._announce_queued(event))
        return True

    async def _announce_queued(self, event: Message) -> None:
        # The thread suspended itself in pydevd when it stopped: which of debugpy's threads it is has to be found out.
        thread = self._python_thread
        for number in await self._threads():
            if await self.ident_of(number) == event.get("thread"):
                thread = number
        # The agent may have had Python's stop since, and describe that one.
        with contextlib.suppress(RequestError):
            await self._session.tensors.ask("select", **_thread_of(event))
        await self._announce_vm(event, thread or 1, python=thread is not None)

    async def _threads(self) -> list[int]:
        try:
            return [thread["id"] for thread in (await self._session.python.ask("threads"))["threads"]]
        except (RequestError, KeyError):
            return []

    async def ident_of(self, thread: int) -> int | None:
        """Python's ident of a suspended thread. Asked on the thread itself, once: debugpy's numbers are its own."""
        if thread not in self._idents:
            try:
                python = self._session.python
                stack = await python.ask("stackTrace", {"threadId": thread, "startFrame": 0, "levels": 1})
                frame = stack["stackFrames"][0]["id"]
                result = await python.ask("evaluate", {"expression": _IDENT, "frameId": frame, "context": "repl"})
                self._idents[thread] = int(result["result"])
            except (RequestError, LookupError, ValueError):
                return None
        return self._idents[thread]

    def agent_gone(self) -> None:
        """The tensor engine has ended while the program goes on: what is left is Python's."""
        self._coming = None
        self._queued.clear()
        if self.current is not None and self.current.tensor is not None:
            self.current.tensor = self.current.vm = None
            if self.current.python:
                self._invalidate(self.current.thread)
