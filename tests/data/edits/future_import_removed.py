# outcome: refused
# reason: changes how the whole file is compiled
# check: scale(2) == 4
# ---- before
from __future__ import annotations


def scale(x: int):
    return x * 2
# ---- after
def scale(x: int):
    return x * 2
