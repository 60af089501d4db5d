# outcome: refused
# reason: changes how the whole file is compiled
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
from __future__ import annotations


def scale(x):
    return x * 2
