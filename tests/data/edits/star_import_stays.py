# outcome: applied
# check: root(4) == 3.0
# undo: root(4) == 2.0
# ---- before
from math import *


def root(x):
    return sqrt(x)
# ---- after
from math import *


def root(x):
    return sqrt(x) + 1
