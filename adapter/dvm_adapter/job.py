"""The ranks of one job, as the adapter sees them from which it was started: an edit goes to all of them before the same
call, or to none (edit)."""
from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from dvm_wire import saves
from dvm_wire.retries import Retries

from . import edit as edits
from .agent_peer import Message
from .compared import Compared
from .edit import Edit, Rank
from .errors import RequestError
from .link import Link
from .log import Log
from .tasks import background

_REMEMBERED = 16  # edits that are in force
COMING = 10.0  # seconds from the first rank to the last
ATTEMPTS = 6  # each with a step four times as far away


class Job:
    """Ranks that one launcher started."""

    def __init__(self, log: Log, rank: type[Rank] = Rank) -> None:
        self._make_rank = rank
        self.ranks: dict[int, Rank] = {}  # by process id; those whose session is there
        self._left: list[Rank] = []  # whose session has ended: the process may go on
        self._size = 0
        self._coming = 0.0  # until when ranks may still come
        self._joined = asyncio.Event()
        self._compared = Compared(self)
        self._holder: Rank | None = None  # at whose stop the others are held
        self._log = log
        self._edit: Edit | None = None
        self._unsettled: dict[str, Edit] = {}  # by ticket: kept, and not every rank has said what came of it, or it may fail yet
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lock = asyncio.Lock()
        self._saves: dict[str, saves.Stamp | None] = {}  # each save is seen by all ranks, and taken once
        self._retries = Retries()
        self._waited = False  # whether the ranks were told that the edit waits

    # ---- the ranks
    def join(self, link: Link, hello: Message) -> Rank:
        rank = self._make_rank(link, hello)
        self._left = [other for other in self._left if other.pid != rank.pid]
        if (before := self.ranks.get(rank.pid)) is not None:
            before.link.close()  # its session has come anew
        self.ranks[rank.pid] = rank
        self._size = int(hello.get("size") or 0)
        self._coming = self._coming or asyncio.get_running_loop().time() + COMING
        self._joined.set()
        link.on_event = lambda event: self._heard(rank, event)
        return rank

    def leave(self, rank: Rank) -> None:
        if self.ranks.get(rank.pid) is rank:
            del self.ranks[rank.pid]
            self._left.append(rank)
        if rank is self._holder:
            self._release(rank)
        if self._edit is not None:
            self._edit.left(rank)
        for edit in list(self._unsettled.values()):
            self._forget_if_settled(edit)

    def _heard(self, rank: Rank, event: Message) -> None:
        if event["ev"] == "stands":
            rank.stands = bool(event.get("stands"))
            if event.get("hold") and self._holder is None:
                self._holder = rank
                self._tell_others(rank, "hold", holder=f"{rank.name} stands ({event.get('why')})")
        elif event["ev"] == "goes":
            self._release(rank)
        elif event["ev"] == "digest":
            self._compared.heard(rank, event)
        elif self._edit is not None and event.get("ticket") == self._edit.ticket:
            self._edit.heard(rank, event)
        elif event["ev"] == "settled" and (edit := self._unsettled.get(str(event.get("ticket")))) is not None:
            edit.heard(rank, event)
            if edit.lost:
                background(self._mend(edit), self._tasks)
            else:
                rank.told(edit.settled[rank])
                self._forget_if_settled(edit)

    def _tell_others(self, rank: Rank, event: str, **fields: Any) -> None:
        for other in self.ranks.values():
            if other is not rank:
                other.link.tell(event, **fields)

    def _release(self, rank: Rank) -> None:
        """A rank goes on, or has gone: who is held goes on as well, and whose stop holds it."""
        holder, self._holder = self._holder, None
        for other in self.ranks.values() if holder is not None else ():
            if other is not rank:
                other.link.tell("release", everything=other is holder)

    def _missing(self) -> list[int]:
        numbers = {rank.number for rank in self.ranks.values()}
        return [number for number in range(self._size) if number not in numbers]

    def _others(self) -> str:
        """Why not all ranks can be asked, "" if they can."""
        self._left = [rank for rank in self._left if rank.lives]
        if self._left:
            return f"{self._left[0].name} (process {self._left[0].pid}) runs without a session: all ranks take an edit, or none does"
        missing = self._missing()
        named = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(map(str, missing[:8]))} have" if missing else ""
        return f"{named} no session here: all ranks take an edit, or none does" if missing else ""

    async def _all_here(self) -> None:
        """Returns when there is a session for each rank, or the time for that is over: ranks come one after the other."""
        loop = asyncio.get_running_loop()
        while self._missing() and not any(rank.lives for rank in self._left) and loop.time() < self._coming:
            self._joined.clear()
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._joined.wait(), self._coming - loop.time())

    # ---- an edit
    async def saved(self, path: str) -> None:
        """A rank's adapter has seen a save."""
        mark = saves.stamp(path)
        if path not in self._saves or self._saves[path] != mark:
            self._saves[path] = mark
            await self.take(path)

    async def take(self, path: str, undo: bool = False, again: bool = False) -> dict[int, Message]:
        """Brings the file as it is on disk to all ranks, or with `undo` takes back its last edit, with "" the last of all. The answer by
        process id; each rank is told its own. One for another file waits until the edit before it is decided. again: it was refused, and
        is told of only if it is not once more, or had to wait."""
        if self._edit is not None and not self._edit.yes and _same(self._edit.path, path):
            self._edit.replace("replaced by an undo" if undo else "replaced by a later save")
        loop = asyncio.get_running_loop()
        at, told = loop.time(), loop.call_later(edits.PENDING, self._tell_queued, path) if not again else None
        try:
            await self._lock.acquire()
        finally:
            if told is not None:
                told.cancel()
        self._waited = False
        try:
            await self._all_here()
            ranks = list(self.ranks.values())
            reason = self._others()
            bodies = dict.fromkeys(ranks, edits.refused(path, [reason])) if reason else await self._try(path, undo, ranks)
            outcomes = {body.get("outcome") for body in bodies.values()}
            if self._waited or not (again and "refused" in outcomes):
                for rank, body in bodies.items():
                    rank.told(body)
            if not undo:
                outcome = next((one for one in ("refused", "applied") if one in outcomes), "unchanged")
                for other in self._retries.answered(path, outcome, at, again):
                    background(self.take(other, again=True), self._tasks)
            return {rank.pid: body for rank, body in bodies.items()}
        finally:
            self._lock.release()

    def _tell_queued(self, path: str) -> None:
        before = os.path.basename(self._edit.path) if self._edit is not None else ""
        for rank in self.ranks.values():
            rank.told(edits.waits(path, f"waits for the edit of {before or 'another file'} before it"))

    async def _try(self, path: str, undo: bool, ranks: list[Rank]) -> dict[Rank, Message]:
        try:
            text = None if undo else await asyncio.to_thread(_text, path)
        except (OSError, SyntaxError, ValueError) as error:
            return dict.fromkeys(ranks, edits.refused(path, [f"{path} cannot be read: {error}"]))
        without: set[str] = set()
        for attempt in range(ATTEMPTS):
            edit = self._edit = Edit(ranks, path, undo, without)
            try:
                if not await edit.attempt(text, 4**attempt):
                    continue
                if edit.kept:  # what became of an older text of the file does not matter any more
                    self._unsettled = {ticket: other for ticket, other in self._unsettled.items() if not _same(other.path, edit.path)}
                    self._unsettled[edit.ticket] = edit
                    self._forget_if_settled(edit)
                return edit.reports
            finally:
                self._waited |= edit.waited
                self._edit = None
        return dict.fromkeys(ranks, edits.refused(path, ["the ranks had passed every step that was chosen"]))

    async def _mend(self, edit: Edit) -> None:
        """A rank has said after the answer that it could not keep its word, or could while another could not: all are told."""
        async with self._lock:
            if edit.ticket in self._unsettled and await edit.mend():
                for rank in edit.ranks:
                    rank.told(edits.refused(edit.path, [edit.reason]))
            self._forget_if_settled(edit)

    def _forget_if_settled(self, edit: Edit) -> None:
        """One that is in force everywhere may still fail in a captured function that was not called yet."""
        if not edit.unsettled and edit.against:
            self._unsettled.pop(edit.ticket, None)
        while len(self._unsettled) > _REMEMBERED:
            del self._unsettled[next(iter(self._unsettled))]


def _text(path: str) -> str:
    """What all ranks shall read, once nobody writes to it. Raises OSError, SyntaxError or ValueError."""
    saves.settle(path)
    return saves.read(path)


def _same(path: str, other: str) -> bool:
    return path == other or bool(path and other) and os.path.realpath(path) == os.path.realpath(other)


class Jobs:
    """All jobs of a session, by the process that started their ranks."""

    def __init__(self, log: Log, rank: type[Rank] = Rank) -> None:
        """rank: what is made of each that comes."""
        self._log, self._rank = log, rank
        self._jobs: dict[int, Job] = {}

    @property
    def ranks(self) -> list[Rank]:
        return [rank for job in self._jobs.values() for rank in job.ranks.values()]

    async def serve(self, link: Link, hello: Message) -> None:
        """A rank's adapter, until it goes."""
        job = self._jobs.setdefault(int(hello.get("job") or 0), Job(self._log, self._rank))
        rank = job.join(link, hello)

        async def serve(command: str, arguments: Message) -> Message:
            path = str(arguments.get("path") or "")
            if command == "joined":  # whether anybody is there: a process that is being killed still lets others connect
                return {}
            if command == "saved":
                await job.saved(path)
                return {}
            if command in ("reload", "undo"):
                return {"body": (await job.take(path, undo=command == "undo")).get(rank.pid)}
            raise RequestError(f"unknown command {command!r}")

        link.serve = serve
        try:
            await link.run()
        finally:
            job.leave(rank)
