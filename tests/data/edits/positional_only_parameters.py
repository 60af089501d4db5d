# outcome: refused
# reason: parameters of `scale` changed from (x, k) to (x, /, k)
# check: scale(2, 3) == 6
# ---- before
def scale(x, k):
    return x * k
# ---- after
def scale(x, /, k):
    return x * k
