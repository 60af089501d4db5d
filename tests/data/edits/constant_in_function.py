# outcome: applied
# reason: scale constant 0.5 -> 0.25
# check: scale(2) == 0.5
# ---- before
def scale(x):
    return x * 0.5
# ---- after
def scale(x):
    return x * 0.25
