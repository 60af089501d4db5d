"""Line and function breakpoints: one list for the client, its parts for two engines.

A line goes to debugpy if it may stop in the forward pass, and always to the agent, which stops where Python is not on that line itself:
in backward instructions and in programs that run without their Python body."""
from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .agent_peer import AgentPeer
from .channel import Message
from .conditions import logged, wrong_expression, wrong_hits
from .errors import RequestError
from .registry import Body, request

if TYPE_CHECKING:
    from .session import Session

MODES: tuple[Message, ...] = (
    {"mode": "forward", "label": "Forward", "description": "Stop when the line runs", "appliesTo": ["source"]},
    {"mode": "backward", "label": "Backward", "description": "Stop in the gradient of the line", "appliesTo": ["source"]},
    {"mode": "both", "label": "Forward and backward", "description": "Stop in the line and in its gradient", "appliesTo": ["source"]},
)
_NOT_RUNNING = "the running program does not have this line: what was saved is not in force"
_MODES = tuple(mode["mode"] for mode in MODES)

Key = tuple[int, int]  # line and column, as the client asked


@dataclass
class Breakpoint:
    """One line as asked for, and what each engine says about it."""

    id: int
    path: str
    asked: Message
    mode: str = "forward"
    refused: str = ""  # a mistake in the request: no engine gets it
    python: Message = field(default_factory=dict)  # debugpy's answer
    tensor: Message = field(default_factory=dict)  # the agent's
    shift: int | None = 0  # from the line asked for to that of the text in force, None if that has no such line
    hit: bool = False
    reported: bool = False  # the client believes it verified

    @property
    def forward(self) -> bool:
        return self.mode in ("forward", "both")

    def shown(self) -> Message:
        """As the client sees it: verified if either engine has bound it."""
        line = self.asked.get("line")
        shown: Message = {"id": self.id, "line": line, "source": {"path": self.path}}
        if self.refused:
            return {**shown, "verified": False, "reason": "failed", "message": self.refused}
        if self.shift is None:
            self.reported = False
            return {**shown, "verified": False, "reason": "pending", "message": _NOT_RUNNING}
        for name in ("line", "endLine", "column", "endColumn"):
            if self.forward and self.python.get(name):  # debugpy says line 0 where it finds the file empty, in the middle of a save
                shown[name] = self.python[name]
        if self.tensor.get("line"):
            shown = {"id": self.id, "line": self.tensor["line"] - self.shift, "source": {"path": self.path}}
        verified = bool((self.forward and self.python.get("verified")) or self.tensor.get("verified") or self.hit)
        told = self.tensor.get("verified") or self.tensor.get("hint") or not self.forward
        messages = [self.tensor.get("message") if told else None]
        if not verified:
            messages.append(self.python.get("message") if self.forward else None)
        if self.asked.get("column"):
            messages.append("stops at the line as a whole, not at the column")
        message = "; ".join(str(text) for text in messages if text)
        if not verified and not message:
            message = "waits for a captured function of this file to run" if self.mode != "forward" else ""
        shown["verified"] = verified
        if message:
            shown["message"] = message
        if not verified:
            shown["reason"] = "pending"
        self.reported = verified
        return shown

    def placed(self) -> Message:
        """What was asked for, at its line in the text in force."""
        return {**self.asked, "line": self.asked["line"] + (self.shift or 0)}

    def for_python(self) -> Message:
        asked = {key: value for key, value in self.placed().items() if key != "mode"}
        return {**asked, "logMessage": logged(asked["logMessage"])} if asked.get("logMessage") else asked

    def for_agent(self) -> Message:
        asked = self.placed()
        return {"id": self.id, "path": self.path, "line": asked.get("line"), "mode": self.mode, "condition": asked.get("condition"),
                "hitCondition": asked.get("hitCondition"), "logMessage": asked.get("logMessage")}


def _is_number(line: Any) -> bool:
    return type(line) is int and 0 < line < 1 << 31


class Breakpoints:
    """All breakpoints of the session, by their identity: file, line and column. Conditions may change without a new id."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 1
        self._files: dict[str, dict[Key, Breakpoint]] = {}
        self._given_paths: dict[str, str] = {}  # a file -> the path by which the client has it
        self._by_id: dict[int, Breakpoint] = {}
        self._from_python: dict[int, int] = {}  # debugpy's id -> ours
        # By file debugpy's ids of the list before, of which a stop may be on its way, and of the newest.
        self._given: dict[str, tuple[set[int], set[int]]] = {}
        self._ours_alone: set[int] = set()  # ids of instruction breakpoints
        self._lists: dict[str, Body] = {}  # request -> arguments, as debugpy got the newest that are no lines
        self._functions: list[int] = []  # ids of function breakpoints
        self.instructions: list[Message] = []  # the client's, from its Disassembly view
        self.ops: list[Message] = []  # on ops by name, as the agent takes them
        self.own: list[Message] = []  # on instructions too, by dvm/breakInstruction
        self.data: list[Message] = []  # data breakpoints, as the agent takes them
        self.filters: dict[str, str] = {}  # numeric filter -> its condition, "" if none is given

    def new_id(self) -> int:
        self._next += 1
        return self._next - 1

    @property
    def any_forward(self) -> bool:
        """Whether debugpy has a line to stop at."""
        return any(point.forward and not point.refused for points in self._files.values() for point in points.values())

    @property
    def on_instructions(self) -> list[Message]:
        """Both lists, as the agent takes them; where both have an instruction, the client's entry with its condition holds."""
        taken = {(item["program"], item["index"]) for item in self.instructions}
        return self.instructions + [item for item in self.own if (item["program"], item["index"]) not in taken]

    # ---- the client's list
    async def set_lines(self, arguments: Body) -> list[Message]:
        """`setBreakpoints`: replaces a file's list. Answers in the order asked, ids of unchanged lines kept."""
        source = arguments.get("source") or {}
        wanted = arguments.get("breakpoints")
        if wanted is None:
            wanted = [{"line": line} for line in arguments.get("lines") or []]
        path = source.get("path")
        if not path or not isinstance(path, str) or "\0" in path:
            # debugpy's server in the program would end by it, also with a sourceReference
            return [{"verified": False, "id": self.new_id(), "reason": "failed", "message": "a source without a path"} for _ in wanted]
        self._given_paths[os.path.realpath(path)] = path
        before = self._files.get(path, {})
        points = asked = [self._point(path, one, before) for one in wanted]
        mine = self._files[path] = {self._key(point.asked): point for point in points}
        kept = {point.id for point in points}
        for point in before.values():
            if point.id not in kept:
                self._by_id.pop(point.id, None)
        if arguments.get("sourceModified"):  # the list is for what was saved, which may not be in force yet, or never
            await self._session.reloads.compare(path)
            if self._files.get(path) is not mine:  # a newer list came meanwhile
                points = list(self._files.get(path, {}).values())
        self._session.tracing.look()
        # Both engines' requests leave in this order, without a wait between them; only the answers are waited for.
        python = self._ask_python(path, arguments, points)
        tensor = self._ask_agent()
        await python
        await tensor
        return [point.shown() for point in asked]

    def given_path(self, path: str) -> str:
        """The path by which the client has set breakpoints in a file, where the program reaches it by another one, through a link."""
        return path if path in self._files or not self._given_paths else self._given_paths.get(os.path.realpath(path), path)

    @staticmethod
    def _key(asked: Message) -> Key:
        return tuple(asked[name] if _is_number(asked.get(name)) else 0 for name in ("line", "column"))  # type: ignore[return-value]

    def _point(self, path: str, asked: Message, before: dict[Key, Breakpoint]) -> Breakpoint:
        known = before.get(self._key(asked))
        point = Breakpoint(known.id if known else self.new_id(), path, asked)
        if known:
            point.hit, point.tensor = known.hit, known.tensor
        mode = asked.get("mode") or "forward"
        if mode not in _MODES:
            point.refused = f"unknown breakpoint mode {mode!r}; known: {', '.join(_MODES)}"
        elif not _is_number(asked.get("line")):
            point.refused = f"line {asked.get('line')!r}: lines are numbered from 1"
        elif wrong := [name for name in ("condition", "hitCondition", "logMessage") if not isinstance(asked.get(name) or "", str)]:
            point.refused = f"{wrong[0]} must be a text"
        elif why := wrong_hits(asked.get("hitCondition")) or wrong_expression(asked.get("condition")):
            point.refused = why
        else:
            point.mode = mode
        self._by_id[point.id] = point
        return point

    def _ask_python(self, path: str, arguments: Body, points: list[Breakpoint]) -> asyncio.Future[None]:
        for point in points:
            line: Any = point.asked.get("line")
            point.shift = self._session.reloads.shift(path, line) if _is_number(line) else 0
        mine = [point for point in points if point.forward and not point.refused and point.shift is not None]
        asked = [point.for_python() for point in mine]
        forwarded = {key: value for key, value in arguments.items() if key not in ("lines", "sourceModified")}
        request = self._session.python.request(
            "setBreakpoints", {**forwarded, "source": {**(arguments.get("source") or {}), "path": path}, "breakpoints": asked})

        async def answer() -> None:
            response = await request
            if not response.get("success"):
                raise RequestError(response.get("message") or "debugpy refused the breakpoints")
            answers = (response.get("body") or {}).get("breakpoints") or []
            numbers = set()
            for point, given in zip(mine, answers):  # noqa: B905 - debugpy answers one for one
                point.python = self._in_file(point, given)
                if isinstance(given.get("id"), int):
                    self._from_python[given["id"]] = point.id
                    numbers.add(given["id"])
            over, before = self._given.get(path, (set(), set()))
            self._given[path] = before, numbers
            for number in over - before - numbers:  # debugpy numbers each list anew
                self._from_python.pop(number, None)

        return asyncio.ensure_future(answer())

    def _in_file(self, point: Breakpoint, given: Message) -> Message:
        """debugpy's answer, which is in lines of the text in force, in lines of the file; where that has them not, as was asked for."""
        lines = {name: self._session.reloads.line_in_file(point.path, given[name]) or point.asked.get("line")
                 for name in ("line", "endLine") if given.get(name)}
        return {**given, **lines}

    def _ask_agent(self) -> asyncio.Future[None]:
        if not self._session.has_agent:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        return asyncio.ensure_future(self._agent_answer(self._send_lines(self._session.tensors)))

    def _send_lines(self, agent: AgentPeer) -> asyncio.Future[Message]:
        lines = [point.for_agent() for points in self._files.values() for point in points.values()
                 if not point.refused and point.shift is not None]
        return agent.send("breakpoints", lines=lines)

    async def _agent_answer(self, sent: asyncio.Future[Message]) -> None:
        """Takes in what the agent says; an agent that fails leaves the lines to debugpy."""
        try:
            answer = await asyncio.wait_for(sent, 10)
        except (RequestError, TimeoutError, asyncio.TimeoutError) as error:
            self._session.log.note(f"the agent did not take the breakpoints: {error!r}")
            return
        if not answer.get("ok"):
            self._session.log.note(f"the agent did not take the breakpoints: {answer.get('error')}")
        for result in answer.get("results") or []:
            point = self._by_id.get(result.get("id"))
            if point is not None:
                point.tensor = result

    # ---- a new agent
    def tell(self, agent: AgentPeer) -> None:
        """Everything in force, to an agent that has just connected. Changes in what is verified become events."""
        filters = agent.send("filters", conditions=self.filters)
        self._session.tracing.tell(agent, new=True)
        sent = self._send_lines(agent)
        if self.instructions or self.own:
            agent.send("instructionBreakpoints", items=self.on_instructions)
        if self.ops:
            agent.send("opBreakpoints", items=self.ops)
        if self.data:
            agent.send("dataBreakpoints", items=self.data)
        self._session.spawn(self._told(sent, filters))

    async def _told(self, sent: asyncio.Future[Message], filters: asyncio.Future[Message]) -> None:
        with contextlib.suppress(RequestError, asyncio.TimeoutError):
            for name, why in ((await asyncio.wait_for(filters, 10)).get("refused") or {}).items():
                self._session.output.say(f"the filter {name!r} is not in force: {why}", "important")
        await self._agent_answer(sent)
        for points in self._files.values():
            for point in points.values():
                if not point.refused and not point.reported and point.tensor.get("verified"):
                    self._session.event("breakpoint", {"reason": "changed", "breakpoint": point.shown()})

    async def renew(self, path: str) -> None:
        """After new code is in force in a file: both engines bind its lines again."""
        points = list(self._files.get(path, {}).values())
        if not points:
            return
        python = self._ask_python(path, {"source": {"path": path}}, points)
        tensor = self._ask_agent()
        before = [point.reported for point in points]
        await python
        await tensor
        for point, was in zip(points, before):  # noqa: B905
            shown = point.shown()
            if shown["verified"] != was or shown["line"] != point.asked.get("line"):
                self._session.event("breakpoint", {"reason": "changed", "breakpoint": shown})

    # ---- what the engines report later
    def python_changed(self, body: Message) -> Message | None:
        """debugpy's `breakpoint` event in our ids; None if it is about one the client does not have."""
        given = body.get("breakpoint") or {}
        ours = self._from_python.get(given.get("id", -1))
        if ours is None:
            return None
        point = self._by_id.get(ours)
        if point is None:
            return {**body, "breakpoint": {**given, "id": ours}}
        point.python = {**point.python, **self._in_file(point, given)}
        return {**body, "breakpoint": point.shown()}

    def tensor_bound(self, event: Message) -> Message | None:
        """The agent's `bound`: a line has met a captured program."""
        point = self._by_id.get(event.get("id", -1))
        if point is None:
            if event.get("id") in self._ours_alone:
                return {key: event[key] for key in ("id", "verified", "message") if key in event}
            return None
        known = point.tensor.get("message"), point.reported
        point.tensor = {**point.tensor, **event}
        shown = point.shown()
        return shown if known != (point.tensor.get("message"), point.reported) else None

    def verified_by_hit(self, ids: list[int]) -> list[Message]:
        """Breakpoints that have just stopped the program and that the client holds for unverified."""
        changed = []
        for number in ids:
            point = self._by_id.get(number)
            if point is not None and not point.reported:
                point.hit = True
                changed.append(point.shown())
        return changed

    def with_our_ids(self, stopped: Message) -> Message:
        """debugpy's `stopped` with our breakpoint ids."""
        ids = stopped.get("hitBreakpointIds")
        if not ids:
            return stopped
        return {**stopped, "hitBreakpointIds": [self._from_python[number] for number in ids if number in self._from_python]}

    async def set_functions(self, arguments: Body) -> list[Message]:
        """debugpy's breakpoints that are no lines, in our ids."""
        answers = (await self.ask_python("setFunctionBreakpoints", arguments)).get("breakpoints") or []
        shown = []
        for answer in answers:
            if isinstance(answer.get("id"), int):
                answer = {**answer, "id": self._from_python.setdefault(answer["id"], self.new_id())}
            shown.append(answer)
        self._functions = [answer.get("id", 0) for answer in shown]
        return shown

    async def ask_python(self, command: str, arguments: Body) -> Body:
        """Sends debugpy a list that replaces its last one."""
        self._lists[command] = arguments
        return await self._session.python.ask(command, arguments)

    async def begin_anew(self) -> None:
        """Another program is about to begin, of which debugpy knows no list yet. The agent gets its own when it comes (`tell`).

        Instructions are numbered in programs of the one before: those breakpoints are gone."""
        self._from_python.clear()
        self._given.clear()
        for item in [*self.instructions, *self.own]:
            self._session.event("breakpoint", {"reason": "removed", "breakpoint": {"id": item["id"], "verified": False}})
        self.instructions, self.own = [], []
        for command, arguments in list(self._lists.items()):
            answers = (await self._session.python.ask(command, arguments)).get("breakpoints") or []
            if command == "setFunctionBreakpoints":
                self._from_python.update({answer["id"]: ours for answer, ours in zip(answers, self._functions, strict=False)
                                          if isinstance(answer.get("id"), int)})
        for path, points in list(self._files.items()):
            for point in points.values():
                point.python, point.tensor, point.hit = {}, {}, False
            await self.renew(path)

    async def answered(self, command: str, items: list[Message], answers: list[Message]) -> None:
        """Sets a list of breakpoints that only the agent knows, and fills in what it says of each; what it has not verified is pending."""
        said: dict[Any, Message] = {}
        if self._session.has_agent:
            said = {result.get("id"): result for result in (await self._session.tensors.ask(command, items=items)).get("results") or []}
        for answer in answers:
            result = said.get(answer["id"])
            if result is not None:
                answer["verified"] = bool(result.get("verified"))
                if result.get("message"):
                    answer["message"] = str(result["message"])
            elif items and not self._session.has_agent:
                answer.setdefault("message", "waits for the program to import dvm_core")
            if not answer["verified"]:
                answer.setdefault("reason", "pending")

    def alone(self, number: int) -> None:
        """Remembers an id of a breakpoint that only the agent knows."""
        self._ours_alone.add(number)


@request("setBreakpoints", supportsConditionalBreakpoints=True, supportsHitConditionalBreakpoints=True, supportsLogPoints=True,
         breakpointModes=list(MODES))
async def set_breakpoints(session: Session, arguments: Body) -> Body:
    return {"breakpoints": await session.breakpoints.set_lines(arguments)}
