# outcome: refused
# reason: `rooted` was a function and became a value
# check: root(4) == 4
# ---- before
def rooted(x):
    return x


def root(x):
    return rooted(x)
# ---- after
from math import sqrt as rooted


def root(x):
    return rooted(x)
