"""One reload as a transaction: prepared on its own thread, swapped at a call boundary, tried by the next call, kept or taken back."""
from __future__ import annotations

import contextlib
import linecache
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from . import blame, fingerprint, plan, report
from .live import Live
from .pact import Disagreed, Pact
from .report import Report
from .sources import SourceBook


class Boundary(Protocol):
    """The front ends' side of a reload (`frontends.reloadable`)."""

    def at_next_call(self, apply: Callable[[int], None], number: int = 0, of: str = "") -> Callable[[], None]:
        """Runs `apply(step)` once on the training thread, before the next outermost captured call from that number on records anything. of:
        of the calls of that captured function. Gives what keeps it from that."""

    def held(self) -> contextlib.AbstractContextManager[Any]:
        """While it is entered, no captured call begins."""

    def calls(self) -> dict[str, int]:
        """Outermost captured calls so far, by captured function."""

    def call_number(self, step: int) -> int:
        """Which call of its captured function a step is."""

    def agrees_when_recorded(self) -> bool:
        """Inside `at_next_call`: whether what is recorded of the call about to begin can be agreed to before it is executed."""

    def trial(self, undo: Callable[[BaseException], None], path: str, agree: Callable[[], None] = lambda: None,
              late: Callable[[BaseException], Callable[[bool], None] | None] | None = None) -> None:
        """The next captured call (from inside `at_next_call`: the one about to begin) that can show code of the file decides: if it or
        `agree`, called once it is recorded, raises, or its outputs change shape, `undo(error)` is called and the call is made again.
        late(error): the same of the first call of each other captured function. Gives None if it has no part in that, else it is undone,
        and wants to be told whether that helped."""

    def on_success(self, callback: Callable[[int], None], path: str) -> None:
        """Calls `callback(step)` once, after that call has passed."""


class Host:
    """What a transaction needs to know of the process; the agent fills it in."""

    def __init__(self, boundary: Boundary, programs: Callable[[], Any] = list, step: Callable[[], int] = lambda: 0,
                 stopped: Callable[[], bool] = lambda: False, capturing: Callable[[], bool] = lambda: False,
                 swapped: Callable[[str], None] = lambda path: None, settle: Callable[[str], None] = lambda path: None) -> None:
        self.boundary = boundary
        self.programs = programs  # all programs (`_core.programs`)
        self.step = step  # number of the last outermost captured call
        self.stopped = stopped  # whether the user looks at a stop
        self.capturing = capturing  # whether a captured call is running
        self.in_use: dict[str, set[int]] = {}  # programs that the last trial launched, by name
        self.settle = settle  # returns when nobody writes to the file any more
        self.swapped = swapped  # called with the path after code of that file was swapped or put back


def _outdated(path: str) -> None:
    """Models that PyTorch compiled from code of this file are compiled again at their next call."""
    front = sys.modules.get("dvm_core.frontends.torch_reload")
    if front is not None:
        front.outdated(path)


QUEUED, TRIAL, IN_FORCE, FAILED, WITHDRAWN = "queued", "trial", "in force", "failed", "withdrawn"


class Transaction:
    """Applies one plan. Its callbacks run on the training thread, the rest on the reload thread."""

    def __init__(self, host: Host, book: SourceBook, path: str, texts: tuple[str, str], prepared: plan.Plan, started: float,
                 needs_trial: bool, pact: Pact | None = None) -> None:
        """pact: with the other ranks, whose word counts as much as the trial's."""
        self.pact = pact
        self.host, self.book, self.path, self.texts, self.plan = host, book, path, texts, prepared
        self.started, self.needs_trial = started, needs_trial
        self.state = QUEUED
        self.step = 0
        self.ms = self.held_ms = 0.0
        self.error: BaseException | None = None
        self._faults: list[str] = []  # met while it was taken back
        self._on_failed: Callable[[], None] = lambda: None
        self._cancel: Callable[[], None] = lambda: None
        self.late: Callable[[], None] = lambda: None  # called on the training thread if it fails after its trial
        self.out = False  # of force while a call is made without it
        self.later: Callable[[], list[Transaction] | None] = lambda: []  # of the same file, oldest first; None if others hang on it
        self.changed = threading.Condition()
        self._before = fingerprint.snapshot(host.programs()) if needs_trial else {}
        self._at_swap: dict[int, int] = {}
        self._count: tuple[int, int] | None = None
        self.programs: list[fingerprint.Change] = []  # whose instructions differ; of the last transaction alone

    def queue(self) -> None:
        number, of = (self.pact.number, self.pact.of) if self.pact is not None else (0, "")
        self._cancel = self.host.boundary.at_next_call(self._begin, number, of)

    def passed(self) -> bool:
        """Whether the call has begun that the ranks were told."""
        assert self.pact is not None
        made = self.host.boundary.calls().get(self.pact.of, 0) if self.pact.of else self.host.step()
        return made >= self.pact.number

    def withdraw(self) -> bool:
        """Takes the transaction back before it began. False if it has begun."""
        withdrawn = self._claim(WITHDRAWN)
        if withdrawn:
            self._cancel()
        return withdrawn

    def begin_here(self) -> None:
        """Swaps without a captured call: none is running, and none came."""
        with self.host.boundary.held():
            if self._claim(TRIAL):
                self._swap(self.host.step() + 1)
                self._cancel()  # last: while something is queued, a call that begins waits

    def _claim(self, state: str) -> bool:
        with self.changed:
            if self.state != QUEUED:
                return False
            self.state = state
            return True

    def _begin(self, step: int) -> None:
        if self._claim(TRIAL):
            try:
                self._ask_the_others(step)
            except BaseException as error:
                self.error = error
                self._become(FAILED)
                if not isinstance(error, Disagreed):  # such as Ctrl-C while it waits
                    raise
                return
            self._swap(step)

    def _ask_the_others(self, step: int) -> None:
        """Before the swap, where what is recorded cannot be agreed to before it is executed; else then."""
        if self.pact is None:
            return
        self.pact.begun = self.host.boundary.call_number(step) if self.pact.of else step
        if not self.host.boundary.agrees_when_recorded():
            self.pact.agree()

    def _swap(self, step: int) -> None:
        began = time.perf_counter()
        try:
            if self.plan.patch and self.book.get(self.path) not in (None, self.texts[0]):
                raise RuntimeError("the file was reloaded from elsewhere meanwhile: save it again")
            self.plan.patch.apply()
        except BaseException as error:  # an object that takes no new code or value, or a signal's; the patch has put everything back
            self.error = error
            self._become(FAILED)
            if not isinstance(error, Exception):
                raise
            return
        self.step = step
        try:
            _outdated(self.path)
            self.book.put(self.path, self.texts[1])
            self._at_swap = fingerprint.launches(self.host.programs()) if self.needs_trial else {}
            if self.needs_trial:
                agree = self.pact.agree if self.pact is not None else lambda: None
                late = self._take_back_late if self.plan.edits else None  # an undo brings back what ran before
                self.host.boundary.trial(self._take_back, self.path, agree, late)
                self.host.boundary.on_success(self._keep, self.path)
        except BaseException as error:  # after the swap: without its trial the new code must not stay
            self._take_back(error)
            if not isinstance(error, Exception):  # such as Ctrl-C
                raise
            return
        now = time.perf_counter()
        self.held_ms = (now - began) * 1e3
        self.ms = (now - self.started) * 1e3
        if not self.needs_trial:
            self._become(IN_FORCE)

    def _take_back(self, error: BaseException) -> None:
        self.error = error
        with self.changed:  # not while closures are swept into it
            for part in (self.plan.patch.revert, lambda: _outdated(self.path), lambda: self.book.put(self.path, self.texts[0])):
                try:
                    part()
                except Exception as fault:  # of ours: the rest is taken back all the same, and the reload answered
                    self._faults.append(f"; taking it back met {report.failure(fault, __file__)}")
            self.state = FAILED
        self._become(FAILED)

    def _take_back_late(self, error: BaseException) -> Callable[[bool], None] | None:
        """Another captured function has failed in its first call since the swap. None where nothing that was exchanged had a part in it, or
        where what was exchanged since hangs on it; else it is out of force, with the later edits of the file, until it is told whether
        that helped."""
        with self.changed:
            later = self.later() if self.state == IN_FORCE else None
            if later is None or not blame.had_a_part(error, self.plan, lambda path: self.book.get(path) is not None):
                return None
            gone = [*reversed(later), self]
            for transaction in gone:
                transaction.out = True
                transaction.plan.patch.revert()
            _outdated(self.path)

        def settled(helped: bool) -> None:
            if helped:
                for transaction in gone:
                    transaction.step = self.host.step()
                    transaction._take_back(error)
                    if transaction.needs_trial:
                        transaction.late()
                return
            with self.changed:
                for transaction in reversed(gone):
                    transaction.plan.patch.apply()
                    transaction.out = False
                _outdated(self.path)

        return settled

    def settle(self, kept: Callable[[], None], failed: Callable[[], None]) -> None:
        """Calls `kept` unless the trial has failed already; should it fail later, `failed` is called then, on the training thread."""
        with self.changed:
            if self.state != FAILED:
                kept()
                self._on_failed = failed

    def _keep(self, step: int) -> None:
        self._become(IN_FORCE)

    def _become(self, state: str) -> None:
        with self.changed:
            self.state = state
            if state == FAILED:
                self._on_failed()
            self.changed.notify_all()
        if state == FAILED and self.pact is not None:
            assert self.error is not None
            self.pact.vote(False, self._told())

    def _told(self) -> str:
        """What went wrong, in a sentence."""
        assert self.error is not None
        return str(self.error) if isinstance(self.error, Disagreed) else report.failure(self.error, self.path)

    def wait(self, *states: str, timeout: float) -> bool:
        """Whether the transaction left all of these states within the time."""
        with self.changed:
            return self.changed.wait_for(lambda: self.state not in states, timeout)

    def finish(self) -> None:
        """After the swap, on the reload thread: what need not be done on the training thread's time."""
        if self.state in (TRIAL, IN_FORCE):
            if self.plan.inner:
                live = Live(self.path)
                live.search(self.plan.searched)
                with self.changed:
                    in_force = self.state in (TRIAL, IN_FORCE) and not self.out
                    swept = self.plan.patch.sweep(live.functions, self.plan.inner) if in_force else []
                for cache in live.caches:
                    if getattr(cache, "__wrapped__", None) in swept:
                        cache.cache_clear()
        linecache.checkcache(self.path)
        self.host.swapped(self.path)

    def _counted(self) -> tuple[int, int]:
        if self._count is None:
            *count, self.programs = fingerprint.patched(self._before, self._at_swap, self.host.programs(), self.host.in_use)
            self._count = count[0], count[1]
            for program in fingerprint.replaced(self._at_swap, self.host.programs()):
                program.forget_segments()  # one that comes back, in another branch or by undo, is compiled again: microseconds
            self._before = {}  # the undo record lives on; hashes of hundreds of programs need not
        return self._count

    def report(self) -> Report:
        """The answer as things stand."""
        if self.state == FAILED:
            # A call that was interrupted is not made again, nor is a loop that was compiled whole and has come to its later rounds.
            repeated = self.step and isinstance(self.error, Exception) and not getattr(self.error, "dvm_ended", False)
            again = f"; step {self.step} was made with the old code" if repeated else ""
            told = f"{self._told()}: taken back{again}{''.join(self._faults)}"
            return Report(report.REFUSED, self.path, self.step, [told])
        answer = Report(report.APPLIED, self.path, self.step, list(self.plan.notes), report.changes_of(self.plan.edits))
        answer.ms, answer.held_ms = self.ms, self.held_ms
        if not self.needs_trial:
            answer.outcome = report.UNCHANGED
        elif self.state == IN_FORCE:
            answer.patched, answer.total = self._counted()
        elif self.state == QUEUED:
            answer.pending, answer.step = True, self.host.step() + 1
        return answer
