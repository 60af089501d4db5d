# outcome: applied
# check: many(3) == ([0, 10, 20], {0, 1}, {0: 0, 1: 2, 2: 4}, 6)
# undo: many(3) == ([0, 1, 2], {0, 1, 2}, {0: 0, 1: 1, 2: 2}, 3)
# ---- before
def many(n):
    return [i for i in range(n)], {i for i in range(n)}, {i: i for i in range(n)}, sum(i for i in range(n))
# ---- after
def many(n):
    return [i * 10 for i in range(n)], {i % 2 for i in range(n)}, {i: i * 2 for i in range(n)}, sum(i + 1 for i in range(n))
