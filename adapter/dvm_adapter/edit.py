"""One edit on its way to all ranks of a job: what each is asked, what it answers, what is decided.

Each rank prepares the edit and says how far it is; all are told one call that is to come (meeting). A rank that has come there makes the
swap, records that call with the new code, votes, and waits: only when all have voted yes, for one and the same call, does any of it count.
Nobody waits without an end: VOTES seconds after the first vote the edit is off."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
from collections.abc import Coroutine, Iterable
from typing import Any

from dvm_wire.doors import start_time

from .agent_peer import Message
from .errors import RequestError
from .link import Link
from .meeting import Meeting, choose

PREPARE = 10.0  # seconds for a rank to read the edit
ARM = 5.0  # seconds for it to take the step it is told
VOTES = 5.0  # seconds from the first vote to the last
SETTLE = 10.0  # seconds for a rank to say what became of its swap, before the answer goes out without it
PENDING = 1.0  # seconds without a vote after which it is said that the edit waits

_RUN = secrets.token_hex(4)  # ranks outlive who speaks for them: tickets of the next one are others
_tickets = itertools.count(1)


class Rank:
    """One rank: its adapter's link and what is known of it."""

    def __init__(self, link: Link, hello: Message) -> None:
        self.link, self.pid, self.number = link, int(hello["pid"]), int(hello["rank"])
        self.started = start_time(self.pid)
        self.stands = False  # at a stop

    def told(self, body: Message) -> None:
        """Tells it what came of an edit, or that it waits."""
        self.link.tell("told", body=body)

    @property
    def name(self) -> str:
        return f"rank {self.number}"

    @property
    def lives(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started


def named(numbers: list[int]) -> str:
    """`rank 3`, `ranks 0-3`, `ranks 0, 2, 5-7`. numbers: in their order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    each = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' * (len(numbers) > 1)} {each}"


class Edit:
    """One attempt to bring an edit to all ranks: who is in it, and what came from each."""

    def __init__(self, ranks: list[Rank], path: str, undo: bool, without: set[str]) -> None:
        """path: "" with undo for the last edit of all; without: captured functions that have turned out not to be called any more."""
        self.ticket = f"{_RUN}-{next(_tickets)}"
        self.ranks, self.path, self.undo = ranks, path, undo
        self.reports: dict[Rank, Message] = {}  # what each rank would answer alone
        self.against: dict[Rank, str] = {}  # why an edit is off, by the rank that says so
        self.yes: dict[Rank, int] = {}  # with the call each has begun: those of compiled models may count several at once
        self.settled: dict[Rank, Message] = {}
        self.passed = False  # the step that was chosen had come and gone somewhere, or was not the same everywhere
        self.waited = False  # which the ranks were told
        self._without, self._meeting = without, Meeting(0)
        self.replaced = ""  # by what, before anybody has voted
        self.kept: bool | None = None  # the decision
        self._active: list[Rank] = []  # who exchange code
        self._waiting: list[Rank] = []  # who were ready for the decision
        self._lost: set[Rank] = set()  # who could not keep their word, and
        self._asked_back: set[Rank] = set()  # who were to take it back
        self._changed = asyncio.Event()

    @property
    def reason(self) -> str:
        of: dict[str, list[int]] = {}
        for rank in sorted(self.against, key=lambda rank: rank.number):
            of.setdefault(self.against[rank], []).append(rank.number)
        return "; ".join(f"{named(numbers)}: {why}" for why, numbers in of.items())

    @property
    def unsettled(self) -> list[Rank]:
        """Who have yet to say what came of it."""
        return [rank for rank in self._waiting if rank not in self.settled and not rank.link.gone]

    @property
    def lost(self) -> bool:
        """Whether it was decided for, and one could not keep its word."""
        return any(report.get("outcome") == "refused" for report in self.settled.values()) and bool(self.kept)

    # ---- what comes from the ranks
    def heard(self, rank: Rank, event: Message) -> None:
        """A rank's `vote` or `settled`."""
        if event["ev"] == "settled":
            self.settled[rank] = {key: value for key, value in event.items() if key not in ("ev", "ticket")}
        elif event.get("ok"):
            self.yes[rank] = int(event["step"])
            self.passed = self.passed or len(set(self.yes.values())) > 1
        else:
            self.against.setdefault(rank, str(event.get("reason")))
        self._changed.set()

    def left(self, rank: Rank) -> None:
        if rank in self.ranks:
            self.against.setdefault(rank, "its session has ended" if rank.lives else "its process has ended")
            self._changed.set()

    def replace(self, by: str) -> None:
        self.replaced = by
        self._changed.set()

    async def _next(self, timeout: float) -> None:
        """Returns when something has come from a rank, or after the time."""
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)
        self._changed.clear()

    # ---- what they are asked
    async def attempt(self, text: str | None, further: int) -> bool:
        """Leaves in `reports` what each rank is to be told. False if the step that was chosen had come and gone."""
        try:
            return await self._attempt(text, further)
        finally:
            if self.kept is None:  # nobody is left waiting
                self._off(self.ranks, "the debugger broke the edit off")

    async def _attempt(self, text: str | None, further: int) -> bool:
        await self._prepare(text)
        self._waiting = [rank for rank in self.ranks if rank in self.reports and "ready" in self.reports[rank]]
        self._active = [rank for rank in self._waiting if self.reports[rank]["ready"].get("meaningful")]
        if self._active and not self.against:
            paces = await self._paces()
            if not self.against:
                self._meeting = choose(paces, further, self._without)
                await self._arm()
                await self._votes(paces)
        keep = self.kept = not self.passed and not self.against and not self.replaced
        reason = self.reason or self.replaced or "the step had been passed"
        self._off([rank for rank in self.ranks if rank not in self.reports], reason)
        await _all(rank.link.ask("decide", ticket=self.ticket, keep=keep, reason=reason, timeout=ARM) for rank in self._waiting)
        await self._settle()
        if self.passed and not self.against and not self.replaced:
            return False
        while keep and await self.mend():
            pass
        if self.against or not keep:
            self.reports = dict.fromkeys(self.ranks, refused(self.path, [self.reason or reason]))
        else:
            for rank in self._waiting:  # one that has not said what came of it is still in that step
                self.reports[rank] = self.settled.get(rank) or self._pending(rank)
        return True

    def _off(self, ranks: list[Rank], reason: str) -> None:
        """Says no to those of whom no answer is awaited."""
        for rank in ranks:
            rank.link.send("decide", ticket=self.ticket, keep=False, reason=reason)

    async def _prepare(self, text: str | None) -> None:
        async def ask(rank: Rank) -> None:
            try:
                report = await rank.link.ask("prepare", ticket=self.ticket, path=self.path, text=text, undo=self.undo, timeout=PREPARE)
            except RequestError as error:
                self.against.setdefault(rank, str(error))
                return
            self.reports[rank] = report
            if report.get("outcome") == "refused":
                self.against[rank] = "; ".join(report.get("reasons") or [])
            elif report.get("outcome") == "applied" and "ready" not in report:
                self.against[rank] = "; ".join(report.get("reasons") or []) or "did not wait for the other ranks"

        await _all(ask(rank) for rank in self.ranks)
        self.path = self.path or next((str(report["path"]) for report in self.reports.values() if report.get("path")), "")

    async def _asked(self, rank: Rank, command: str, **arguments: Any) -> Message | None:
        """The rank's answer. One that cannot give it is against the edit: None."""
        try:
            return await rank.link.ask(command, timeout=ARM, **arguments)
        except RequestError as error:
            self.against.setdefault(rank, str(error))
            return None

    async def _paces(self) -> list[Message]:
        """Where each is, now that all are ready."""
        answers = await asyncio.gather(*(self._asked(rank, "pace") for rank in self._active))
        return [answer for answer in answers if answer is not None]

    async def _arm(self) -> None:
        """Tells the call."""
        told = {"ticket": self.ticket, "number": self._meeting.number, "of": self._meeting.of}
        answers = await asyncio.gather(*(self._asked(rank, "arm", **told) for rank in self._active))
        self.passed = self.passed or any(answer is not None and not answer.get("armed") for answer in answers)

    async def _votes(self, paces: list[Message]) -> None:
        """Returns when all have voted, one against it, or one not in time, or none will. paces: from when the call was chosen."""
        meeting = self._meeting
        loop = asyncio.get_running_loop()
        pending, end = loop.time() + PENDING, math.inf
        while not self.against and not self.passed and len(self.yes) < len(self._active):
            now = loop.time()
            if self.yes:
                end = min(end, now + VOTES)
            elif self.replaced:
                return
            elif now >= pending:
                pending = now + PENDING if meeting.of else math.inf
                here = await self._paces() if meeting.of else []
                if here and not self.against and meeting.passed_over(paces, here):
                    self._without.add(meeting.of)
                    self.passed = True
                    return
                for rank in self._active if not self.waited else ():
                    body = self._pending(rank)
                    body["reasons"] = [*body["reasons"], f"waits for all {len(self._active)} ranks to come to {meeting}"]
                    rank.told(body)
                self.waited = True
            if now >= end:
                for rank in set(self._active) - set(self.yes):
                    why = "; it stands at a stop" if rank.stands else ""
                    self.against[rank] = f"did not come to {meeting} within {VOTES:g} s of the others{why}: save again when it does"
                return
            await self._next(min(pending, end) - now if min(pending, end) < math.inf else 60)

    def _pending(self, rank: Rank) -> Message:
        report = {key: value for key, value in self.reports[rank].items() if key != "ready"}
        return {**report, "reasons": report.get("reasons") or [], "step": 0 if self._meeting.of else self._meeting.number, "pending": True}

    async def _settle(self) -> None:
        """Until each that was decided for has said what came of it, or has gone; the rest is `unsettled`."""
        end = asyncio.get_running_loop().time() + SETTLE
        while self.unsettled and (left := end - asyncio.get_running_loop().time()) > 0:
            await self._next(left)

    async def mend(self) -> bool:
        """Where a rank that had agreed could not keep its word, those that could take the edit back, also one that says so later; who could
        not is in `against`. Whether there was anything to do."""
        lost = {rank: "; ".join(report.get("reasons") or []) for rank, report in self.settled.items()
                if rank in self._active and report.get("outcome") == "refused"}
        kept = [rank for rank in self._active if rank in self.settled and rank not in lost and rank not in self._asked_back]
        if not lost or not kept and not lost.keys() - self._lost:
            return False
        self._lost.update(lost)
        self.against.update(lost)
        still = [rank for rank in self.unsettled if rank in self._active]
        self.against.update(dict.fromkeys(still, "is still in that step: takes the edit back behind it"))
        self._asked_back.update(kept)
        await _all(self._take_back(rank) for rank in kept)
        return True

    async def _take_back(self, rank: Rank) -> None:
        self.against.pop(rank, None)
        if self.undo:
            self.against[rank] = "had taken the edit back: save the file again to have one text in all ranks"
            return
        try:
            answer = await rank.link.ask("undoReload", path=self.path, ticket=self.ticket, timeout=SETTLE)
        except RequestError as error:
            answer = {"reasons": [str(error)]}
        if answer.get("outcome") == "refused":  # unchanged: it had failed there as well
            why = "; ".join(answer.get("reasons") or [])
            self.against[rank] = f"still has the new code, which it could not take back ({why}): undo the edit in the file and save"


async def _all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """All at once; who cannot be asked any more has gone, which is told elsewhere."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, RequestError):
            raise result


def refused(path: str, reasons: list[str]) -> Message:
    return {**_ANSWER, "outcome": "refused", "path": path, "reasons": reasons}


def waits(path: str, reason: str) -> Message:
    return {**_ANSWER, "outcome": "applied", "path": path, "reasons": [reason], "pending": True}


_ANSWER: Message = {"step": 0, "changes": [], "instructionsPatched": 0, "instructionsTotal": 0, "ms": 0.0, "heldMs": 0.0, "pending": False}
