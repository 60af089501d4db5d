# outcome: applied
# check: rows(2) == [0, 5]
# undo: rows(2) == [0, 1]
# ---- before
def rows(n):
    k = 5
    return [i for i in range(n)]
# ---- after
def rows(n):
    k = 5
    return [i * k for i in range(n)]
