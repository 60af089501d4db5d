"""`python -m dvm_adapter.together`: all ranks of a job that run under `dvm run --watch` take a save before the same step, or none does.

The first rank starts it, and reads where it listens from its standard output: one line of JSON, address and token. What came of a save is
said once for the ranks it is the same for, by the first of them. It ends when the last of them has gone."""
from __future__ import annotations

import asyncio
import json
import os
import signal

from dvm_wire import outcome

from .agent_peer import Message
from .agent_server import AgentServer
from .edit import Rank, named
from .job import Jobs
from .log import Log

ALONE = 20.0  # seconds until the first rank has come
_GATHER = 0.1  # seconds for all ranks' answers to one save


class Said:
    """What came of saves, until it is told."""

    def __init__(self) -> None:
        self._bodies: dict[str, list[tuple[Rank, Message]]] = {}  # by the text without time and step, which differ

    def add(self, rank: Rank, body: Message) -> None:
        if not self._bodies:
            asyncio.get_running_loop().call_later(_GATHER, self.flush)
        self._bodies.setdefault(outcome({**body, "ms": 0.0, "step": 0}), []).append((rank, body))

    def flush(self) -> None:
        for told in self._bodies.values():
            told.sort(key=lambda entry: entry[0].number)
            first = next((rank for rank, _ in told if not rank.link.gone), None)
            if first is not None:
                first.link.tell("said", text=_said({rank.number: body for rank, body in told}))
        self._bodies.clear()


def _said(told: dict[int, Message]) -> str:
    """In one line, what is the same for these ranks but for the time it took, and for the steps that each counts for itself."""
    steps: dict[int, list[int]] = {}
    for number, body in told.items():
        steps.setdefault(int(body.get("step") or 0) if body.get("outcome") == "applied" else 0, []).append(number)
    last = max(told.values(), key=lambda body: float(body.get("ms") or 0.0))
    (step, _), *others = steps.items()
    own = "".join(f" · {named(numbers)}: step {own}" for own, numbers in others)
    return f"{named(list(told))}: {outcome({**last, 'step': step})}{own}"


async def serve() -> None:
    """Serves ranks until none is left."""
    log, said = Log(None), Said()

    class Spoken(Rank):
        def told(self, body: Message) -> None:
            said.add(self, body)

    server = AgentServer(log, Jobs(log, Spoken))
    await server.start()
    print(json.dumps({"address": server.address, "token": server.token}), flush=True)
    begun, end = False, asyncio.get_running_loop().time() + ALONE
    while server.jobs.ranks or not begun and asyncio.get_running_loop().time() < end:
        begun = begun or bool(server.jobs.ranks)
        await asyncio.sleep(0.2)
    await server.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the ranks' terminal is meant for them
    if hasattr(os, "fork") and os.fork():
        os._exit(0)  # the rank that started it has no child to wait for
    asyncio.run(serve())
