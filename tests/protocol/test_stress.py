"""Many of everything, at once and one after another: answers come, losses keep their bits, nothing is left. DVM_STRESS=long: in full.

Times are told (pytest -s), not asserted."""
import os
import random
import socket
import subprocess
import sys
import time
import uuid

import psutil
import pytest
from harness import PROGRAMS, Session, environment, gone, line_of

pytest.importorskip("dvm_core._core")
LONG = os.environ.get("DVM_STRESS") == "long"
REAL = PROGRAMS / "real.py"


def printed(session):
    return [line.split()[3] for line in session.printed().splitlines() if line.startswith("step")]


class Timed:
    """A session's requests, with the longest."""

    def __init__(self, session):
        self.session, self.longest = session, (0.0, "")

    def __call__(self, command, **arguments):
        begun = time.monotonic()
        body = self.session.request(command, **arguments)
        self.longest = max(self.longest, (time.monotonic() - begun, command))
        return body


def resident(session):
    """KiB of the adapter, and of all that it has started."""
    adapter = psutil.Process(session.process.pid)
    return [sum(process.memory_info().rss for process in processes) >> 10 for processes in ([adapter], adapter.children(recursive=True))]


@pytest.mark.timeout(1200 if LONG else 300)
def test_breakpoints_toggled_at_random_in_a_running_loop(session):
    count, seconds = (100, 600) if LONG else (20, 2)
    rng = random.Random(7)
    lines = [n for n, text in enumerate(REAL.read_text().splitlines(), 1) if text.strip()]
    session.start(REAL, args=["100000", "0.002"], dvm={"hotReload": "off"})
    ask, sizes, rounds, begun = Timed(session), [], 0, time.monotonic()
    while rounds < 12 or time.monotonic() < begun + seconds:
        rounds += 1
        if rounds % 10 == 1:
            sizes.append(resident(session))
        modes = rng.choices(["forward", "backward", "both"], k=count)
        chosen = [{"line": rng.choice(lines), "condition": "1 > 2", "mode": mode} for mode in modes]
        answers = ask("setBreakpoints", source={"path": str(REAL)}, breakpoints=chosen)["breakpoints"]
        assert len(answers) == count and all("id" in answer for answer in answers)
        assert ask("threads")["threads"]
        if rng.random() < 0.3:
            ask("dvm/status")
    ask("setBreakpoints", source={"path": str(REAL)}, breakpoints=[])
    before = len(printed(session))
    end = time.monotonic() + 60
    while len(printed(session)) <= before and time.monotonic() < end:
        time.sleep(0.02)
    assert len(printed(session)) > before and len(set(printed(session))) == 1
    assert not list(session.seen("stopped"))
    sizes.append(resident(session))
    print(f"{count} breakpoints, {rounds} times: longest answer {ask.longest[0]:.3f} s ({ask.longest[1]}); "
          f"resident, KiB, adapter and program: {sizes[0]}, {sizes[len(sizes) // 3]}, then {sizes[-1]}")
    assert all(last - early < 32 << 10 for early, last in zip(sizes[len(sizes) // 3], sizes[-1], strict=True))


@pytest.mark.timeout(900 if LONG else 300)
def test_watches_by_the_hundred(session):
    count = 1000 if LONG else 60
    session.start(REAL, args=["100000", "0.01"], dvm={"hotReload": "off"})
    ask = Timed(session)
    numbers = [ask("dvm/watch", expression=random.Random(i).choice(["h", "s", "y"]), everyN=1 + i % 7)["watchId"] for i in range(count)]
    assert len(set(numbers)) == count
    assert {session.event("dvm/snapshot")["body"]["watchId"] for _ in range(30)} <= set(numbers)
    assert len(ask("dvm/status")["watches"]) == count
    for number in numbers:
        ask("dvm/unwatch", watchId=number)
    assert ask("dvm/status")["watches"] == [] and len(set(printed(session))) == 1
    print(f"{count} watches: longest answer {ask.longest[0]:.3f} s ({ask.longest[1]})")


def test_requests_are_answered_during_a_flood(session):
    source = PROGRAMS / "plain.py"
    texts = source.read_text().splitlines()
    passed_by = [n for n, text in enumerate(texts, 1) if "on purpose" in text or "time.sleep" in text]  # in branches that do not run
    session.start(source, args=["flood"])
    ask = Timed(session)
    for i in range(40 if LONG else 8):
        session.event("output", timeout=60)
        waiting = session.begin("breakpointLocations", source={"path": str(source)}, line=passed_by[i % 2])
        chosen = (passed_by if i % 3 else passed_by[::-1])[: i % 3 or 2]
        answers = ask("setBreakpoints", source={"path": str(source)}, breakpoints=[{"line": line} for line in chosen])["breakpoints"]
        assert [answer["line"] for answer in answers] == chosen
        assert [thread["name"] for thread in ask("threads")["threads"]] == ["MainThread"]
        places = waiting.get(timeout=60)
        assert places["command"] == "breakpointLocations"
        assert {place["line"] for place in places["body"]["breakpoints"]} == {passed_by[i % 2]}
    session.event("terminated", timeout=120)
    told = session.printed()
    assert told and "".join(f"line {i} of many\n" for i in range(80_000)).startswith(told)  # in order, with no gap
    assert not list(session.seen("stopped"))
    print(f"during a flood: longest answer {ask.longest[0]:.3f} s")


@pytest.mark.parametrize("when", ["before initialize", "after initialize", "after launch", "at a stop", "running", "while it restarts",
                                  "while what restarts begins"])
def test_a_client_that_vanishes_leaves_nothing(when):
    mark = uuid.uuid4().hex
    session = Session([sys.executable, "-m", "dvm_adapter"], env={**environment(), "DVM_KILL_TEST": mark})
    line = line_of(REAL, "s = h + scale")
    if when == "after initialize":
        session.request("initialize", adapterID="dvm")
    elif when == "after launch":
        session.request("initialize", adapterID="dvm")
        session.begin("launch", program=str(REAL), args=["100000", "0.01"], console="internalConsole")
    elif when != "before initialize":
        session.start(REAL, args=["100000", "0.01"], at=lambda c: c.set_breakpoints(str(REAL), [line] if when == "at a stop" else []))
        if when == "at a stop":
            session.stopped()
        if "restarts" in when:
            session.begin("restart")
        if when == "while what restarts begins":
            session.event("dvm/restarted")
            time.sleep(0.3)
    session.process.stdin.close()
    session.process.wait(60)
    gone(mark)


def test_a_program_that_nothing_debugs_starts_anew(session, tmp_path):
    """*Run without debugging*: debugpy asks for no configuration then."""
    (script := tmp_path / "script.py").write_text("import sys, time\nprint('up', *sys.argv[1:], flush=True)\ntime.sleep(100)\n")

    def up(word):
        session.event("output", timeout=60, where=lambda body: f"up {word}" in body["output"])

    session.request("initialize", adapterID="dvm")
    launched = session.begin("launch", program=str(script), args=["one"], noDebug=True, console="internalConsole")
    assert launched.get(timeout=60)["success"]
    up("one")
    session.request("restart", timeout=60, arguments={"program": str(script), "args": ["two"], "noDebug": True})
    up("two")


def test_a_restart_that_cannot_be_meant_leaves_the_program_alone(session, tmp_path):
    session.start(REAL, args=["100000", "0.01"])
    wrong = {"program": 5, "module": 7, "args": [1], "env": {"A": 1}, "python": "/nope/python", "cwd": str(tmp_path / "nope")}
    for name, value in wrong.items():
        assert f'"{name}"' in session.refusal("restart", arguments={"program": str(REAL), name: value})
    assert session.request("threads")["threads"]
    session.event("output", where=lambda body: "step" in body["output"])


@pytest.mark.parametrize("wait", [None, 0, 0.05])  # seconds after the first program has ended; None: before
def test_a_program_that_is_restarted_may_be_disconnected_from_meanwhile(wait):
    mark = uuid.uuid4().hex
    session = Session([sys.executable, "-m", "dvm_adapter"], env={**environment(), "DVM_KILL_TEST": mark})
    session.start(REAL, args=["100000", "0.01"])
    restarted = session.begin("restart")
    if wait is not None:
        session.event("dvm/restarted")
        time.sleep(wait)
    assert "start" in session.refusal("restart")  # one at a time
    assert session.request("disconnect", terminateDebuggee=True) == {}
    answer = restarted.get(timeout=60)
    assert not answer["success"] and answer["message"] == "cancelled"
    assert session.process.wait(60) == 0
    gone(mark)


BROKEN = [b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: -1\r\n\r\n{}", b"Content-Length: 2\r\n\r\n[]", b"X" * 100_000,
          b"Content-Length: 5\r\n\r\n\xff\xfe\x00{}", b"Content-Length: 30\r\n\r\n{}", b"\r\n" * 50, b"Content-Length: 4\r\n\r\n{{{{",
          b'Content-Length: 24\r\n\r\n{"type":"request","seq":"']


@pytest.fixture
def server():
    process = subprocess.Popen([sys.executable, "-m", "dvm_adapter", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                               env=environment(), stderr=subprocess.PIPE)
    host, port = process.stdout.readline().split()[-1].split(":")
    yield process, (host, int(port))
    process.terminate()
    assert process.wait(30) == 0
    assert "Traceback" not in process.stderr.read()


def initialize(address):
    with socket.create_connection(address, 30) as connection:
        body = b'{"type": "request", "seq": 1, "command": "initialize", "arguments": {"adapterID": "dvm"}}'
        connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return connection.recv(1 << 16)


def test_broken_and_oversized_messages_end_one_session_and_no_other(server):
    process, address = server
    resident = []
    for _ in range(30 if LONG else 3):
        for data in BROKEN:
            with socket.create_connection(address, 30) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
        assert b"supportsDisassembleRequest" in initialize(address)
        resident.append(psutil.Process(process.pid).memory_info().rss >> 10)
    print(f"{len(resident) * (len(BROKEN) + 1)} connections: resident {resident[0]} KiB, then {resident[-1]} KiB")
    assert resident[-1] - resident[len(resident) // 3] < 32 << 10  # KiB; a leak of a message each would be far more


def test_sessions_one_after_another_give_the_same_losses_and_leave_nothing(adapter):
    told, longest, resident = set(), (0.0, ""), []
    for _ in range(20 if LONG else 2):
        session = adapter()
        session.start(REAL, args=["8", "0.001"], at=lambda c: c.set_breakpoints(str(REAL), [line_of(REAL, "y = s.log()")]))
        ask = Timed(session)
        session.stopped()
        ask("stackTrace", threadId=1)
        ask("dvm/status")
        ask("setBreakpoints", source={"path": str(REAL)}, breakpoints=[])
        resident.append(psutil.Process(session.process.pid).memory_info().rss >> 10)
        session.go_on()
        session.run_out()
        told.add(tuple(printed(session)))
        longest = max(longest, ask.longest)
        session.close()
        assert not psutil.pid_exists(session.process.pid)
    assert len(told) == 1 and len(next(iter(told))) == 8
    print(f"{len(resident)} sessions: longest answer {longest[0]:.3f} s ({longest[1]}), adapter {min(resident)} to {max(resident)} KiB")
