# outcome: refused
# reason: the default `k=width() + 1` of `scale` is computed
# check: scale(2) == 4
# ---- before
def width():
    return 2


def scale(x, k=width()):
    return x * k
# ---- after
def width():
    return 2


def scale(x, k=width() + 1):
    return x * k
