# outcome: applied
# reason: RATE constant 1 -> 1.0
# check: type(rate()) is float
# undo: type(rate()) is int
# ---- before
RATE = 1


def rate():
    return RATE
# ---- after
RATE = 1.0


def rate():
    return RATE
