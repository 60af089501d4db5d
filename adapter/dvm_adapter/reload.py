"""Hot reload: on request, or when a source of the program is saved; every save gets an answer."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from dvm_wire import SETTLED, Saves, folders, watching
from dvm_wire.saves import read

from .channel import Message
from .errors import RequestError
from .line_map import LineMap
from .registry import Body, Needs, request
from .sources import old_source
from .stack import source_of

if TYPE_CHECKING:
    from .agent_peer import AgentPeer
    from .session import Session

_LARGEST_SCRIPT = 4 << 20  # bytes
RELOAD_TIMEOUT = 60.0  # the swap waits for the next call of a captured function
LOOK_AGAIN = 1.0  # seconds after a new program before the list of sources is asked for again

# The program's own source files: loaded modules outside of the standard library and installed packages. Runs on pydevd's own thread.
_SOURCES = (
    "(lambda sys, os, paths: __import__('json').dumps(sorted({os.path.abspath(f) for m in list(sys.modules.values()) "
    "for f in [getattr(m, '__file__', None)] if isinstance(f, str) and f.endswith('.py') "
    "and not os.path.abspath(f).startswith(tuple(paths))})))"
    "(__import__('sys'), __import__('os'), [p + __import__('os').sep for p in __import__('sysconfig').get_paths().values()]"
    " + [__import__('os').path.dirname(__import__('os').path.abspath(m.__file__)) + __import__('os').sep "
    "for m in [__import__('sys').modules.get(n) for n in ('debugpy', 'pydevd', 'dvm_core', 'dvm_wire')] "
    "if m and getattr(m, '__file__', None)])"
)


class Reloads:
    """Watches the program's sources, asks the agent for reloads, reports outcomes once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._watching: asyncio.Task[Any] | None = None
        self._saves = Saves()
        self._saves.rest = watching.rest()
        self._changed = asyncio.Event()
        self._look_timer: asyncio.TimerHandle | None = None
        self._settle_timer: asyncio.TimerHandle | None = None
        self._reported: tuple[str, bool] | None = None  # what was told last, and whether it was an answer
        self._swapped = False  # whether code was ever replaced
        self._begun: tuple[str, str] | None = None  # the script's path and text when it was started
        self._maps: dict[str, LineMap] = {}  # of files whose text on disk is not in force
        self._answers = 0  # a comparison that was asked for before the newest answer is stale

    # ---- reloading
    async def reload(self, path: str, settled: bool = False) -> Message:
        """Reloads a file and reports the outcome. A refusal is an answer, not an error. settled: nobody writes to the file any more."""
        if self._session.member is not None:
            return await self._session.member.reload(path)
        answer = await self._session.tensors.ask("reload", path=path, settled=settled, timeout=RELOAD_TIMEOUT)
        body = {"path": path, **answer}
        self.reported(body, answer=True)
        return body

    async def undo(self, path: str | None) -> Message:
        """Takes back the last reload, with a path the last one of that file."""
        if self._session.member is not None:
            return await self._session.member.undo(path)
        named = {"path": path} if path else {}
        body = await self._session.tensors.ask("undoReload", **named, timeout=RELOAD_TIMEOUT)
        self.reported(body, answer=True)
        return body

    def reported(self, body: Message, *, answer: bool = False) -> None:
        """An outcome. The agent answers the command and may send an event for the same reload: the client gets one of the two.

        Two answers alike are two reloads: a file saved twice with the same fault is refused twice.
        """
        said = ("outcome", "step", "reasons", "ms", "instructionsPatched", "changes")
        mark = json.dumps({key: body.get(key) for key in said}, sort_keys=True)
        if self._reported == (mark, not answer):
            self._reported = None
            return
        self._reported = mark, answer
        self._session.event("dvm/reload", body)
        self._answers += 1
        self._session.spawn(self._answered(body))

    async def _answered(self, body: Message) -> None:
        """Breakpoints are where the text in force has them; with new code in force the client looks at stacks and sources again."""
        session = self._session
        path, applied = body.get("path"), body.get("outcome") == "applied"
        self._swapped = self._swapped or applied
        if not isinstance(path, str):
            return
        moved = await self.compare(path)
        if applied or moved:
            await session.breakpoints.renew(path)
            if applied:
                session.event("loadedSource", {"reason": "changed", "source": source_of(path)})
            if session.stops.stopped and session.client_arguments.get("supportsInvalidatedEvent"):
                session.event("invalidated", {"areas": ["stacks", "variables"]})

    # ---- the text on disk and the text in force
    async def compare(self, path: str) -> bool:
        """Finds out whether the program runs the text that is on disk. Gives whether lines are elsewhere now, or were."""
        key, differed = os.path.realpath(path), self._map(path) is not None
        with contextlib.suppress(RequestError, asyncio.TimeoutError):
            while self._session.has_agent:
                asked = self._answers
                told = await self._session.tensors.ask("texts", path=path)
                found = await asyncio.to_thread(LineMap, str(told["inForce"]), str(told["disk"])) if "disk" in told else None
                if asked != self._answers:
                    continue
                self._maps.pop(key, None)
                if found is not None:
                    self._maps[key] = found
                break
        return differed or key in self._maps

    def _map(self, path: str | None) -> LineMap | None:
        return self._maps.get(os.path.realpath(path)) if self._maps and path else None

    def shift(self, path: str, line: int) -> int | None:
        """What to add to a line of the file for its line in the text in force, None if that has no such line."""
        lines = self._map(path)
        found = lines.to_force(line) if lines is not None else line
        return None if found is None else found - line

    def line_in_file(self, path: str, line: int) -> int | None:
        """Where the file has a line of the text in force, None if it has not."""
        lines = self._map(path)
        return lines.to_disk(line) if lines is not None else line

    def place(self, frame: Message) -> None:
        """Moves a frame from the text in force to the file, or shows that text where the file does not have the line."""
        source = frame.get("source") or {}
        lines = self._map(source.get("path"))
        if lines is None or source.get("sourceReference"):
            return
        line = lines.to_disk(frame["line"])
        if line is None:
            frame["source"] = old_source(self._session, source["path"], lines.in_force)
        else:
            moved = line - frame["line"]
            frame.update({name: frame[name] + moved for name in ("line", "endLine") if frame.get(name)})

    async def date(self, thread: Any, frames: list[Message]) -> None:
        """Gives debugpy's frames that run code from before a reload the text their lines are numbered in."""
        session = self._session
        if not session.has_agent or not isinstance(thread, int):
            return
        told: list[Message] = []
        with contextlib.suppress(RequestError):
            # What was brought in before a session attached, nobody has told it of.
            if (self._swapped or not session.config.launched) and (ident := await session.stops.ident_of(thread)) is not None:
                told = (await session.tensors.ask("outdated", thread=ident)).get("frames") or []
        for frame in frames:
            path = str((frame.get("source") or {}).get("path") or "")
            place = os.path.realpath(path), frame.get("line")
            at = next((i for i, old in enumerate(told) if path and place == (os.path.realpath(old["path"]), old["line"])), None)
            if at is not None:
                frame["source"] = old_source(session, path, told[at]["text"])
                del told[:at + 1]  # both lists are innermost first
            else:
                self.place(frame)

    # ---- the script, from its start on
    def begin(self) -> None:
        """Before the program starts: its script as it will run. A save may come long before there is an agent."""
        script = self._script()
        with contextlib.suppress(OSError, SyntaxError, ValueError):  # what cannot be read is told by who runs it
            if script and os.path.getsize(script) <= _LARGEST_SCRIPT:
                self._begun = script, read(script)

    def tell(self, agent: AgentPeer) -> None:
        """A new agent hears what the program was started from."""
        if self._begun is not None:
            path, text = self._begun
            agent.send("begunAs", path=path, text=text)

    def _script(self) -> str:
        arguments = self._session.config.arguments
        program = arguments.get("program")
        return os.path.realpath(os.path.join(arguments.get("cwd") or "", os.path.expanduser(program))) if isinstance(program, str) else ""

    async def _early_save(self) -> None:
        """A save of the script between its start and now is answered like any other."""
        if self._begun is None:
            return
        path, text = self._begun
        self._begun = None
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            if read(path) != text:
                await self._saved(path)

    # ---- watching
    def start(self) -> None:
        """Starts watching, if saves are to reload and the program is ours to ask for its sources."""
        if self._session.config.settings["hotReload"] == "onSave" and self._watching is None:
            self._watching = self._session.spawn(self._watch())

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for timer in (self._look_timer, self._settle_timer):
            if timer is not None:
                timer.cancel()

    def sources_changed(self) -> None:
        """A new program was captured: its code may come from a module loaded since."""
        if self._watching is not None and self._look_timer is None:
            self._look_timer = asyncio.get_running_loop().call_later(LOOK_AGAIN, self._look_again)

    def _look_again(self) -> None:
        self._look_timer = None
        self._changed.set()

    async def sources(self) -> set[str]:
        """The files to watch: what the program has loaded, and its main file."""
        found = {script} if (script := self._script()) else set()
        with contextlib.suppress(RequestError, ValueError, TypeError):
            answer = await asyncio.wait_for(self._session.python.ask("evaluate", {"expression": _SOURCES, "context": "clipboard"}), 5)
            loaded = json.loads(str(answer.get("result", "[]")).strip("'"))
            paths = self._session.agent.paths if self._session.agent is not None else None
            found.update(map(paths.to_client, loaded) if paths else loaded)
        return found

    async def _watch(self) -> None:
        if not watching.available():
            self._session.output.say(f"hot reload on save needs the package {watching.PACKAGE} in the adapter's environment", "important")
            return
        while True:
            self._changed.clear()
            self._saves.files = await self.sources()
            self._report_saves()  # a save while the list was made
            self._session.spawn(self._early_save())
            watched = folders(self._saves.files)
            if not watched:
                await self._changed.wait()
                continue
            # Looks from time to time as well, for the save that fell between two watches.
            async with contextlib.aclosing(watching.happened(watched, self._changed)) as told:
                async for closed in told:
                    self._report_saves(closed)

    def _report_saves(self, closed: Collection[str] = ()) -> None:
        """Reloads each watched file that was saved; one that is still being written is looked at again soon."""
        for path in self._saves.look(closed):
            self._session.spawn(self._saved(path))
        if self._saves.moving and self._settle_timer is None:
            self._settle_timer = asyncio.get_running_loop().call_later(SETTLED, self._settled)

    def _settled(self) -> None:
        self._settle_timer = None
        self._report_saves()

    async def _saved(self, path: str) -> None:
        try:
            if self._session.member is not None:
                await self._session.member.saved(path)
            else:
                await self.reload(path, settled=True)
        except RequestError as error:
            if not self._session.terminated and self._session.reloads is self:
                self._session.event("dvm/reload", {"path": path, "outcome": "refused", "reasons": [str(error)]})


@request("dvm/reload", needs=Needs.AGENT)
async def reload(session: Session, arguments: Body) -> Body:
    return await session.reloads.reload(os.path.abspath(arguments["path"]))


@request("dvm/reloadListings", needs=Needs.AGENT)
async def reload_listings(session: Session, arguments: Body) -> Body:
    answer = await session.tensors.ask("reloadListings")
    return {key: answer[key] for key in ("path", "step", "programs")}


@request("dvm/undoReload", needs=Needs.AGENT)
async def undo_reload(session: Session, arguments: Body) -> Body:
    path = arguments.get("path")
    return await session.reloads.undo(path and os.path.abspath(path))
