"""The first result that differs from the same program unfused or on another device: found, explained, and nothing of the launch changed."""

# ruff: noqa: F811 - fixtures are named as what they are imported as
import threading

import numpy as np
import pytest
from agent_harness import Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, LINE_Y, Capture, X, model, op, same, source  # noqa: F401 - the fixtures among them
from core_programs import run
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent import numeric
from dvm_core.agent.drift import Incomparable, difference

F32 = 1
FAITHFUL = "npu-sim:910b:faithful"


@pytest.fixture(autouse=True)
def as_before():
    yield
    _core.set_measure(0)
    _core.set_stop_handler(None)
    dvm.set_device("cpu")


def through_bool(x):
    """float32 -> bool goes through float16 on the chip, where what is tiny is 0."""
    with Capture("forward") as c:
        v = c.input(x)
        h = c.add("MUL", (v, -1), LINE_H, imms=(1.0,), called="h")
        place = _core.place(model.path, LINE_S, 0, 5, 0, "forward", False)
        flag = c.graph.op(op("CAST"), (h,), dtype=next(code for name, code, _ in _core.DTYPES if name == "bool"), place=place, name="flag")
        s = c.graph.op(op("CAST"), (flag,), dtype=F32, place=place, name="s")
        y = c.add("ADD", (s, v), LINE_Y, called="y")
        c.graph.flush(keep=[y])
        return (c.graph.array(y).copy(),)


def stopped(adapter, program):
    stop = adapter.event("vmstop")
    adapter.request("go")
    program.join()
    return stop


def test_a_device_that_computes_otherwise_is_found_at_the_first_op_with_both_values(adapter):
    x = np.array([[1.0, 1e-9, 2.0]], np.float32)
    plain = through_bool(x)
    assert adapter.request("filters", conditions={"diverged": f"against {FAITHFUL} > 1e-3"}) == {"refused": {}}
    stop = stopped(adapter, Running(through_bool, x))
    assert (stop["reason"], stop["FRAME"]["opcode"], stop["FRAME"]["line"]) == ("diverged", "CAST", LINE_S)
    assert stop["text"] == (
        f"diverged: CAST made flag, bool[1,3]: error Inf; the largest difference is at [0, 1]: True here, False on {FAITHFUL}; "
        f"the condition is error > 1e-3 against {FAITHFUL}"
    )
    adapter.request("filters", conditions={"diverged": "against npu-sim:910b"})
    program = Running(through_bool, x)
    program.join()  # results of the chip without its own mistakes are these
    adapter.none("vmstop", 0.1)
    assert same(program.result, plain)
    adapter.request("filters", conditions={})


def test_the_chip_in_use_is_compared_with_the_cpu(adapter):
    x = np.array([[1.0, 1e-9, 2.0]], np.float32)
    adapter.request("device", device=FAITHFUL)
    adapter.request("filters", conditions={"diverged": "against cpu"})
    stop = stopped(adapter, Running(through_bool, x))
    assert "[0, 1]: False here, True on cpu" in stop["text"]
    adapter.request("filters", conditions={})
    adapter.request("device", device="cpu")


def test_what_fusing_changes_is_found(adapter):
    """A device that answers wrongly when it is asked again: that is what a fault of fusing looks like."""
    calls = []

    def compute(inputs, instructions, read, made):
        calls.append(len(instructions))
        values = {v: np.asarray(array) for v, (array, _) in read.items()}
        for i in instructions:
            a = [values[v] for v in i.operands if v >= 0] + [np.float32(imm) for imm in i.imms]
            values[inputs + i.index] = {"MUL": np.multiply, "EXP": np.exp, "DIV": np.divide}[i.name](*a)
            if i.name == "EXP" and len(calls) == 2:
                values[inputs + i.index] = np.where(np.arange(12).reshape(3, 4) == 6, 1, values[inputs + i.index])
        for v, (array, _) in made.items():
            array[...] = values[v]

    _core.add_device("forgetful:0", "Forgetful", compute)
    adapter.request("device", device="forgetful:0")
    adapter.request("filters", conditions={"diverged": "against fused"})
    stop = stopped(adapter, Running(model, X))
    assert (stop["FRAME"]["opcode"], len(calls)) == ("EXP", 3)
    assert stop["text"].startswith("diverged: EXP made s, f32[3,4]: error ") and "the largest difference is at [1, 2]: " in stop["text"]
    assert stop["text"].endswith(" here, 1.0 unfused; the condition is error > 0 against fused")
    adapter.request("filters", conditions={})
    adapter.request("device", device="cpu")


@pytest.mark.parametrize("against", ["fused", "npu-sim:950"])
def test_no_program_differs_by_a_bit_unfused_or_on_a_plain_device(adapter, against):
    adapter.request("filters", conditions={"diverged": f"against {against} > 0"})
    for seed in range(25):
        program = random_program(seed)
        made = range(len(program.inputs), len(program.inputs) + len(program.steps))
        Running(run, program, list(made)[-2:]).join()
    assert not [e for e in adapter.events if e["ev"] == "vmstop"]
    told = [e["text"] for e in adapter.events if e["ev"] == "notice"]
    assert all("cannot be compared" in text for text in told), told
    adapter.request("filters", conditions={})


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("against npu-sim:911", "there is no device 'npu-sim:911'"),
        ("against cuda", "a GPU"),
        ("against", "`against` what"),
        ("against cpu > loss", "no `loss` here"),
    ],
)
def test_what_cannot_be_compared_with_is_refused_by_name(adapter, condition, why):
    assert why in adapter.request("filters", conditions={"diverged": condition})["refused"]["diverged"]
    assert model(X)


def test_a_comparison_that_fails_is_told_and_the_program_goes_on(adapter):
    def compute(inputs, instructions, read, made):
        raise ValueError("it rains")

    _core.add_device("wet:0", "Wet", compute)
    adapter.request("filters", conditions={"diverged": "against wet:0", "range": "op == 'EXP'"})
    stop = stopped(adapter, Running(model, X))
    assert stop["reason"] == "range"
    assert "the filter 'diverged' passes over forward" in adapter.event("notice")["text"]
    adapter.request("filters", conditions={})


def test_a_launch_runs_again_without_a_trace():
    again = []

    def handler(launch, instruction, reason, hooks):
        before = _core.stats()["launches"], launch.program.launches, _core.stats()["programs"]
        for device, unfused, everything in (("", True, True), ("", False, False), ("npu-sim:910b", False, True)):
            found = launch.rerun(device, unfused, everything)
            arrays = [found.array(v) for v in range(len(launch.program.input_shapes) + len(launch.program.instructions))]
            again.append([None if a is None else a.copy() for a in arrays])
        again.append([launch.array(v).copy() for v in range(6)])
        assert before == (_core.stats()["launches"], launch.program.launches, _core.stats()["programs"])

    _core.memory_log(True)
    _core.set_measure(1)
    _core.set_stop_handler(handler)
    model(X)
    _core.set_measure(0)
    _core.set_stop_handler(None)
    unfused, plain, simulated, launch = again
    for one, two, three, four in zip(unfused, plain, simulated, launch, strict=True):
        assert np.array_equal(one, four) and np.array_equal(three, four)
        assert two is None or np.array_equal(two, four)
    assert [a is None for a in plain] == [False, True, True, False, True, False]


def test_a_filter_looks_at_what_a_stop_of_python_ran(adapter):
    """As in pydevd's wait loop: a thread waits inside the function, after a line that made NaN."""
    arrived, go = threading.Event(), threading.Event()

    def forward(x):
        h = x.log()
        arrived.set(), go.wait()
        return h + 1

    captured = dvm.jit(forward)
    for conditions, reason in (({"nan": ""}, "nan"), ({"range": "nan > 0"}, "range"), ({"range": "max > 1e9"}, "")):
        adapter.request("filters", conditions=conditions)
        arrived.clear(), go.clear()
        program = Running(lambda: captured(dvm.tensor(-X)).numpy())
        assert arrived.wait(20)
        answer = adapter.request("pythonStop", thread=program.thread.ident)
        assert answer.get("found", {"reason": ""})["reason"] == reason
        assert "LOG made" in answer["found"]["text"] if reason else "found" not in answer
        adapter.request("filters", conditions={})
        adapter.request("go")
        go.set()
        program.join()


@pytest.mark.parametrize("here", [np.float32(2.0), np.arange(6, dtype=np.float32).reshape(2, 3).T], ids=["scalar", "transposed"])
def test_results_of_any_layout_are_compared(here):
    here = np.asarray(here)
    assert difference(here, here.copy(), 0, "there").error == 0
    there = here.astype(np.float64)
    assert difference(here, there, 0, "there").error == 0
    there[(0,) * here.ndim] += 1
    found = difference(here, there, 0, "there")
    assert (found.at, found.there - found.here) == ((0,) * here.ndim, 1)


@pytest.mark.parametrize(("here", "there", "at"), [
    ([0, 7, 9], [0, 7, 9], None), ([1 << 62, 5], [(1 << 62) + 1, 5], (0,)), ([1, 5], [1, 50], (1,)), ([True, False], [True, True], (1,))])
def test_of_integers_and_bools_any_difference_counts(here, there, at):
    found = difference(np.array(here), np.array(there), 0, "there")
    assert (found.at, found.error) == (at, np.inf if at else 0)


def test_launches_that_cannot_be_compared_are_told_of_once_and_the_filter_stays(adapter, monkeypatch):
    def gone(view, against):
        raise Incomparable("input 0 is gone")

    set_to = {"diverged": "error >= 0"}
    adapter.request("filters", conditions=set_to)
    with monkeypatch.context() as broken:
        broken.setattr(numeric, "comparison", gone)
        Running(model, X).join()
        told = adapter.event("notice", where=lambda n: "input 0 is gone" in n["text"])["text"]
        assert "`error >= 0`" in told and "passes over" in told
        count = len(adapter.events)
        Running(model, X).join()
        assert not [e for e in adapter.events[count:] if e["ev"] == "notice"]
    assert stopped(adapter, Running(model, X))["reason"] == "diverged"
    adapter.request("filters", conditions={})
