"""Breakpoints in programs that the core has forgotten, those that a change refuses, and a session that ends over a part that fails."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import numpy as np
import pytest
from agent_harness import Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_S, X, breakpoint_on, model, op, same, source  # noqa: F401 - the fixtures among them

from dvm_core import _core, agent
from dvm_core.frontends import notices


def forget(program):
    """Makes as many programs as it takes until the core holds that one no more."""
    x = np.ones(1, np.float32)
    for i in range(1 << 14):
        graph = _core.Graph(f"other{i % 7}")
        value = graph.input(x.__array_interface__["data"][0], (1,), 1, None, x, "x")
        place = _core.place(model.path, i + 100, 0, 5, 0, "other", False)
        graph.flush(keep=[graph.op(op("MUL"), (value, -1), imms=(i + 0.5,), place=place)])
        if i % 256 == 0 and program not in {p.id for p in _core.programs()}:
            return
    pytest.fail(f"program {program} is never forgotten")


def data_item(name="s", **more):
    return {"id": 9, "name": name, "path": model.path, "function": "forward", **more}


def test_breakpoints_in_a_forgotten_program_can_be_set_again_and_taken_away(adapter):
    number = model(X)[2]
    adapter.request("dataBreakpoints", items=[data_item(hitCondition="1000")])
    assert breakpoint_on(adapter, LINE_S)["verified"]
    forget(number)
    (answer,) = adapter.request("dataBreakpoints", items=[data_item(hitCondition="1000")])["results"]
    assert (answer["verified"], answer["message"]) == (False, "waits for a program that makes or reads s")
    line = breakpoint_on(adapter, LINE_S)
    assert line["verified"] and "a program that is gone" in line["message"]
    assert adapter.request("dataBreakpoints", items=[])["results"] == []
    assert adapter.request("breakpoints", lines=[])["results"] == []
    assert same(model(X), model(X))


def test_a_refused_condition_takes_the_old_data_breakpoint_out(adapter):
    reference = model(X)
    (answer,) = adapter.request("dataBreakpoints", items=[data_item()])["results"]
    assert answer["verified"]
    hook = agent._session.data._points[0]
    where = set(hook.hooked)
    (answer,) = adapter.request("dataBreakpoints", items=[data_item(condition="s >")])["results"]
    assert not answer["verified"] and where and not hook.hooked
    program = Running(model, X)
    assert same(program.join(), reference)
    adapter.none("vmstop", 0.1)


def test_the_session_ends_past_a_part_that_fails(adapter, monkeypatch):
    session = agent._session
    breakpoint_on(adapter, LINE_S)
    monkeypatch.setattr(session.breakpoints, "clear", lambda: 1 / 0)
    monkeypatch.setattr(session.data, "clear", lambda: {}["gone"])
    with pytest.raises((ZeroDivisionError, KeyError)):
        session.end()
    assert session._notice_sink not in notices._sinks
    x = X.copy()
    model(x)  # would hang at a stop
