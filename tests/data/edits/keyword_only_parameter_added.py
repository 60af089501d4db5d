# outcome: refused
# reason: parameters of `scale` changed from (x) to (x, *, k=3)
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x, *, k=3):
    return x * k
