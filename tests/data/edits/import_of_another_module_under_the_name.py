# outcome: applied
# check: root(4) == 2 + 0j
# undo: type(root(4)) is float
# ---- before
import math as m


def root(x):
    return m.sqrt(x)
# ---- after
import cmath as m


def root(x):
    return m.sqrt(x)
