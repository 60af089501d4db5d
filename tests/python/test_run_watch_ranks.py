"""`dvm run --watch` in the ranks of one job: all take a save before the same step, or none does, with no debugger there."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dvm_wire import doors
from test_run_watch import WAIT, run  # noqa: F401 - the fixture

from dvm_core.agent import speaker as finding


@pytest.fixture
def ranks(run, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("DVM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    started = [run(RANK=str(number), WORLD_SIZE="2") for number in range(2)]
    assert [rank.value() for rank in started] == [2.5, 2.5]
    started[0].save("train.py", "@dvm.jit", "# a comment\n@dvm.jit")  # once it is answered, the ranks have looked at both files
    assert started[0].said() == "dvm: ranks 0-1: train.py unchanged: no function has changed"
    return started


def speaker(cache):
    """The process that speaks for the job, which rank 0 has started and left to init."""
    line = b"\0".join((os.fsencode(sys.executable), b"-m", b"dvm_adapter.together", b""))
    (found,) = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
                if doors.environment_of(pid).get("DVM_CACHE") == str(cache) and Path(f"/proc/{pid}/cmdline").read_bytes() == line]
    return found


def test_all_ranks_take_a_save_before_the_same_step_and_say_so_once(ranks):
    first, second = ranks
    first.save("rates.py", "x + 1.0", "x + 3.0")
    said = first.said()
    assert said.startswith("dvm: ranks 0-1: rates.py applied at step ") and "shift: 1.0 → 3.0" in said
    assert (first.value(), second.value()) == (4.5, 4.5)
    # Only rank 1 meets the name that is missing: neither takes it.
    first.save("rates.py", "x + 3.0", "x + (3.0 if __import__('os').environ['RANK'] == '0' else missing)")
    assert "ranks 0-1: rates.py refused: rank 1: rates.py:2: NameError: name 'missing' is not defined" in first.said()
    first.save("rates.py", "(3.0 if __import__('os').environ['RANK'] == '0' else missing)", "4.0")
    assert first.said().startswith("dvm: ranks 0-1: rates.py applied") and (first.value(), second.value()) == (5.5, 5.5)
    assert [rank.end() for rank in ranks] == [0, 0] and first.err.empty() and second.err.empty()


def test_one_rank_that_is_asked_asks_all(ranks):
    first, second = ranks
    first.save("train.py", "RATE = 0.5", "RATE = 0.25")
    assert "RATE: 0.5 → 0.25" in first.said() and (first.value(), second.value()) == (2.25, 2.25)
    answer = doors.knock(second.process.pid, {"cmd": "reload", "path": str(second.folder / "train.py")}, WAIT)
    assert [report["outcome"] for report in answer["reports"]] == ["unchanged"], answer
    (first.folder / "rates.py").write_text("def shift(x):\n    return x + 2.0\n")  # the save and the request, whoever is first
    done = subprocess.run([sys.executable, "-m", "dvm_core", "reload", str(second.process.pid), str(first.folder / "rates.py")],
                          capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0 and ("rates.py applied" in done.stdout or "rates.py unchanged" in done.stdout), done
    assert (first.value(), second.value()) == (3.25, 3.25)


def test_who_speaks_for_the_ranks_may_go_and_comes_again(ranks, tmp_path):
    first, second = ranks
    os.kill(speaker(tmp_path / "cache"), signal.SIGKILL)
    for rank in ranks:
        assert rank.said() == "dvm: the process that takes edits to all ranks has ended; another is started"
    first.save("rates.py", "x + 1.0", "x + 3.0")
    assert first.said().startswith("dvm: ranks 0-1: rates.py applied")
    assert (first.value(), second.value()) == (4.5, 4.5)


@pytest.mark.parametrize(("between", "found"), [
    ([], 10), ([("bash", False)], 10), ([("bash", False), ("python", False)], 10),
    ([("python", True)], 0), ([("fork", False), ("rank", True)], 0)])
def test_wrappers_above_a_rank_are_looked_through_and_a_ranks_children_are_no_ranks(monkeypatch, between, found):
    processes = {10: ("1", {})}  # by id: who started it, its environment
    for number, _ in enumerate(between):
        processes[11 + number] = (str(10 + number), {"RANK": "1", "WORLD_SIZE": "2"})
    doors_of = {10 + len(between) - at for at, (_, door) in enumerate(between) if door}
    monkeypatch.setattr(os, "getppid", lambda: 10 + len(between))
    monkeypatch.setattr(doors, "environment_of", lambda pid: processes[pid][1])
    monkeypatch.setattr(doors, "stat_fields", lambda pid: ["S", processes[pid][0]])
    monkeypatch.setattr(doors, "has_door", doors_of.__contains__)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert finding.launcher() == found
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert finding.launcher() == 0


def test_a_rank_outside_of_the_watch_takes_no_edit_alone(run, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("DVM_CACHE", str(tmp_path / "cache"))
    alone = run(RANK="1", WORLD_SIZE="2", watch=False)
    assert alone.value() == 2.5
    (alone.folder / "rates.py").write_text("def shift(x):\n    return x + 2.0\n")
    (report,) = doors.knock(alone.process.pid, {"cmd": "reload", "path": str(alone.folder / "rates.py")}, WAIT)["reports"]
    assert report["outcome"] == "refused" and report["reasons"][0].startswith("this is rank 1 of 2, and all ranks take an edit, or none")
