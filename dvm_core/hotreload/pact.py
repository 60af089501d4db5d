"""One rank's side of an edit that all ranks of a job take before the same step, or none of them.

Who speaks for the job (the debug adapter) asks each rank to prepare, names the step, hears each rank's vote, and decides. A rank votes when
it has come to that step, or the first behind it that its calls begin with, and recorded it with the new code, before anything of it is
executed, and waits there for the decision: at most PATIENCE, after which its own is no."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 10.0  # seconds; who speaks for the job has decided long before
ARMED = 30.0  # seconds for the step to be named, once a rank is ready
SILENT = "the debugger did not say what the other ranks do"


class Disagreed(Exception):
    """Not all ranks can take the edit; the text says why."""


class Pact:
    """Of one transaction. `arm` and `decide` come from any thread, `ready` and `armed` from the reload thread, the rest from the training
    thread."""

    def __init__(self, ready: Callable[[bool, dict[str, Any]], None], vote: Callable[[bool, str, int], None],
                 ticket: str = "") -> None:
        """ready(meaningful, report): what the rank can do; vote(ok, reason, step): how it went, before which step. Both are to be told to
        who speaks for the job."""
        self._tell_ready, self._tell_vote, self.ticket = ready, vote, ticket
        self.number = 0  # of the call before which the swap is to be made,
        self.of = ""  # counted in calls of that captured function, in all if it is none
        self.begun = 0  # before which it is made here: calls may begin with a later one
        self.keep: bool | None = None  # the decision
        self.reason = ""
        self.was_ready = False
        self._voted = False
        self._answer: Callable[[bool], None] = lambda armed: None
        self._changed = threading.Condition()

    # ---- who speaks for the job
    def arm(self, number: int, answer: Callable[[bool], None], of: str = "") -> None:
        """Names the call; of: of those of that captured function. answer(armed): whether the swap is queued for it, or it has begun."""
        with self._changed:
            self.number, self.of, self._answer = number, of, answer
            self._changed.notify_all()

    def decide(self, keep: bool, reason: str = "") -> None:
        """The first decision counts."""
        with self._changed:
            if self.keep is None:
                self.keep, self.reason = keep, reason
                self._changed.notify_all()

    # ---- the reload thread
    def ready(self, meaningful: bool, report: dict[str, Any]) -> bool:
        """Says that the edit can be made here, and waits to be told when. False if it shall not be. meaningful: code is exchanged."""
        with self._changed:
            if self.keep is False:  # it took too long here
                return False
            self.was_ready = True
        self._tell_ready(meaningful, report)
        with self._changed:
            if not self._changed.wait_for(lambda: self.keep is not None or bool(self.number and meaningful), ARMED):
                self.keep, self.reason = False, SILENT
            return self.keep is not False

    def armed(self, queued: bool) -> None:
        self._answer(queued)

    # ---- the training thread
    def vote(self, ok: bool, reason: str = "") -> None:
        """Tells how the edit went here. The first vote counts."""
        with self._changed:
            if self._voted:
                return
            self._voted = True
        self._tell_vote(ok, reason, self.begun)

    def agree(self) -> None:
        """Votes yes, and returns when the others have. Raises Disagreed."""
        self.vote(True)
        end = time.monotonic() + PATIENCE
        with self._changed:
            while self.keep is None and time.monotonic() < end:
                self._changed.wait(0.5)
            if self.keep is None:
                self.keep, self.reason = False, SILENT
            if not self.keep:
                raise Disagreed(self.reason)
