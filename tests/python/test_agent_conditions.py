"""When a breakpoint that was reached stops."""
import pytest
from dvm_wire.logged import split_message

from dvm_core.agent.conditions import BadCondition, Gate, parse_hits


def hits(gate, times=6, evaluate=lambda text: True, tell=lambda text: None):
    return [n for n in range(1, times + 1) if gate.stops(evaluate, tell)]


@pytest.mark.parametrize("text, expected", [
    ("3", [3]), ("== 3", [3]), (">3", [4, 5, 6]), (">= 3", [3, 4, 5, 6]), ("<3", [1, 2]), ("<=3", [1, 2, 3]), ("% 03", [3, 6]),
    (None, [1, 2, 3, 4, 5, 6]), ("", [1, 2, 3, 4, 5, 6]),
])
def test_hit_counts(text, expected):
    assert hits(Gate.of(None, text, None)) == expected


@pytest.mark.parametrize("text", ["three", "=> 3", "3.5", "-1", "== -1", "3 4", "9" * 5000, "%0", "% 00", "%"])
def test_bad_hit_count_says_the_syntax(text):
    with pytest.raises(BadCondition, match="a hit count is a number, or ==, >, >=, <, <= or % and a number"):
        parse_hits(text)


def test_only_hits_that_meet_the_condition_count():
    seen = iter([False, True, False, True, True])
    gate = Gate.of("h.max() > 3", "2", None)
    assert hits(gate, 5, lambda text: next(seen)) == [4]
    assert gate.count == 3


def test_a_condition_that_fails_stops_and_says_why():
    told = []

    def broken(text):
        raise ValueError("no tensor `k` here")

    assert Gate.of("k > 3", None, None).stops(broken, told.append)
    assert told == ["condition `k > 3`: no tensor `k` here"]


def test_a_log_message_never_stops():
    told = []

    def evaluate(text):
        if text == "bad":
            raise ValueError("no tensor `bad` here")
        return {"h.max()": 3.5}[text]

    gate = Gate.of(None, None, "max {h.max()}, {bad}, {{literal}}, {open")
    assert hits(gate, 1, evaluate, told.append) == []
    assert told == ["max 3.5, <`bad`: no tensor `bad` here>, {literal}, {open"]


def test_complaints_name_the_line():
    told = []

    def broken(text):
        raise ValueError("no tensor `k` here")

    assert not Gate.of(None, None, "k is {k}").stops(broken, told.append, "model.py:12")
    assert Gate.of("k > 3", None, None).stops(broken, told.append, "model.py:12")
    assert told == ["k is <model.py:12: `k`: no tensor `k` here>", "model.py:12: condition `k > 3`: no tensor `k` here"]


@pytest.mark.parametrize("given", [(3, None, None), (None, 3, None), (None, ["%2"], None), (None, None, {"text": 1})])
def test_what_is_no_text_is_a_bad_condition(given):
    with pytest.raises(BadCondition, match="must be a text; this is"):
        Gate.of(*given)


def test_log_messages_obey_conditions_and_hit_counts():
    told = []
    assert hits(Gate.of(None, "%2", "hit"), 5, tell=told.append) == []
    assert told == ["hit", "hit"]


@pytest.mark.parametrize("text, parts", [
    ("plain", [(False, "plain")]),
    ("{x}", [(True, "x")]),
    ("a {x} b", [(False, "a "), (True, "x"), (False, " b")]),
    ("{ {1: 2}[1] }", [(True, "{1: 2}[1]")]),
    ("", []),
    ("{unclosed", [(False, "{unclosed")]),
    ("{len('}')} of {'{'}", [(True, "len('}')"), (False, " of "), (True, "'{'")]),
    ("{%4} and {{x}}", [(True, "%4"), (False, " and {x}")]),
    ("{f(} {x}", [(True, "f("), (False, " "), (True, "x")]),
])
def test_message_parts(text, parts):
    assert split_message(text) == parts
