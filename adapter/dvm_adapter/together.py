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
from .edit import Rank
from .job import Jobs
from .log import Log

ALONE = 20.0  # seconds until the first rank has come
_GATHER = 0.1  # seconds for all ranks' answers to one save


class Said:
    """What came of saves, until it is told."""

    def __init__(self) -> None:
        self._bodies: dict[str, list[tuple[Rank, Message]]] = {}  # by the text without its time, which differs

    def add(self, rank: Rank, body: Message) -> None:
        if not self._bodies:
            asyncio.get_running_loop().call_later(_GATHER, self.flush)
        self._bodies.setdefault(outcome({**body, "ms": 0.0}), []).append((rank, body))

    def flush(self) -> None:
        for told in self._bodies.values():
            by_number = {rank.number: rank for rank, _ in told}
            first = next((by_number[number] for number in sorted(by_number) if not by_number[number].link.gone), None)
            last = max((body for _, body in told), key=lambda body: float(body.get("ms") or 0.0))
            if first is not None:
                first.link.tell("said", text=f"{_ranks(sorted(by_number))}: {outcome(last)}")
        self._bodies.clear()


def _ranks(numbers: list[int]) -> str:
    """`rank 3`, `ranks 0-3`, `ranks 0, 2, 5-7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' * (len(numbers) > 1)} {named}"


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
