# outcome: refused
# reason: `scale` was a function and became a value
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
scale = 3
