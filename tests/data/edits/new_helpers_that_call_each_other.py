# outcome: applied
# check: scale(3) == 6
# undo: scale(3) == 3
# ---- before
def scale(x):
    return x
# ---- after
def even(n):
    return n if n == 0 else 1 + odd(n - 1)


def odd(n):
    return 0 if n == 0 else 1 + even(n - 1)


def scale(x):
    return x + even(x)
