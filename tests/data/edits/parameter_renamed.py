# outcome: refused
# reason: from (x) to (value)
# check: scale(x=2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(value):
    return value * 2
