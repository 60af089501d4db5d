# outcome: applied
# check: type(one()) is bool
# undo: type(one()) is int
# ---- before
def one(k=1):
    return k
# ---- after
def one(k=True):
    return k
