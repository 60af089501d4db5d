# outcome: applied
# reason: rate constant 100 -> 10
# check: rate(50) == 0.01 and rate(5) == 0.1
# undo: rate(50) == 0.1
# ---- before
def rate(step):
    return 0.1 if step < 100 else 0.01
# ---- after
def rate(step):
    return 0.1 if step < 10 else 0.01
