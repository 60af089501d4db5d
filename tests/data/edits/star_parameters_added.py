# outcome: refused
# reason: from (x) to (x, *rest, **more)
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x, *rest, **more):
    return x * 2
