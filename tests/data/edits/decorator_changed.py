# outcome: refused
# reason: decorators of `scale` changed
# check: scale(2) == 4
# ---- before
import functools


@functools.lru_cache
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * 2
