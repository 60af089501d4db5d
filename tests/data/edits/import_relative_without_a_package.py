# outcome: refused
# reason: `from . import helper` failed
# check: root(4) == 2
# ---- before
def root(x):
    return x // 2
# ---- after
from . import helper


def root(x):
    return helper.root(x)
