# outcome: applied
# keep: first = scale(2)
# check: first == 4 and scale(2) == 6
# reason: what `scale` had cached is dropped
# undo: scale(2) == 4
# ---- before
import functools


@functools.lru_cache(maxsize=None)
def scale(x):
    return x * 2
# ---- after
import functools


@functools.lru_cache(maxsize=None)
def scale(x):
    return x * 3
