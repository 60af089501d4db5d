# outcome: applied
# reason: RATE constant 0.1 -> 0.01
# check: rate() == 0.01
# ---- before
RATE = 0.1


def rate():
    return RATE
# ---- after
RATE = 0.01


def rate():
    return RATE
