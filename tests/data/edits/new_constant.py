# outcome: applied
# reason: RATE new constant
# check: rate() == 0.3
# ---- before
def rate():
    return 0.1
# ---- after
RATE = 0.3


def rate():
    return RATE
