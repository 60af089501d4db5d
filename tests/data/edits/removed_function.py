# outcome: applied
# reason: `helper` is gone from the text; it stays defined
# check: scale(2) == 4 and helper(2) == 4
# undo: helper(2) == 4
# ---- before
def helper(x):
    return x * 2


def scale(x):
    return helper(x)
# ---- after
def scale(x):
    return x * 2
