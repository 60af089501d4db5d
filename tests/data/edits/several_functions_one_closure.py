# outcome: refused
# reason: uses other variables of the function around it
# check: a() == 1 and kept() == 1
# ---- before
def a():
    return 1


def make(x, y):
    def inner():
        return x
    return inner


kept = make(1, 2)
# ---- after
def a():
    return 10


def make(x, y):
    def inner():
        return x + y
    return inner


kept = make(1, 2)
