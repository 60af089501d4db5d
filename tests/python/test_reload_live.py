"""Looking for live functions disturbs no other thread."""
import gc
import sys
import threading

import pytest

from dvm_core.hotreload.live import Live, collections


def made_in_a_closure():
    def inner():
        return 1
    return inner


def test_functions_that_no_name_leads_to_are_found():
    held = [made_in_a_closure()]
    live = Live(__file__)
    assert held[0] not in live.functions
    live.search()
    assert held[0] in live.functions


def test_functions_made_since_are_found_among_the_young():
    gc.collect()
    since = collections()
    held = [made_in_a_closure()]
    live = Live(__file__)
    live.search(since)
    assert held[0] in live.functions


def test_a_search_takes_no_hold_of_what_another_thread_is_filling():
    """Native code fills a tuple and lets other threads run meanwhile: with another reference to it, going on is a SystemError."""
    wrong, done = [], threading.Event()

    def fills():
        try:
            while not done.is_set():
                tuple(i for i in range(200))  # grows twice
        except SystemError as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=fills)
    thread.start()
    try:
        live = Live(__file__)
        for _ in range(60):
            live.search()
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not wrong


@pytest.mark.parametrize("generations", [0, 1, 3])
def test_only_functions_are_handed_out(generations):
    from dvm_core import _core

    assert {type(thing) for thing in _core.functions_alive(generations)} <= {type(made_in_a_closure)}
