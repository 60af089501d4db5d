# outcome: refused
# reason: parameters of `b` changed
# check: (a(), b(), RATE, c()) == (1, 2, 0.1, 0.1)
# later: (a(), b(), RATE, c()) == (10, 20, 0.2, 0.2)
# ---- before
RATE = 0.1


def a():
    return 1


def b():
    return 2


def c():
    return RATE
# ---- after
RATE = 0.2


def a():
    return 10


def b(k):
    return 20


def c():
    return RATE
# ---- later
RATE = 0.2


def a():
    return 10


def b():
    return 20


def c():
    return RATE
