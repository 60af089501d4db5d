# outcome: refused
# reason: `RATE` is read only by top-level code
# check: rate() == 0.1
# ---- before
RATE = 0.1


def rate(r=RATE):
    return r
# ---- after
RATE = 0.2


def rate(r=RATE):
    return r
