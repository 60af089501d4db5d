# outcome: applied
# check: scale(2) == 6 and other(2) == 6
# undo: scale(2) == 4 and other(2) == 4
# ---- before
def scale(x):
    return x * 2


other = scale
# ---- after
def scale(x):
    return x * 3


other = scale
