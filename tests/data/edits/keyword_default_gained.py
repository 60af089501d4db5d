# outcome: applied
# check: scale(2) == 6 and scale(2, k=1) == 2
# undo: scale.__kwdefaults__ is None
# ---- before
def scale(x, *, k):
    return x * k
# ---- after
def scale(x, *, k=3):
    return x * k
