# outcome: applied
# reason: RATE constant 0.1 -> 0.2
# check: rate() == 0.2
# undo: rate() == 0.1
# ---- before
RATE: float = 0.1


def rate():
    return RATE
# ---- after
RATE: float = 0.2


def rate():
    return RATE
