"""Whoever is killed, whenever: nothing is left running and nobody waits for ever."""
import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
from dvm_adapter import lifecycle
from harness import PROGRAMS, RequestFailed, environment, family, line_of

FAKE = PROGRAMS / "fake_debuggee.py"

REAL = PROGRAMS / "real.py"
STOPS = {FAKE: line_of(FAKE, "h = x * 2"), REAL: line_of(REAL, "s = h + scale")}

BOUND = 20  # seconds: on hanging, not on speed; a machine with other work may need several

# A client in a process of its own, so that it can be killed: launches the program and reads until the end.
CLIENT = """
import sys
from dvm_adapter.client import Client
client = Client([sys.executable, "-m", "dvm_adapter"])
client.launch(lambda c: c.set_breakpoints(sys.argv[1], [{"line": int(sys.argv[2]), "mode": "both"}] if int(sys.argv[2]) else []),
              program=sys.argv[1], args=["100000", "0.005"])
print("up", flush=True)
try:
    client.event("terminated", timeout=60)
except TimeoutError:
    pass
client.close()
"""


def role(process):
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return "?"
    for name, part in (("adapter", "-m dvm_adapter"), ("debugpy", "-m debugpy.adapter"), ("client", "Client(["),
                       ("debuggee", " --connect "),
                       ("launcher", "debugpy/launcher")):
        if part in line:
            return name
    return "?"


def gone_within(mark, seconds):
    deadline = time.monotonic() + seconds
    while left := family(mark):
        if time.monotonic() > deadline:
            return [(process.pid, role(process)) for process in left]
        time.sleep(0.05)
    return []


@pytest.mark.parametrize("trial", range(20))
def test_no_process_survives(trial):
    rng = random.Random(trial)
    victim = ("client", "adapter", "debuggee", "debugpy")[trial % 4]
    mark = f"{os.getpid()}-{trial}"
    program = REAL if trial % 5 >= 3 else FAKE
    stop_line = STOPS[program] if trial % 8 >= 4 else 0  # half of the trials: at a stop, if they get that far
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(program), str(stop_line)], env={**environment(), "DVM_KILL_TEST": mark},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait = rng.uniform(0.2, 1.6)
        time.sleep(wait)
        deadline = time.monotonic() + 20
        while True:
            targets = [process for process in family(mark) if role(process) == victim]
            if targets or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        assert targets, f"no {victim} came up: {[role(p) for p in family(mark)]}"
        os.kill(targets[0].pid, signal.SIGKILL)
        assert gone_within(mark, BOUND) == []
    finally:
        for process in family(mark):
            process.kill()
        client.wait()


@pytest.mark.parametrize("children, died", [([[], [7], [7], []], True), ([[]], False)])
def test_a_launcher_whose_program_has_gone_is_not_waited_for_as_one_that_has_none_yet(children, died, monkeypatch):
    monkeypatch.setattr(lifecycle, "IDLE_LAUNCHER", 1e9)
    monkeypatch.setattr(lifecycle, "launcher_of", lambda debugpy: 5)
    monkeypatch.setattr(lifecycle, "asleep_since", lambda launcher: "0 0")
    monkeypatch.setattr(lifecycle, "children", lambda launcher: children.pop(0) if len(children) > 1 else children[0])
    session = SimpleNamespace(started=False)

    async def look():
        asyncio.get_running_loop().call_later(1 if not died else 20, setattr, session, "started", True)
        return await lifecycle._died_at_start(session, 4)

    assert asyncio.run(look()) is died


@pytest.mark.parametrize("launcher, asleep, starts, died", [
    (5, {5: "0 0", 4: "1 1"}, True, True), (5, {5: "0 0", 4: ""}, True, False),  # debugpy's adapter works, which the launcher waits for
    (None, {4: "1 1"}, True, True), (None, {4: "1 1"}, False, False),  # come and gone between two looks, or started by the client
    (None, {4: ""}, True, False)])
def test_a_launcher_with_nothing_to_do_is_waited_for_as_long_as_what_it_waits_for_works(launcher, asleep, starts, died, monkeypatch):
    monkeypatch.setattr(lifecycle, "IDLE_LAUNCHER", 0.05)
    monkeypatch.setattr(lifecycle, "launcher_of", lambda debugpy: launcher)
    monkeypatch.setattr(lifecycle, "asleep_since", asleep.get)
    monkeypatch.setattr(lifecycle, "children", lambda process: [])
    session = SimpleNamespace(started=False)

    async def look():
        asyncio.get_running_loop().call_later(20 if died else 0.5, setattr, session, "started", True)
        return await lifecycle._died_at_start(session, 4, starts)

    assert asyncio.run(look()) is died


def test_a_launch_ends_when_program_and_launcher_die_before_the_debugger_reaches_them(adapter, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nsleep 0.7\nkill -9 $PPID\nkill -9 $$\n")
    python.chmod(0o755)
    session = adapter()
    with pytest.raises(RequestFailed, match="ended"):
        session.launch(program=str(FAKE), python=[str(python)])
