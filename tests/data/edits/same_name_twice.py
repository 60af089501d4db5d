# outcome: applied
# check: first(1) == 20 and scale(1) == 30
# ---- before
def scale(x):
    return x * 2


first = scale


def scale(x):
    return x * 3
# ---- after
def scale(x):
    return x * 20


first = scale


def scale(x):
    return x * 30
