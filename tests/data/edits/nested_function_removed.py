# outcome: applied
# check: scale(2) == 4
# undo: scale(2) == 5
# ---- before
def scale(x):
    def more(y):
        return y + 1
    return more(x * 2)
# ---- after
def scale(x):
    return x * 2
