# outcome: refused
# reason: half_written.py:
# check: scale(2) == 4 and other() == 1
# later: scale(2) == 10 and other() == 2
# ---- before
def scale(x):
    return x * 2


def other():
    return 1
# ---- after
def scale(x):
    return x * 5


def other():
    return (
# ---- later
def scale(x):
    return x * 5


def other():
    return 2
