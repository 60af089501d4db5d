# outcome: applied
# reason: `helper` is gone
# check: scale(2) == 6
# ---- before
def helper(x):
    return x * 2


def scale(x):
    return helper(x)
# ---- after
def assistant(x):
    return x * 3


def scale(x):
    return assistant(x)
