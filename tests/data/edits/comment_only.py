# outcome: unchanged
# check: scale(2) == 4 and scale.__code__.co_firstlineno == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
# how much larger


def scale(x):
    # twice
    return x * 2
