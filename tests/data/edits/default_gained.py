# outcome: applied
# reason: scale default k=(none) -> k=2
# check: scale(2) == 4 and scale(2, 3) == 6
# ---- before
def scale(x, k):
    return x * k
# ---- after
def scale(x, k=2):
    return x * k
