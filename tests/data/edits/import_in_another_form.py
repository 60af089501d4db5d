# outcome: applied
# reason: sqrt new import
# check: root(4) == 2.0
# undo: root(4) == 2.0
# ---- before
import math


def root(x):
    return math.sqrt(x)
# ---- after
from math import sqrt


def root(x):
    return sqrt(x)
