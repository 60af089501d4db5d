# outcome: applied
# reason: LR new constant
# check: rate() == 0.2 and RATE == 0.1
# undo: rate() == 0.1
# ---- before
RATE = 0.1


def rate():
    return RATE
# ---- after
LR = 0.2


def rate():
    return LR
