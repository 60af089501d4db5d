"""Large work of requests, beside the agent's thread, which goes on to answer others."""
from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable

from .commands import Answer, CommandError, Reply
from .connection import hidden_thread

LARGE_BYTES = 16 << 20  # looking at all of a tensor up to this size takes a few milliseconds: not worth a thread

Work = Callable[[], Answer]
_OVER: Answer = {"ok": False, "error": "the tensor is not of this stop: the program has gone on"}


class Aside:
    """Lanes of work, each one after the other in the order it was asked for: of several requests of a kind the answers come in order, and
    none takes the cores from the program twice. A lane has a thread while there is work in it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lanes: dict[str, collections.deque[tuple[Work, Reply]]] = {}
        self._working: set[int] = set()  # threads that look at memory

    def do(self, lane: str, size: int, reply: Reply, work: Work) -> None:
        """`reply` gets what `work` makes, or in what words it was refused. Of a size up to LARGE_BYTES that is done here and now."""
        if size <= LARGE_BYTES:
            return reply(_answer(work))
        with self._changed:
            waiting = self._lanes.get(lane)
            if waiting is not None:
                return waiting.append((work, reply))
            self._lanes[lane] = collections.deque([(work, reply)])
        hidden_thread(lambda: self._run(lane), f"dvm-{lane}").start()

    def settle(self) -> None:
        """Before memory may go that is looked at: what has not begun is refused, and what has is waited for."""
        with self._changed:
            dropped = [entry for waiting in self._lanes.values() for entry in waiting]
            for waiting in self._lanes.values():
                waiting.clear()
            self._changed.wait_for(lambda: not self._working - {threading.get_ident()})
        for _, reply in dropped:
            _tell(reply, _OVER)

    def _run(self, lane: str) -> None:
        ident = threading.get_ident()
        while True:
            with self._changed:
                waiting = self._lanes[lane]
                if not waiting:
                    del self._lanes[lane]
                    return
                work, reply = waiting.popleft()
                self._working.add(ident)
            try:
                answer = _answer(work)
            finally:
                with self._changed:
                    self._working.discard(ident)
                    self._changed.notify_all()
            _tell(reply, answer)


def _answer(work: Work) -> Answer:
    try:
        return work()
    except Exception as error:  # whoever asked gets an answer, whatever went wrong
        return {"ok": False, "error": str(error) if isinstance(error, CommandError) else f"{type(error).__name__}: {error}"}


def _tell(reply: Reply, answer: Answer) -> None:
    with contextlib.suppress(OSError, ValueError):  # who asked has gone, or gets no answer of this size: the lane goes on
        reply(answer)
