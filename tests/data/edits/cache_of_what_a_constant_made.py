# outcome: applied
# reason: `scale` uses `RATE`; what it has cached stays
# keep: first = scale(2)
# check: scale(2) == 4 and scale(3) == 9 and scale.cache_clear() is None and scale(2) == 6
# undo: scale.cache_clear() is None and scale(2) == 4
# ---- before
from functools import cache

RATE = 2


@cache
def scale(x):
    return x * RATE
# ---- after
from functools import cache

RATE = 3


@cache
def scale(x):
    return x * RATE
