# outcome: unchanged
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * (1 + 1)
