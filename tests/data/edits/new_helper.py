# outcome: applied
# reason: helper new function
# check: scale(2) == 6 and helper.__module__ == __name__
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return helper(x)


def helper(x, k=3):
    return x * k
