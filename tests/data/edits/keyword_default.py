# outcome: applied
# reason: scale default j=1 -> j=5
# check: scale(2) == 9
# ---- before
def scale(x, *, k=2, j=1):
    return x * k + j
# ---- after
def scale(x, *, k=2, j=5):
    return x * k + j
