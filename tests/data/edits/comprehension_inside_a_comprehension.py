# outcome: applied
# check: table(2) == [[0, 1], [1, 2]]
# undo: table(2) == [[0, 0], [0, 1]]
# ---- before
def table(n):
    return [[i * j for j in range(n)] for i in range(n)]
# ---- after
def table(n):
    return [[i + j for j in range(n)] for i in range(n)]
