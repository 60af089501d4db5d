# outcome: refused
# reason: `scale#2` defines a name that the text has more than once
# check: held(2) == 4 and scale(2) == 4
# keep: held = scale
# later: held(2) == 6
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * 2


def scale(x):
    return x * 3
# ---- later
def scale(x):
    return x * 3
