"""Stops where several threads stand, and a debugger that goes away, fails or is not there."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import os
import threading

import numpy as np
import pytest
from agent_harness import Adapter, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, Capture, X, breakpoint_on, model, same, source  # noqa: F401 - the fixtures among them

from dvm_core import agent


def test_two_threads_take_turns(adapter):
    model(X)
    breakpoint_on(adapter, LINE_S)
    programs = [Running(model, X) for _ in range(2)]
    threads = []
    for _ in programs:
        stop = adapter.event("vmstop")
        threads.append(stop["thread"])
        adapter.none("vmstop", 0.1)
        adapter.request("go")
    for program in programs:
        program.join()
    assert set(threads) == {program.thread.ident for program in programs}


class Pausing:
    """A captured function that waits in its body, where Python's debugger would hold it, before it runs what `model` does."""

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __call__(self, x):
        with Capture("forward") as c:
            c.add("MUL", (c.input(x), -1), LINE_H, imms=(2.0,), called="h")
            self.inside.set()
            self.go_on.wait(20)
        return model(x)


@pytest.mark.parametrize("by_name", [True, False])
def test_python_stopping_on_another_thread_does_not_cover_a_stop_of_the_vm(adapter, by_name):
    reference = model(X)
    breakpoint_on(adapter, LINE_S)
    first = Running(model, X)
    stop = adapter.event("vmstop")
    pausing = Pausing()
    second = Running(pausing, X)
    assert pausing.inside.wait(20)
    there = adapter.request("pythonStop", thread=second.thread.ident)["tensor"]
    assert there["ref"] > stop["epoch"]
    assert adapter.request("frames")["tensor"]["ref"] == there["ref"]
    if by_name:
        assert adapter.request("select", thread=first.thread.ident)["tensor"]["ref"] == stop["epoch"]
        assert "grad(s)" in [t["name"] for t in adapter.request("tensors")["tensors"]]
        adapter.request("select", thread=second.thread.ident)
        adapter.request("go", thread=first.thread.ident)
        assert same(first.join(), reference)
        assert adapter.request("frames")["tensor"]["ref"] == there["ref"]
        adapter.request("go")
    else:
        adapter.request("go")
        assert adapter.request("frames")["tensor"] == stop["FRAME"]
        adapter.request("step", kind="instruction")
        later = adapter.event("vmstop")
        assert (later["thread"], later["FRAME"]["instruction"]) == (first.thread.ident, stop["FRAME"]["instruction"] + 1)
        adapter.request("go")
        assert same(first.join(), reference)
    assert adapter.request("frames")["tensor"] is None
    pausing.go_on.set()  # its own program stops now
    assert adapter.event("vmstop")["thread"] == second.thread.ident
    adapter.request("go")
    assert same(second.join(), reference)


def test_the_debugger_goes_away_while_two_threads_stand(adapter):
    reference = model(X)
    breakpoint_on(adapter, LINE_S)
    first = Running(model, X)
    adapter.event("vmstop")
    pausing = Pausing()
    second = Running(pausing, X)
    assert pausing.inside.wait(20)
    adapter.request("pythonStop", thread=second.thread.ident)
    stops = agent._session.stops
    adapter.close()
    assert same(first.join(), reference)
    pausing.go_on.set()
    assert same(second.join(), reference)
    assert stops.current is None and not stops.looking


def test_the_debugger_goes_away_during_a_stop(adapter):
    reference = model(X)
    breakpoint_on(adapter, LINE_S)
    program = Running(model, X)
    adapter.event("vmstop")
    adapter.close()
    assert same(program.join(), reference)
    assert same(model(X), reference)
    assert not agent.connected()


def test_detach_clears_everything(adapter):
    breakpoint_on(adapter, LINE_S)
    adapter.request("filters", conditions={"nan": "", "inf": ""})
    adapter.request("detach")
    adapter.event("eof")
    agent._session.connection.thread.join(5)
    x = X.copy()
    x[:] = np.nan
    model(x)  # would hang at a stop


def test_a_fault_in_the_handler_does_not_end_the_launch(adapter, monkeypatch):
    reference = model(X)
    breakpoint_on(adapter, LINE_S)
    monkeypatch.setattr(agent._session.breakpoints, "at", lambda hooks: 1 / 0)
    assert same(model(X), reference)
    notice = adapter.event("notice", where=lambda n: n["category"] == "error")
    assert "a stop failed inside the debugger: ZeroDivisionError" in notice["text"]


def test_without_a_debugger_nothing_is_started():
    assert not agent.start() and not agent.connected()
    assert not [t for t in threading.enumerate() if t.name == "dvm-agent"]


def test_a_debugger_that_cannot_be_reached_is_said(monkeypatch, capsys):
    monkeypatch.setenv("DVM_AGENT", "127.0.0.1:1")
    assert not agent.start()
    assert "dvm: no debugger: " in capsys.readouterr().err


def test_variables_of_a_debugger_that_has_gone_are_as_before_and_a_device_is_chosen_only_when_named(monkeypatch):
    chosen = []
    monkeypatch.setattr(agent, "_choose", lambda device: chosen.append(device) or "")
    for device, before in (("npu-sim:910b", None), ("", None), ("", "cpu")):
        made = Adapter()
        monkeypatch.setenv("DVM_DEVICE", device or "npu-sim:910b")  # as from an attachment before
        assert agent.start(device, {"DVM_DEVICE": before})
        made.accept()
        agent._session.connection.close()
        agent._session.connection.thread.join(10)
        made.close()
        assert os.environ.get("DVM_DEVICE") == before and "DVM_TOKEN" not in os.environ
    assert chosen == ["npu-sim:910b"]


def test_threads_that_ask_at_once_get_one_book(monkeypatch):
    monkeypatch.setattr(agent, "_book", None)
    found, begin = [], threading.Barrier(8)

    def ask():
        begin.wait()
        found.append(agent.remember_sources())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({id(book) for book in found}) == 1
