"""Turns of the GIL are short while a save is worked on, and as they were afterwards, whatever the program sets meanwhile."""
from __future__ import annotations

import gc
import itertools
import os
import random
import sys
import traceback
from collections.abc import Callable

import pytest

from dvm_core.hotreload import turns

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def alone(check: Callable[[], None]) -> Callable[[], None]:
    """A test in a forked child: the interval is the interpreter's, and a reload of another test may not be over."""
    def test() -> None:
        pid = os.fork()
        if not pid:
            try:
                turns.set_interval(5000)
                check()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return test


@alone
def test_short_from_the_first_to_the_last():
    with turns.short_turns():
        with turns.short_turns():
            assert turns.interval() == turns.SHORT
        assert turns.interval() == turns.SHORT
    assert turns.interval() == 5000


@alone
def test_what_the_program_sets_meanwhile_stays():
    with turns.short_turns():
        sys.setswitchinterval(0.25)
    assert sys.getswitchinterval() == 0.25


@alone
def test_a_program_with_shorter_turns_keeps_them():
    for microseconds in range(1, turns.SHORT, 7):
        turns.set_interval(microseconds)
        for _ in range(3):
            with turns.short_turns():
                assert turns.interval() == microseconds
        assert turns.interval() == microseconds


@alone
def test_whoever_ends_first_the_interval_is_the_programs_in_the_end():
    """A swap may begin inside of short turns and end behind them: then it was they who had put nothing back."""
    parts = {"short": turns.short_turns, "swap": turns.uninterrupted, "other": turns.short_turns}
    for order in set(itertools.permutations(list(parts) * 2)):
        held = {}
        for part in order:
            if part not in held:
                held[part] = parts[part]()
                held[part].__enter__()
            else:
                held.pop(part).__exit__(None, None, None)
            expected = turns.LONG if "swap" in held else turns.SHORT if held else 5000
            assert turns.interval() == expected, (order, part)


@alone
def test_an_interval_of_the_programs_own_comes_back_from_wherever_it_was_set():
    chance = random.Random(7)
    own, held = 5000, []
    for _ in range(2000):
        match chance.randrange(3):
            case 0:
                held.append(chance.choice([turns.short_turns, turns.uninterrupted])())
                held[-1].__enter__()
            case 1 if held:
                held.pop(chance.randrange(len(held))).__exit__(None, None, None)
            case _:
                own = chance.choice([90, 1700, 40_000])
                turns.set_interval(own)
        if not held:
            assert turns.interval() == own


@alone
def test_a_child_forked_while_a_save_is_worked_on_collects_and_has_its_turns():
    with turns.short_turns(), turns.no_collection(), turns.uninterrupted():
        child = os.fork()
        if not child:
            os._exit(gc.isenabled() and turns.interval() == 5000)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert gc.isenabled() and turns.interval() == 5000
