# outcome: refused
# reason: `scale.rate = 2` is top-level code
# check: scale.rate == 1
# ---- before
def scale(x):
    return x


scale.rate = 1
# ---- after
def scale(x):
    return x


scale.rate = 2
