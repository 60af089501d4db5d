# outcome: applied
# reason: shift constant 1 -> -1
# check: shift(2) == 1
# ---- before
def shift(x):
    return x + 1
# ---- after
def shift(x):
    return x + -1
