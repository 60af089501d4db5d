# outcome: applied
# keep: first = held[0](2)
# check: first == 4 and held[0](2) == 6
# reason: had cached is dropped
# undo: held[0](2) == 4
# ---- before
import functools


def make():
    @functools.cache
    def inner(x):
        return x * 2
    return inner


held = [make()]
# ---- after
import functools


def make():
    @functools.cache
    def inner(x):
        return x * 3
    return inner


held = [make()]
