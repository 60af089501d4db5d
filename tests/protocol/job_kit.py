"""The ranks of a job, played: what an adapter that speaks for them asks, and what each answers, is told and decides."""
import asyncio
import inspect
import os
import subprocess
import sys

import pytest
from dvm_adapter import link
from dvm_adapter.agent_server import AgentServer
from dvm_adapter.log import Log
from harness import ROOT  # noqa: F401 - puts the adapter on the path

PATH = __file__  # any file that can be read
REPORT = {"outcome": "applied", "path": PATH, "step": 0, "reasons": [], "changes": [], "pending": True}


class Rank:
    """The adapter of a rank, played: by command what it answers, a function of its arguments or a value."""

    def __init__(self, number, pid, **answers):
        self.number, self.pid, self.asked, self.told = number, pid, [], []
        self.step, self.vote = 10, True
        self.answers = {"prepare": self._prepare, "pace": self._pace, "arm": self._arm, "decide": self._decide,
                        "undoReload": {"outcome": "applied"}, **answers}

    async def join(self, server, size=2):
        self.server = server
        self.link = await link.connect(server.address, {"type": "rank", "token": server.token, "pid": self.pid, "rank": self.number,
                                                        "size": size, "job": 1}, Log())
        self.link.serve = self._serve
        self.link.on_event = lambda event: self.told.append(event["body"])
        self.task = asyncio.ensure_future(self.link.run())
        return self

    async def _serve(self, command, arguments):
        self.asked.append((command, arguments))
        answer = self.answers[command]
        found = answer(arguments) if callable(answer) else answer
        return (await found if inspect.isawaitable(found) else found) or {}

    def _prepare(self, arguments):
        return {**REPORT, "ready": {"meaningful": True}}

    def _pace(self, arguments):
        return {"step": self.step, "rate": 0.0, "calls": {}}

    def _arm(self, arguments):
        if self.vote is not None:
            ok = self.vote in (True, "later")
            self.link.tell("vote", ticket=arguments["ticket"], ok=ok, reason="" if ok else self.vote,
                           step=arguments["number"] + (self.vote == "later"))
        return {"armed": True}

    def _decide(self, arguments):
        outcome = "applied" if arguments["keep"] else "refused"
        self.link.tell("settled", ticket=arguments["ticket"], **{**REPORT, "outcome": outcome, "step": 11, "pending": False})

    def decisions(self):
        return [arguments["keep"] for command, arguments in self.asked if command == "decide"]


def taken_back(rank):
    """What a rank is asked last that takes its last edit back."""
    ticket = next(arguments["ticket"] for command, arguments in reversed(rank.asked) if command == "prepare")
    return "undoReload", {"path": PATH, "ticket": ticket}


def played(play, *ranks, size=2):
    """Runs `play(server, job)` with these ranks in the job."""
    async def run():
        server = AgentServer(Log())
        await server.start()
        for rank in ranks:
            await rank.join(server, size)
        while not server.jobs._jobs or len(server.jobs._jobs[1].ranks) < len(ranks):
            await asyncio.sleep(0.001)
        try:
            return await asyncio.wait_for(play(server.jobs._jobs[1]), 20)
        finally:
            for rank in ranks:
                rank.link.close()
            await server.close()

    return asyncio.run(run())


@pytest.fixture
def other():
    """A process to be a rank, and to end."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def pair(other, **answers):
    return Rank(0, os.getpid()), Rank(1, other.pid, **answers)


def told(*ranks):
    return [[(body["outcome"], body["pending"], body["reasons"]) for body in rank.told] for rank in ranks]


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def takes(path, *ranks):
    """What is played where these ranks take the file once, and are told."""
    async def play(job):
        await job.take(path)
        await until(lambda: all(rank.told for rank in ranks))

    return play
