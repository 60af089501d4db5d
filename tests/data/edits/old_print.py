# outcome: refused
# reason: print
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    print x
    return x * 2
