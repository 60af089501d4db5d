# outcome: refused
# reason: parameters of `minus` changed
# check: caller() == 1
# ---- before
def minus(a, b):
    return a - b


def caller():
    return minus(3, 2)
# ---- after
def minus(b, a):
    return a - b


def caller():
    return minus(2, 3)
