# outcome: refused
# reason: `scale` was a value and became a function
# check: scale == 2
# ---- before
scale = 2


def other():
    return scale
# ---- after
def scale():
    return 3


def other():
    return scale
