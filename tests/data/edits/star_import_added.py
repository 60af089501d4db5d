# outcome: refused
# reason: `from math import *` is new; which names it binds is not known
# check: root(4) == 2
# ---- before
def root(x):
    return x // 2
# ---- after
from math import *


def root(x):
    return sqrt(x)
