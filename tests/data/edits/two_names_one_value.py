# outcome: refused
# reason: `A = B = 2` is top-level code
# check: total() == 2
# ---- before
A = B = 1


def total():
    return A + B
# ---- after
A = B = 2


def total():
    return A + B
