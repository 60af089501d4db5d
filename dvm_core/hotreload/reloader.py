"""The reload thread: takes saves one after another, each answered exactly once, and keeps what `undo` needs."""
from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any

from dvm_wire.retries import Retries
from dvm_wire.saves import read

from . import depends, ending, report, threads, turns
from . import plan as planning
from .apply import Patch
from .classify import classify
from .edits import APPLY
from .jobs import Done, Job, Reply
from .live import Live
from .outdated import Outdated
from .pact import Pact
from .parse import Source, parse
from .parse_beside import parse_beside
from .report import Report
from .sources import SourceBook, tidy
from .transaction import FAILED, IN_FORCE, QUEUED, TRIAL, WITHDRAWN, Host, Transaction

BOUNDARY_WAIT = 1.0  # seconds for a captured call to come, before the swap is made without one
TRIAL_WAIT = 5.0  # seconds for the first call with new code to end, before the answer goes out without it
STEP_WAIT = 0.25  # seconds for the rest of that step
_TOO_LATE = "the program ended before a captured call came; its next start has the edit"
_LOOK = 0.02  # seconds between looks at whether the user has stopped the program meanwhile


class Reloader:
    """`reload` and `undo` come from any thread; `news` is called with reports that come after an early answer."""

    def __init__(self, book: SourceBook, host: Host, news: Reply = lambda report: None,
                 thread: threads.MakeThread | None = None, done: Done | None = None) -> None:
        self.book, self.host, self.news = book, host, news
        self._make_thread = thread or threads.plain
        self._thread: threading.Thread | None = None
        self._jobs: list[Job] = []
        self._arrived = threading.Condition()
        self._kept = done or Done()
        self.outdated = Outdated(book, self._kept.replaced)
        self._sources: dict[str, Source] = {}  # as parsed last
        self._verified: dict[str, list[Any]] = {}  # files whose known text was compared with the running code: how it was imported then
        self._retries = Retries()
        self._since: dict[str, int] = {}  # by real path, the step before which its text came into force
        self.last: Report | None = None
        self._listed: Transaction | None = None  # the last that changed what runs: it has the listings

    def reload(self, path: str, text: str | None, reply: Reply, settled: bool = False, pact: Pact | None = None) -> None:
        """Brings the file's text (None: what is on disk) into force, or says why not. settled: nobody writes to the file any more.
        pact: with other ranks, which must be able to do so as well."""
        self._add(Job(path, text, False, reply, self.news, settled, pact))

    def undo(self, reply: Reply, path: str | None = None, pact: Pact | None = None, ticket: str | None = None) -> None:
        """Takes back the last reload that was applied, with a path the last one of that file, with a ticket that
        of the pact which has it."""
        self._add(Job(path or "", None, True, reply, self.news, pact=pact, ticket=ticket))

    @property
    def _done(self) -> list[Transaction]:
        return self._kept.all

    def _add(self, job: Job) -> None:
        turns.begin()  # until it is answered
        ending.owe()
        with self._arrived:
            self._jobs.append(job)
            self._arrived.notify()
            if self._thread is None:
                self._thread = self._make_thread(self._run)
                threads.start(self._thread)

    def _run(self) -> None:
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: bool(self._jobs))
                job = self._jobs.pop(0)
            try:
                answer = self._undo(job) if job.undo else self._reload(job)
            except RecursionError:
                answer = Report(report.REFUSED, job.path, 0, ["an expression of the file is nested too deeply to be compared"])
            except BaseException as error:  # also a module that ends the program when it is imported: no save may stay unanswered
                answer = Report(report.REFUSED, job.path, 0, [f"the reload itself failed: {report.failure(error, __file__)}"])
            finally:
                turns.end()
            self.last = answer
            with contextlib.suppress(Exception):  # nobody hears it; those behind it are answered all the same
                job.answer(answer)
            ending.paid()
            with contextlib.suppress(Exception):
                self._try_again(job, answer)

    def _try_again(self, job: Job, answer: Report) -> None:
        """What was refused, and may have waited for that answer."""
        if job.text is not None or job.undo or job.pact is not None:
            return
        for path in self._retries.answered(job.path, answer.outcome, job.started, job.again):
            told: list[Report] = []

            def tell(answer: Report, told: list[Report] = told) -> None:
                if told or answer.outcome == report.APPLIED:  # one more refusal has been said already
                    told.append(answer)
                    self.news(answer)

            self._add(Job(path, None, False, tell, tell, settled=True, again=True))

    # ---- one reload ------------------------------------------------------------------------------------------------------------------
    def _reload(self, job: Job) -> Report:
        if job.text is None and not job.settled:
            self.host.settle(job.path)
        with turns.no_collection():
            prepared = self._prepare(job)
        if isinstance(prepared, Report):
            return prepared
        old, new, plan = prepared
        meaningful = any(edit.verdict == APPLY for edit in plan.edits)
        transaction = Transaction(self.host, self.book, job.path, (old.text, new.text), plan, job.started, meaningful,
                                  job.pact if meaningful else None)
        if job.pact is not None and not job.pact.ready(meaningful, transaction.report().message()):
            return Report(report.REFUSED, job.path, reasons=[job.pact.reason])
        if not plan.patch:
            self.book.put(job.path, new.text)
            if not meaningful:
                return Report(report.UNCHANGED, job.path, reasons=plan.notes)
            plan.notes.append("nothing of it exists in the running program yet; what is made from now on has it")
        answer = self._carry_out(job, transaction)
        if self.book.get(job.path) is new.text:
            self._sources[job.path] = new
        return answer

    def _prepare(self, job: Job) -> tuple[Source, Source, planning.Plan] | Report:
        def refused(*reasons: str) -> Report:
            return Report(report.REFUSED, job.path, reasons=list(reasons))

        path = job.path
        live = Live(path)
        if not live.modules and ending.has_begun():  # the script's is gone by then
            return refused(_TOO_LATE)
        if not live.modules:  # before it is read: what a foreign file holds is nobody's business
            return Report(report.UNCHANGED, path, reasons=[report.FOREIGN])
        try:
            text = read(path) if job.text is None else tidy(job.text)
            near, compiled_as = self._sources.get(path), _compiled_as(live, path)
            new = parse_beside(near, compiled_as, text) if near else parse(compiled_as, text)
        except SyntaxError as error:
            return refused(report.syntax_error(error, path))
        except (OSError, ValueError, LookupError) as error:  # LookupError: a codec that makes no text
            return refused(f"{path} cannot be read: {error}")
        known = self.book.get(path)
        if known is None:
            return refused("the text the running program was made from is not known; the next start has it")
        if known == text and path in self._verified:
            return self._in_force_since(path)
        if not text.strip() and known.strip():
            return refused("the file is empty; the running code stays")
        old = self._in_force(path, new.path, known)
        imported = [vars(module).get("__spec__") for module in live.modules]  # `importlib.reload` gives a new one
        if not _same_objects(self._verified.get(path), imported):
            foreign = planning.unknown(old, live, self.book.leftover.codes(path))
            if foreign:
                return refused(f"`{foreign[0].__qualname__}` does not run what the file said when the debugger first read it "
                               "(edited before that, or changed by an import hook): needs restart")
            self._verified[path] = imported
        if known == text:
            return self._in_force_since(path)
        old = self.book.leftover.returned(path, old, new)
        edits = classify(old, new, is_main=any(module.__name__ == "__main__" for module in live.modules))
        self.book.leftover.note(path, old, edits)
        plan = planning.make(old, new, edits, live, self.book, self._make_thread)
        return refused(*plan.refusals) if plan.refusals else (old, new, plan)

    def _in_force_since(self, path: str) -> Report:
        step = self._since.get(os.path.realpath(path))
        return Report(report.UNCHANGED, path, reasons=[f"its text is in force since step {step}"] if step else [])

    def _in_force(self, path: str, compiled_as: str, text: str) -> Source:
        """The file as it runs now, parsed once for as long as it stays so."""
        source = self._sources.get(path)
        if source is None or source.text != text or source.path != compiled_as:
            source = self._sources[path] = parse(compiled_as, text)
        return source

    def _carry_out(self, job: Job, transaction: Transaction) -> Report:
        if job.pact is not None and transaction.needs_trial:
            return self._carry_out_with_others(job, job.pact, transaction)
        transaction.queue()
        deadline = time.perf_counter() + BOUNDARY_WAIT
        while not transaction.wait(QUEUED, timeout=_LOOK):
            if ending.has_begun() and transaction.withdraw():
                return Report(report.REFUSED, job.path, reasons=[_TOO_LATE])
            if self.host.capturing():  # the boundary comes when the running call ends, however long it takes
                self._answer_if_stopped(job, transaction.report())
                deadline = time.perf_counter() + BOUNDARY_WAIT
            elif time.perf_counter() > deadline or self.host.stopped():
                transaction.begin_here()
                if transaction.state == TRIAL:
                    why = "you are stopped outside of one" if self.host.stopped() else f"none came within {BOUNDARY_WAIT:g} s"
                    transaction.plan.notes.append(f"tried by the next captured call: {why}")
                    return self._settle(job, transaction)
        deadline = time.perf_counter() + TRIAL_WAIT
        while transaction.state == TRIAL and not transaction.wait(TRIAL, timeout=_LOOK) and not ending.has_begun():
            self._answer_if_stopped(job, transaction.report())
            if time.perf_counter() > deadline:
                job.answer(transaction.report(), final=False)
                if not self.host.capturing():  # who shows the new code is called no more, or long after: other saves do not wait for it
                    break
        return self._settle(job, transaction)

    def _carry_out_with_others(self, job: Job, pact: Pact, transaction: Transaction) -> Report:
        """At the step that the ranks have been told, or not at all."""
        transaction.queue()
        passed = transaction.passed() and transaction.withdraw()
        pact.armed(not passed)
        while not passed and not transaction.wait(QUEUED, timeout=_LOOK):
            if pact.keep is not None:
                transaction.withdraw()
        if transaction.state == WITHDRAWN:
            return Report(report.REFUSED, transaction.path, reasons=[pact.reason or "the call that was chosen had begun"])
        while not transaction.wait(TRIAL, timeout=TRIAL_WAIT) and self.host.capturing():
            pass
        return self._settle(job, transaction)

    def _settle(self, job: Job, transaction: Transaction) -> Report:
        transaction.settle(lambda: self._kept.add(transaction), lambda: self._forget(transaction))
        if transaction.needs_trial and transaction.state != FAILED:
            if self._listed is not None:
                self._listed.programs = []
            self._listed = transaction
            self._since[os.path.realpath(transaction.path)] = transaction.step
        try:
            transaction.finish()
            self.outdated.swapped(transaction.plan.patch, transaction.texts[0])
        except Exception as error:  # the code is in force all the same, and the answer must not deny it
            transaction.plan.notes.append(f"closures made during the reload may have old code: {report.failure(error, __file__)}")
        if transaction.state == IN_FORCE and transaction.needs_trial:
            self._let_step_end(transaction)
        if transaction.state == TRIAL and ending.has_begun():
            transaction.plan.notes.append("the program ended before a call had tried it")
        elif transaction.state == TRIAL:  # no call came yet: what the first one shows is news
            self._make_thread(lambda: self._watch_trial(transaction)).start()
        with transaction.changed:  # what comes before is in this answer, what comes behind is told later
            transaction.later = lambda: self._later(transaction)
            transaction.late = lambda: self._make_thread(lambda: self._tell_late(job, transaction)).start()
            return transaction.report()

    def _forget(self, gone: Transaction) -> None:
        self._kept.remove([gone])
        self._since.pop(os.path.realpath(gone.path), None)

    def _let_step_end(self, transaction: Transaction) -> None:
        """The trial is over when the captured call returns; the backward programs of that step are launched after it, and count too."""
        end = time.perf_counter() + STEP_WAIT
        while self.host.step() <= transaction.step and time.perf_counter() < end and not (self.host.stopped() or ending.has_begun()):
            time.sleep(_LOOK / 10)

    def _watch_trial(self, transaction: Transaction) -> None:
        while not transaction.wait(TRIAL, timeout=3600):
            pass
        if transaction.state == FAILED:
            transaction.finish()
        if transaction.state == FAILED or transaction in self._done:  # else it was undone meanwhile
            self.news(transaction.report())

    def _later(self, transaction: Transaction) -> list[Transaction] | None:
        """The edits of the same file since, oldest first. None if that one is not in force, or an edit of another file hangs on it."""
        kept = self._done
        if transaction not in kept:
            return None
        since = kept[kept.index(transaction) + 1:]
        later = [done for done in since if done.path == transaction.path]
        others = [done for done in since if done.path != transaction.path and done.needs_trial]
        return None if depends.reason([transaction, *later], others) else later

    def _tell_late(self, job: Job, transaction: Transaction) -> None:
        """Beside the program, which goes on: another captured function has failed with the new code."""
        transaction.finish()
        job.answer_again(transaction.report())

    def _answer_if_stopped(self, job: Job, answer: Report) -> None:
        if not self.host.stopped():
            return
        waiting = "waits for the call you are stopped in to end; that call goes on with the old code"
        if not job.answered:
            if answer.pending:
                answer.reasons.append(waiting)
            job.answer(answer, final=False)
        with self._arrived:
            behind = [other for other in self._jobs if not other.answered and other.pact is None]  # the others await its word
        for other in behind:
            other.answer(Report(report.APPLIED, other.path, self.host.step() + 1, [waiting], pending=True), final=False)

    def listings(self) -> dict[str, Any]:
        """What the last reload, or undo, changed of the bytecode: path, step, and programs with their instructions before and now."""
        done = self._listed
        if done is None or done.state == FAILED:
            return {"path": "", "step": 0, "programs": []}
        return {"path": done.path, "step": done.step, "programs": [change.message() for change in done.programs]}

    # ---- undo ------------------------------------------------------------------------------------------------------------------------
    def _undo(self, job: Job) -> Report:
        kept = self._done
        wanted = os.path.realpath(job.path) if job.path else ""
        last = next((done for done in reversed(kept) if done.needs_trial and wanted in ("", os.path.realpath(done.path))
                     and job.ticket in (None, done.pact and done.pact.ticket)), None)
        if last is None:
            of = f" of {os.path.basename(job.path)}" if job.path else ""
            return Report(report.UNCHANGED, job.path, reasons=[f"no edit{of} is in force: nothing to undo"])
        # Edits of lines only that came to this file after it go with it: their line tables belong to the newer text.
        undone = [done for done in reversed(kept[kept.index(last):]) if done.path == last.path]
        later = [done for done in kept[kept.index(last):] if done.path != last.path and done.needs_trial]
        if needed := depends.reason(undone, later):
            return Report(report.REFUSED, last.path, reasons=[needed])
        restore = self._kept.remove(undone)
        job.path = last.path
        plan = planning.Plan([], Patch([assignment for done in undone for assignment in done.plan.patch.inverse().assignments]))
        texts = undone[0].texts[1], last.texts[0]
        transaction = Transaction(self.host, self.book, last.path, texts, plan, job.started, needs_trial=True, pact=job.pact)
        if job.pact is not None and not job.pact.ready(True, transaction.report().message()):
            restore()
            return Report(report.REFUSED, job.path, reasons=[job.pact.reason])
        answer = self._carry_out(job, transaction)
        if transaction.state in (FAILED, WITHDRAWN):
            restore()
        else:
            # An undo is not undone: the file still holds the newer text, and saving it again brings that back.
            self._forget(transaction)
            answer.changes = report.reversed_changes(report.changes_of(last.plan.edits))
            answer.undone = answer.outcome == report.APPLIED
        return answer


def _same_objects(some: list[Any] | None, others: list[Any]) -> bool:
    return some is not None and len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def _compiled_as(live: Live, path: str) -> str:
    """The file name the running code has: tracebacks and breakpoints go by it."""
    for function in live.functions:
        return function.__code__.co_filename
    return next((vars(module)["__file__"] for module in live.modules), path)
