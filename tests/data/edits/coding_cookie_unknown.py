# outcome: refused
# reason: unknown encoding
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
# coding: no-such-coding
def scale(x):
    return x * 3
