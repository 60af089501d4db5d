# outcome: refused
# reason: the file is empty
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
