"""What a reloader is asked, and what it has done."""
from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Collection
from types import CodeType

from .pact import Pact
from .report import Report
from .transaction import Transaction

Reply = Callable[[Report], None]
Restore = Callable[[], None]

_MOST_UNDONE = 64  # reloads that are kept for undo; the oldest are forgotten


class Job:
    """One request. The first answer goes to whoever asked; what comes after it is news."""

    def __init__(self, path: str, text: str | None, undo: bool, reply: Reply, news: Reply, settled: bool = False,
                 pact: Pact | None = None, ticket: str | None = None, again: bool = False) -> None:
        self.again = again  # it was refused before
        self.path, self.text, self.undo, self.settled, self.pact, self.ticket = path, text, undo, settled, pact, ticket
        self._reply, self._news = reply, news
        self.started = time.perf_counter()
        self.answered = False

    def answer(self, answer: Report, final: bool = True) -> None:
        if not self.answered:
            self.answered = True
            self._reply(answer)
        elif final:
            self._news(answer)

    def answer_again(self, answer: Report) -> None:
        """It is otherwise than it was said. Of several ranks, for those who speak for them."""
        (self._news if self.pact is None else self._reply)(answer)


class Done:
    """The reloads in force that can be taken back, of all reloaders of a process: what `dvm reload` has brought in, a session undoes."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, Transaction]] = []  # by age; edits of lines only are among them
        self.replaced: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()  # code and the text it was compiled from
        self._last = 0
        self._lock = threading.Lock()

    @property
    def all(self) -> list[Transaction]:
        """Oldest first."""
        with self._lock:
            return [done for _, done in self._entries]

    def add(self, done: Transaction) -> None:
        with self._lock:
            self._last += 1
            self._entries = [*self._entries[1 - _MOST_UNDONE:], (self._last, done)]

    def remove(self, gone: Collection[Transaction]) -> Restore:
        """Takes these out; what it gives puts them back where they were among those that are there by then."""
        with self._lock:
            removed = [entry for entry in self._entries if entry[1] in gone]
            self._entries = [entry for entry in self._entries if entry[1] not in gone]

        def restore() -> None:
            with self._lock:
                self._entries = sorted([*self._entries, *removed], key=lambda entry: entry[0])

        return restore
