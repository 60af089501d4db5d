"""Requests about large tensors are worked on beside the agent's thread: others are answered meanwhile, and no answer mixes two stops."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import threading
import time

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_Y, X, breakpoint_on, model, source  # noqa: F401 - the fixtures among them

from dvm_core import agent
from dvm_core.agent import aside, look, planes, tensors, values

WORK = {"view": (planes, "plane"), "viewStats": (values, "statistics"), "tensor": (values, "statistics"), "compare": (look, "difference")}


@pytest.fixture
def stopped(adapter, monkeypatch):
    """The reference of `s` at a stop, and a gate through which all work on tensors goes: they all count as large."""
    breakpoint_on(adapter, LINE_Y, "forward")
    program = Running(model, X, "graph")
    adapter.event("vmstop")
    ref = next(t["ref"] for t in adapter.request("tensors")["tensors"] if t["name"] == "s")
    agent.current().references.get(ref).stats = None  # what was computed for the list is forgotten
    monkeypatch.setattr(aside, "LARGE_BYTES", 0)
    gate, begun = threading.Event(), threading.Semaphore(0)

    def gated(work):
        def waiting(*arguments, **more):
            begun.release()
            assert gate.wait(20)
            return work(*arguments, **more)

        return waiting

    for module, name in set(WORK.values()):
        monkeypatch.setattr(module, name, gated(getattr(module, name)))
    yield ref, gate, begun
    gate.set()
    if program.thread.is_alive():
        adapter.request("go")
    program.join()


def asked(command, ref):
    return {"a": {"ref": ref}, "b": {"ref": ref}} if command == "compare" else {"ref": ref}


@pytest.mark.parametrize("command", WORK)
def test_another_request_is_answered_while_a_large_tensor_is_looked_at(adapter, stopped, command):
    ref, gate, begun = stopped
    first, second = (adapter.send(command, **asked(command, ref)) for _ in range(2))
    assert begun.acquire(timeout=20)
    assert adapter.request("frames")["tensor"]["line"] == LINE_Y
    assert not {first, second} & {message.get("re") for message in adapter.seen}
    gate.set()
    told = adapter.answer(second)
    assert told == adapter.answer(first, timeout=0)  # which came before it


@pytest.mark.parametrize("command", WORK)
def test_an_answer_that_would_come_after_its_stop_is_a_refusal(adapter, stopped, command):
    ref, gate, begun = stopped
    running, waiting = (adapter.send(command, **asked(command, ref)) for _ in range(2))
    assert begun.acquire(timeout=20)
    gone = adapter.send("go")
    while agent.current().stops.current is not None:
        time.sleep(0.001)
    gate.set()
    for number in (running, waiting):
        with pytest.raises(Refused, match="not of this stop: the program has gone on"):
            adapter.answer(number)
    adapter.answer(gone)
    more = [begun.acquire(blocking=False) for _ in range(2)]
    assert more.count(True) == (command == "compare")  # the one that ran has two parts; the one that waited was never begun


def test_statistics_of_values_that_are_written_meanwhile_are_not_kept(monkeypatch):
    array = np.ones(4, np.float32)
    references = tensors.References()
    found = tensors.Tensor("h", values.code_of(array), array.shape, lambda: array)
    references.add(found)
    plain = values.statistics

    def written(*arguments):
        made = plain(*arguments)
        array[0] = 5
        references.sharing(array)
        return made

    monkeypatch.setattr(values, "statistics", written)
    assert found.statistics(array)["max"] == 1
    monkeypatch.setattr(values, "statistics", plain)
    assert found.statistics(array)["max"] == 5


def test_the_program_goes_on_only_when_nothing_looks_at_its_memory_any_more():
    lanes, begun, gate, settled, replies = aside.Aside(), threading.Event(), threading.Event(), threading.Event(), []
    lanes.do("view", 1 << 40, replies.append, lambda: (begun.set(), gate.wait(20)) and {"x": 1})
    lanes.do("view", 1 << 40, replies.append, lambda: {"x": 2})
    assert begun.wait(20)
    going = threading.Thread(target=lambda: (lanes.settle(), settled.set()))
    going.start()
    assert not settled.wait(0.05)
    gate.set()
    assert settled.wait(20)
    going.join()
    lanes.settle()
    assert {"x": 2} not in replies and any("not of this stop" in str(reply.get("error")) for reply in replies)


def test_a_reply_that_cannot_be_given_leaves_the_lane_going():
    done = threading.Event()
    lanes = aside.Aside()

    def fails(answer):
        raise BrokenPipeError

    lanes.do("view", 1 << 40, fails, lambda: {})
    lanes.do("view", 1 << 40, lambda answer: done.set(), lambda: {})
    assert done.wait(20)


def test_a_fault_in_large_work_is_an_answer_and_the_lane_goes_on():
    done, replies = threading.Event(), []
    lanes = aside.Aside()
    lanes.do("view", 1 << 40, replies.append, lambda: {"x": 1 // 0})
    lanes.do("view", 1 << 40, lambda answer: (replies.append(answer), done.set()), lambda: {"x": 1})
    assert done.wait(20)
    assert replies == [{"ok": False, "error": "ZeroDivisionError: integer division or modulo by zero"}, {"x": 1}]
