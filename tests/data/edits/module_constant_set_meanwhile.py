# outcome: refused
# reason: `RATE` was 0.1 in the text, but is 0.05 in the running program
# check: rate() == 0.05
# ---- before
RATE = 0.1


def rate():
    return RATE


def decay():
    global RATE
    RATE = RATE / 2


decay()
# ---- after
RATE = 0.01


def rate():
    return RATE


def decay():
    global RATE
    RATE = RATE / 2


decay()
