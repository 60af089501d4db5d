# outcome: applied
# check: scale(1) == 20 and scale.rate == 10
# undo: scale(1) == 10 and scale.rate == 10
# ---- before
def scale(x):
    return x * scale.rate


scale.rate = 10
# ---- after
def scale(x):
    return x * scale.rate * 2


scale.rate = 10
