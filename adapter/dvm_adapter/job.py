"""The ranks of one job, as the adapter sees them from which it was started: an edit goes to all of them before the same step, or to none.

Each rank prepares the edit and says at which step it is; all are told a later one. A rank that has come there makes the swap, records that
step with the new code, votes, and waits: only when all have voted yes does any of it count. Nobody waits without an end: VOTES seconds
after the first vote the edit is off."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Coroutine, Iterable
from typing import Any

from dvm_wire import saves
from dvm_wire.doors import start_time

from .agent_peer import Message
from .compared import Compared
from .errors import RequestError
from .link import Link
from .log import Log

PREPARE = 10.0  # seconds for a rank to read the edit
ARM = 5.0  # seconds for it to take the step it is told
VOTES = 5.0  # seconds from the first vote to the last
SETTLE = 10.0  # seconds for a rank to say what became of its swap
PENDING = 1.0  # seconds without a vote after which it is said that the edit waits
AHEAD = 0.02  # seconds to the step that is chosen: by then all ranks have been told
ATTEMPTS = 6  # each with a step four times as far away

_tickets = itertools.count(1)


class Rank:
    """One rank: its adapter's link and what is known of it."""

    def __init__(self, link: Link, hello: Message) -> None:
        self.link, self.pid, self.number = link, int(hello["pid"]), int(hello["rank"])
        self.started = start_time(self.pid)
        self.stands = False  # at a stop

    @property
    def name(self) -> str:
        return f"rank {self.number}"

    @property
    def lives(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started


class Edit:
    """One attempt to bring an edit to all ranks: who is in it, and what came from each."""

    def __init__(self, ranks: list[Rank]) -> None:
        self.ticket = str(next(_tickets))
        self.ranks = ranks
        self.reports: dict[Rank, Message] = {}  # what each rank would answer alone
        self.against: dict[Rank, str] = {}  # why an edit is off, by the rank that says so
        self.yes: dict[Rank, int] = {}  # with the step each has begun: calls of compiled models may count several at once
        self.settled: dict[Rank, Message] = {}
        self.changed = asyncio.Event()
        self.passed = False  # the step that was chosen had come and gone somewhere, or was not the same everywhere
        self.replaced = False  # by a later save, before anybody has voted

    @property
    def reason(self) -> str:
        return "; ".join(f"{rank.name}: {why}" for rank, why in sorted(self.against.items(), key=lambda item: item[0].number))

    def wake(self) -> None:
        self.changed.set()

    async def next(self, timeout: float) -> None:
        """Returns when something has come from a rank, or after the time."""
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self.changed.wait(), timeout)
        self.changed.clear()


class Job:
    """Ranks that one launcher started."""

    def __init__(self, log: Log) -> None:
        self.ranks: dict[int, Rank] = {}  # by process id; those whose session is there
        self._left: list[Rank] = []  # whose session has ended: the process may go on
        self._size = 0
        self._compared = Compared(self)
        self._holder: Rank | None = None  # at whose stop the others are held
        self._log = log
        self._edit: Edit | None = None
        self._lock = asyncio.Lock()
        self._saves: dict[str, saves.Stamp | None] = {}  # each save is seen by all ranks, and taken once

    # ---- the ranks
    def join(self, link: Link, hello: Message) -> Rank:
        rank = self.ranks[int(hello["pid"])] = Rank(link, hello)
        self._size = int(hello.get("size") or 0)
        link.on_event = lambda event: self._heard(rank, event)
        return rank

    def leave(self, rank: Rank) -> None:
        del self.ranks[rank.pid]
        self._left.append(rank)
        if rank is self._holder:
            self._release(rank)
        edit = self._edit
        if edit is not None and rank in edit.ranks:
            edit.against.setdefault(rank, "its session has ended" if rank.lives else "its process has ended")
            edit.wake()

    def _heard(self, rank: Rank, event: Message) -> None:
        edit = self._edit
        if event["ev"] == "stands":
            rank.stands = bool(event.get("stands"))
            if event.get("hold") and self._holder is None:
                self._holder = rank
                self._tell_others(rank, "hold", holder=f"{rank.name} stands ({event.get('why')})")
        elif event["ev"] == "goes":
            self._release(rank)
        elif event["ev"] == "digest":
            self._compared.heard(rank, event)
        elif edit is not None and event.get("ticket") == edit.ticket:
            if event["ev"] == "settled":
                edit.settled[rank] = {key: value for key, value in event.items() if key not in ("ev", "ticket")}
            elif event.get("ok"):
                edit.yes[rank] = int(event["step"])
                edit.passed = edit.passed or len(set(edit.yes.values())) > 1
            else:
                edit.against.setdefault(rank, str(event.get("reason")))
            edit.wake()

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

    def _others(self) -> str:
        """Why not all ranks can be asked, "" if they can."""
        self._left = [rank for rank in self._left if rank.lives]
        if self._left:
            return f"{self._left[0].name} (process {self._left[0].pid}) runs without a session: all ranks take an edit, or none does"
        numbers = {rank.number for rank in self.ranks.values()}
        missing = [number for number in range(self._size) if number not in numbers]
        named = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(map(str, missing[:8]))} have" if missing else ""
        return f"{named} no session here: all ranks take an edit, or none does" if missing else ""

    # ---- an edit
    async def saved(self, path: str) -> None:
        """A rank's adapter has seen a save."""
        mark = saves.stamp(path)
        if path not in self._saves or self._saves[path] != mark:
            self._saves[path] = mark
            await self.take(path)

    async def take(self, path: str, undo: bool = False) -> dict[int, Message]:
        """Brings the file as it is on disk to all ranks, or with `undo` takes back its last edit, with "" the last of all. The answer by
        process id; each rank is told its own."""
        if self._edit is not None and not self._edit.yes:
            self._edit.replaced = True
            self._edit.wake()
        async with self._lock:
            ranks = list(self.ranks.values())
            reason = self._others()
            bodies = dict.fromkeys(ranks, _refused(path, [reason])) if reason else await self._try(path, undo, ranks)
            for rank, body in bodies.items():
                rank.link.tell("told", body=body)
            return {rank.pid: body for rank, body in bodies.items()}

    async def _try(self, path: str, undo: bool, ranks: list[Rank]) -> dict[Rank, Message]:
        text = None if undo else await asyncio.to_thread(_text, path)
        for attempt in range(ATTEMPTS):
            edit = self._edit = Edit(ranks)
            try:
                if await self._attempt(edit, path, text, undo, 4**attempt):
                    return edit.reports
            finally:
                self._edit = None
        return dict.fromkeys(ranks, _refused(path, ["the ranks had passed every step that was chosen"]))

    async def _attempt(self, edit: Edit, path: str, text: str | None, undo: bool, further: int) -> bool:
        """False if the step that was chosen had come and gone."""
        await self._prepare(edit, path, text, undo)
        active = [rank for rank in edit.ranks if rank in edit.reports and (edit.reports[rank].get("ready") or {}).get("meaningful")]
        waiting = [rank for rank in edit.ranks if rank in edit.reports and "ready" in edit.reports[rank]]
        step = 0
        if active and not edit.against:
            at = [edit.reports[rank]["ready"] for rank in active]
            step = max(ready["step"] for ready in at) + further * (1 + math.ceil(AHEAD * max(ready["rate"] for ready in at)))
            await self._arm(edit, active, step)
            await self._votes(edit, active, step)
        keep = not edit.passed and not edit.against and not edit.replaced
        reason = edit.reason or ("replaced by a later save" if edit.replaced else "the step had been passed")
        await _all(rank.link.ask("decide", ticket=edit.ticket, keep=keep, reason=reason, timeout=ARM) for rank in waiting)
        await self._settled(edit, waiting)
        if edit.passed and not edit.against and not edit.replaced:
            return False
        if keep:
            await self._mend(edit, path, undo, active)
        if edit.against or not keep:
            edit.reports = dict.fromkeys(edit.ranks, _refused(path, [edit.reason or reason]))
        else:
            for rank in waiting:  # one that has not said what came of it is still in that step
                report = {key: value for key, value in edit.reports[rank].items() if key != "ready"}
                edit.reports[rank] = edit.settled.get(rank) or {**report, "step": step, "pending": True}
        return True

    async def _prepare(self, edit: Edit, path: str, text: str | None, undo: bool) -> None:
        async def ask(rank: Rank) -> None:
            try:
                report = await rank.link.ask("prepare", ticket=edit.ticket, path=path, text=text, undo=undo, timeout=PREPARE)
            except RequestError as error:
                edit.against.setdefault(rank, str(error))
                return
            edit.reports[rank] = {key: value for key, value in report.items() if key not in ("re", "ok")}
            if report.get("outcome") == "refused":
                edit.against[rank] = "; ".join(report.get("reasons") or [])

        await _all(ask(rank) for rank in edit.ranks)

    async def _arm(self, edit: Edit, active: list[Rank], step: int) -> None:
        """Tells the step."""
        async def ask(rank: Rank) -> None:
            try:
                answer = await rank.link.ask("arm", ticket=edit.ticket, step=step, timeout=ARM)
                edit.passed = edit.passed or not answer.get("armed")
            except RequestError as error:
                edit.against.setdefault(rank, str(error))

        await _all(ask(rank) for rank in active)

    async def _votes(self, edit: Edit, active: list[Rank], step: int) -> None:
        """Returns when all have voted, one against it, or one not in time."""
        loop = asyncio.get_running_loop()
        pending, end = loop.time() + PENDING, math.inf
        while not edit.against and not edit.passed and len(edit.yes) < len(active):
            now = loop.time()
            if edit.yes:
                end = min(end, now + VOTES)
            elif edit.replaced:
                return
            elif now >= pending:
                pending = math.inf
                self._tell_pending(edit, active, step)
            if now >= end:
                for rank in set(active) - set(edit.yes):
                    why = "; it stands at a stop" if rank.stands else ""
                    edit.against[rank] = f"did not come to step {step} within {VOTES:g} s of the others{why}: save again when it does"
                return
            await edit.next(min(pending, end) - now if min(pending, end) < math.inf else 60)

    def _tell_pending(self, edit: Edit, active: list[Rank], step: int) -> None:
        for rank in active:
            body = {key: value for key, value in edit.reports[rank].items() if key != "ready"}
            rank.link.tell("told", body={**body, "step": step, "pending": True, "reasons": [
                *(body.get("reasons") or []), f"waits for all {len(active)} ranks to come to step {step}"]})

    async def _settled(self, edit: Edit, ranks: list[Rank]) -> None:
        """Until each that was decided for has said what came of it, or has gone."""
        end = asyncio.get_running_loop().time() + SETTLE
        while any(rank not in edit.settled and rank.pid in self.ranks for rank in ranks):
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await edit.next(left)

    async def _mend(self, edit: Edit, path: str, undo: bool, active: list[Rank]) -> None:
        """A rank that had agreed could not keep its word: those that could take the edit back."""
        lost = {rank: "; ".join(report.get("reasons") or []) for rank, report in edit.settled.items()
                if rank in active and report.get("outcome") == "refused"}
        if not lost:
            return
        edit.against.update(lost)
        kept = [rank for rank in active if rank not in lost]
        if undo:
            edit.against.update(dict.fromkeys(kept, "had taken the edit back: save the file again to have one text in all ranks"))
        else:
            await _all(rank.link.ask("undoReload", path=path, timeout=SETTLE) for rank in kept)


async def _all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """All at once; who cannot be asked any more has gone, which is told elsewhere."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, RequestError):
            raise result


def _refused(path: str, reasons: list[str]) -> Message:
    return {"outcome": "refused", "path": path, "step": 0, "reasons": reasons, "changes": [], "instructionsPatched": 0,
            "instructionsTotal": 0, "ms": 0.0, "heldMs": 0.0, "pending": False}


def _text(path: str) -> str | None:
    """What all ranks shall read, once nobody writes to it; None where each says itself why it cannot be read."""
    saves.settle(path)
    try:
        return saves.read(path)
    except (OSError, SyntaxError, ValueError):
        return None


class Jobs:
    """All jobs of a session, by the process that started their ranks."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._jobs: dict[int, Job] = {}

    async def serve(self, link: Link, hello: Message) -> None:
        """A rank's adapter, until it goes."""
        job = self._jobs.setdefault(int(hello.get("job") or 0), Job(self._log))
        rank = job.join(link, hello)

        async def serve(command: str, arguments: Message) -> Message:
            path = str(arguments.get("path") or "")
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
