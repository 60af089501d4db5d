# outcome: applied
# check: scale(2) == 6
# undo: scale(2) == 4
# keep: first = scale(2)
# ---- before
import functools


def make():
    @functools.cache
    def inner(x):
        return x * 2
    return inner


scale = make()
# ---- after
import functools


def make():
    @functools.cache
    def inner(x):
        return x * 3
    return inner


scale = make()
