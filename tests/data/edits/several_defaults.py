# outcome: applied
# check: scale(2) == -1
# ---- before
def scale(x, k=2, *, j=1):
    return x * k + j
# ---- after
def scale(x, k=3, *, j=7):
    return x * k - j
