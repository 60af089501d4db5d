"""dvm.stats() tells the VM's own time apart by phase and captured function."""
from __future__ import annotations

import os
import time

import numpy as np
import pytest
from core_kit import Recorder, arange, stop_handler

import dvm_core as dvm
from dvm_core import _core, timetable


def spent(name: str) -> dict[str, float]:
    return dict(dvm.stats()["functions"].get(name, {}).get("time_us", dict.fromkeys(timetable.PHASES, 0.0)))


def launch(name: str, rows: int = 300):
    r = Recorder(name)
    x, w = r.input(np.ones((rows, 64), np.float32)), r.input(np.ones((64, 64), np.float32))
    y = r.sum(r.tanh(r.matmul(x, w, attrs=(0, 0))), attrs=(0, 0))
    return r.graph.flush((y,))


def test_every_phase_of_a_function_is_told_and_their_sum_is_that_of_all():
    for _ in range(40):
        launch("own_time")
    stats = dvm.stats()
    mine = stats["functions"]["own_time"]
    assert tuple(mine["time_us"]) == tuple(stats["time_us"]) == timetable.PHASES
    assert (mine["launches"], mine["instructions"]) == (40, 120)
    for phase in ("record", "fuse", "tile", "encode", "bind", "dispatch", "kernels"):
        assert mine["time_us"][phase] > 0, phase
    for phase, total in stats["time_us"].items():
        assert total == pytest.approx(sum(f["time_us"][phase] for f in stats["functions"].values()))


def test_a_compiled_program_is_not_compiled_again():
    launch("compiled_once")
    before = spent("compiled_once")
    for _ in range(5):
        launch("compiled_once")
    after = spent("compiled_once")
    assert [after[p] - before[p] for p in ("fuse", "tile", "encode")] == [0, 0, 0]
    launch("compiled_once", 301)
    assert spent("compiled_once")["encode"] > after["encode"]


def test_no_more_is_told_than_has_passed():
    launch("within")
    before, start = spent("within"), time.perf_counter()
    for _ in range(30):
        launch("within")
    passed, after = (time.perf_counter() - start) * 1e6, spent("within")
    # Recording is a sample scaled up; all else is measured.
    assert sum(after[p] - before[p] for p in timetable.PHASES if p != "record") <= passed


def test_the_time_of_a_stop_is_nobodys():
    program = launch("stopped").program
    _core.set_hook(program.id, 1, _core.HOOK_STOP, 1)
    before, slept = spent("stopped"), []

    def handler(stopped, instruction, reason, hooks):
        start = time.perf_counter()
        launch("evaluated")  # at a stop: told for itself
        while time.perf_counter() - start < 0.05:
            pass
        slept.append(time.perf_counter() - start)

    start = time.perf_counter()
    with stop_handler(handler):
        launch("stopped")
    passed, after = time.perf_counter() - start, spent("stopped")
    assert len(slept) == 1
    assert sum(after[p] - before[p] for p in timetable.PHASES if p != "record") <= (passed - slept[0]) * 1e6
    assert dvm.stats()["functions"]["evaluated"]["launches"] >= 1


def test_the_table_has_a_line_for_each_function_the_longest_first():
    def entry(launches, kernels):
        return {"launches": launches, "instructions": 3, "time_us": {**dict.fromkeys(timetable.PHASES, 0.0), "kernels": kernels}}

    functions = {"short": entry(2, 1000.0), "long": entry(3, 5000.0), "never": entry(0, 0.0)}
    lines = timetable.text({"functions": functions, "time_us": entry(0, 6000.0)["time_us"]}).splitlines()
    assert [line.split()[0] for line in lines] == ["function", "long", "short", "all"]
    assert lines[-1].split()[1:] == ["5", *["0.000"] * 6, "6.000", "0.000", "6.000"]


def test_functions_that_are_gone_share_an_entry_and_those_that_are_not_keep_theirs():
    pid = os.fork()  # the table is the process's: it is filled in a child
    if pid == 0:
        kept = Recorder("kept_by_name")
        kept.graph.flush((kept.neg(kept.input(arange(4))),))
        others = _core.stats()["functions"].values()
        before, count = sum(f["launches"] for f in others), 500 * (10 + len(others) // 100)  # that live do not count
        for i in range(count):
            r = Recorder(f"generated_{i}") if i % 500 == 0 else _core.Graph(f"generated_{i}")
            if i % 500 == 0:
                r.graph.flush((r.neg(r.input(arange(4))),))
            del r
        last = Recorder("generated_last")
        last.graph.flush((last.neg(last.input(arange(4))),))
        functions = _core.stats()["functions"]
        few = len(functions) < 1500 + 2 * len(others) and "(other functions)" in functions
        told = functions["kept_by_name"]["launches"] == functions["generated_last"]["launches"] == 1
        os._exit(0 if few and told and sum(f["launches"] for f in functions.values()) == before + count // 500 + 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
