# outcome: refused
# reason: parameters of `scale` changed
# check: scale(2) == 4
# ---- before
def scale(x, k=2):
    return x * k
# ---- after
def scale(x, k):
    return x * k
