# outcome: refused
# reason: parameters of `a` changed
# reason: decorators of `b` changed
# reason: class `New` is new
# check: a() == 1 and b() == 2
# ---- before
def a():
    return 1


def b():
    return 2
# ---- after
def a(x):
    return 1


@staticmethod
def b():
    return 2


class New:
    pass
