# outcome: applied
# check: root(4) == 2.0
# undo: root(4) == 4
# ---- before
def root(x):
    return x
# ---- after
def root(x):
    import math
    return math.sqrt(x)
