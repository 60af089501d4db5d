# outcome: refused
# reason: `del scale` is top-level code
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * 2


del scale
