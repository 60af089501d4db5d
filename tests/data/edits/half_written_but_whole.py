# outcome: unchanged
# reason: `other` is gone from the text; it stays defined
# check: scale(2) == 4 and other() == 1
# ---- before
def scale(x):
    return x * 2


def other():
    return 1
# ---- after
def scale(x):
    return x * 2
