# outcome: applied
# after-as: cr
# check: scale(2) == 6
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * 3
