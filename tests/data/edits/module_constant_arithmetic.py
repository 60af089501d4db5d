# outcome: applied
# reason: RATE constant 0.001 * 2 -> 0.001 * 4
# check: rate() == 0.004
# ---- before
RATE = 1e-3 * 2


def rate():
    return RATE
# ---- after
RATE = 1e-3 * 4


def rate():
    return RATE
