# outcome: applied
# reason: clip constant 1.0 -> 0.5
# check: clip(3.0) == 0.5
# undo: clip(3.0) == 1.0
# ---- before
def bounded(x, limit):
    return min(x, limit)


def clip(g):
    return bounded(g, limit=1.0)
# ---- after
def bounded(x, limit):
    return min(x, limit)


def clip(g):
    return bounded(g, limit=0.5)
