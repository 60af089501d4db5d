# outcome: applied
# reason: `RATE` is gone from the text
# check: rate() == 0.5 and RATE == 0.1
# undo: rate() == 0.1
# ---- before
RATE = 0.1


def rate():
    return RATE
# ---- after
def rate():
    return 0.5
