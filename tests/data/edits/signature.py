# outcome: refused
# reason: line 1: parameters of `scale` changed from (x) to (x, y)
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x, y):
    return x * y
