# outcome: applied
# check: scale(2) == 6
# undo: scale(2) == 5
# ---- before
def scale(x):
    def more(y):
        return y + 1
    return more(x * 2)
# ---- after
def scale(x):
    def much(y):
        return y + 2
    return much(x * 2)
