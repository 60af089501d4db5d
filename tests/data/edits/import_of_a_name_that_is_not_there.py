# outcome: refused
# reason: `from math import no_such_name` failed: ImportError
# check: root(4) == 2
# ---- before
def root(x):
    return x // 2
# ---- after
from math import no_such_name


def root(x):
    return no_such_name(x)
