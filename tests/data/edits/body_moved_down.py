# outcome: applied
# reason: first body
# check: first(1) == 2 and second(2) == 4 and second.__code__.co_firstlineno == 6
# ---- before
def first(x):
    return x


def second(x):
    return x * 2
# ---- after
def first(x):
    extra = 1
    return x + extra


def second(x):
    return x * 2
