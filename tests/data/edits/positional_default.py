# outcome: applied
# reason: scale default k=2 -> k=3
# check: scale(2) == 7 and scale.__defaults__ == (3, 1)
# ---- before
def scale(x, k=2, j=1):
    return x * k + j
# ---- after
def scale(x, k=3, j=1):
    return x * k + j
