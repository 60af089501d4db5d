# outcome: refused
# reason: `A, B = 1, 3` is top-level code
# check: total() == 3
# ---- before
A, B = 1, 2


def total():
    return A + B
# ---- after
A, B = 1, 3


def total():
    return A + B
