"""Turns of the GIL are short while a save is worked on, and as they were afterwards."""
from __future__ import annotations

import sys

import pytest

from dvm_core.hotreload import turns


@pytest.fixture(autouse=True)
def before():
    interval = turns.interval()
    yield interval
    turns.set_interval(interval)


def test_short_from_the_first_to_the_last(before):
    with turns.short_turns():
        with turns.short_turns():
            assert turns.interval() == turns.SHORT < before
        assert turns.interval() == turns.SHORT
    assert turns.interval() == before


def test_what_the_program_sets_meanwhile_stays():
    with turns.short_turns():
        sys.setswitchinterval(0.25)
    assert sys.getswitchinterval() == 0.25


def test_a_program_with_shorter_turns_keeps_them():
    for microseconds in range(1, turns.SHORT, 7):
        turns.set_interval(microseconds)
        for _ in range(3):
            with turns.short_turns():
                assert turns.interval() == microseconds
        assert turns.interval() == microseconds
