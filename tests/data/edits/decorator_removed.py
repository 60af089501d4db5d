# outcome: refused
# reason: decorators of `scale` changed
# check: scale(2) == 2
# ---- before
import functools


@functools.lru_cache
def scale(x):
    return x
# ---- after
import functools


def scale(x):
    return x
