"""Large work of requests, beside the agent's thread, which goes on to answer others."""
from __future__ import annotations

import collections
import threading
from collections.abc import Callable

from .commands import Answer, CommandError, Reply
from .connection import hidden_thread

LARGE_BYTES = 16 << 20  # looking at all of a tensor up to this size takes a few milliseconds: not worth a thread

Work = Callable[[], Answer]


class Aside:
    """Lanes of work, each one after the other in the order it was asked for: of several requests of a kind the answers come in order, and
    none takes the cores from the program twice. A lane has a thread while there is work in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[str, collections.deque[tuple[Work, Reply]]] = {}

    def do(self, lane: str, size: int, reply: Reply, work: Work) -> None:
        """`reply` gets what `work` makes, or in what words it was refused. Of a size up to LARGE_BYTES that is done here and now."""
        if size <= LARGE_BYTES:
            return _answer(work, reply)
        with self._lock:
            waiting = self._lanes.get(lane)
            if waiting is not None:
                return waiting.append((work, reply))
            self._lanes[lane] = collections.deque([(work, reply)])
        hidden_thread(lambda: self._run(lane), f"dvm-{lane}").start()

    def _run(self, lane: str) -> None:
        while True:
            with self._lock:
                waiting = self._lanes[lane]
                if not waiting:
                    del self._lanes[lane]
                    return
                work, reply = waiting.popleft()
            _answer(work, reply)


def _answer(work: Work, reply: Reply) -> None:
    try:
        answer = work()
    except Exception as error:  # whoever asked gets an answer, whatever went wrong
        answer = {"ok": False, "error": str(error) if isinstance(error, CommandError) else f"{type(error).__name__}: {error}"}
    reply(answer)
