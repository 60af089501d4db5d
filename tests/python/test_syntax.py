"""Parsing while other threads parse."""
import ast
import gc
import sys
import threading

import pytest
from dvm_wire import syntax

TEXT = "x = [" + ", ".join(f"({n} + y) * z[{n}]" for n in range(60)) + "]\n"


@pytest.fixture
def collecting():
    """Collections in the middle of a parse that let other threads run: what makes CPython 3.11 lose count of a tree's depth."""
    def callback(phase, info):
        for _ in range(50):
            pass

    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(callback)
    yield
    gc.callbacks.remove(callback)
    sys.setswitchinterval(interval)
    gc.set_threshold(*before)


def test_a_tree_comes_whatever_other_threads_parse(collecting):
    over, trees = threading.Event(), set()

    def program():
        while not over.is_set():
            try:
                ast.parse(TEXT)
            except SystemError:  # the program's own
                pass

    threads = [threading.Thread(target=program) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            trees.add(ast.dump(syntax.parse(TEXT)))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert len(trees) == 1
