# outcome: refused
# reason: `helper` is new and has decorators
# check: scale(2) == 4
# ---- before
import functools


def scale(x):
    return x * 2
# ---- after
import functools


def scale(x):
    return helper(x)


@functools.lru_cache
def helper(x):
    return x * 3
