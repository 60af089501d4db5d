# outcome: refused
# reason: `rows` was a generator and became a function
# check: list(rows(2)) == [0, 1]
# ---- before
def rows(n):
    for i in range(n):
        yield i
# ---- after
def rows(n):
    return list(range(n))
