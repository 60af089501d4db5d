# outcome: refused
# reason: `scale#2` defines a name that the text has more than once
# check: scale(2) == 6
# ---- before
def scale(x):
    return x * 2


def scale(x):
    return x * 3
# ---- after
def scale(x):
    return x * 2
