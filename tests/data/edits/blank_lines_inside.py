# outcome: unchanged
# check: first(1) == 2 and second(1) == 3 and second.__code__.co_firstlineno == 10
# ---- before
def first(x):
    y = x
    return y + 1


def second(x):
    return x + 2
# ---- after
def first(x):

    y = x

    # the sum

    return y + 1


def second(x):
    return x + 2
