"""Breakpoints on ops, over a real socket: every instruction of the name, in programs that are there and in those that come."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import pytest
from agent_harness import Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, X, model, same, source  # noqa: F401 - the fixtures among them


def stops_of(adapter, count):
    """Where a call of the model stops, which it does so many times."""
    reference, program, found = None, Running(model, X), []
    for _ in range(count):
        stop = adapter.event("vmstop")
        found.append((stop["reason"], stop["bp"], stop["FRAME"]["opcode"], stop["FRAME"]["line"], stop["FRAME"]["backward"]))
        adapter.request("go")
    result = program.join()
    adapter.none("vmstop")
    adapter.request("opBreakpoints", items=[])
    reference = model(X)
    assert same(result, reference)
    return found


@pytest.mark.parametrize("known", [False, True])
def test_every_instruction_of_the_op_stops_and_changes_no_bit(adapter, known):
    if known:
        model(X)
    (answer,) = adapter.request("opBreakpoints", items=[{"id": 3, "name": "MUL"}])["results"]
    assert not known or (answer["verified"] and answer["message"].startswith("every MUL, first: instruction "))
    assert stops_of(adapter, 3) == [("op", [3], "MUL", LINE_H, False), ("op", [3], "MUL", LINE_S, True), ("op", [3], "MUL", LINE_H, True)]


def test_hits_count_over_a_list_that_is_sent_again(adapter):
    for _ in range(2):
        adapter.request("opBreakpoints", items=[{"id": 3, "name": "MUL", "hitCondition": "2"}])
    assert stops_of(adapter, 1) == [("op", [3], "MUL", LINE_S, True)]


def test_a_name_of_no_op_is_refused_beside_others(adapter):
    near, none, taken = adapter.request("opBreakpoints", items=[{"id": 4, "name": "EXPP"}, {"id": 5, "name": "\0" * 900},
                                                                {"id": 6, "name": "EXP"}])["results"]
    assert not near["verified"] and near["message"].startswith("there is no op 'EXPP'; do you mean EXP")
    assert not none["verified"] and "there is no op" in none["message"] and "message" in taken
    assert stops_of(adapter, 1) == [("op", [6], "EXP", LINE_S, False)]
